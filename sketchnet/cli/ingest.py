"""`sketchnet ingest`: files of any kind to a data set of mapped shards."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from sketchnet.errors import InputError
from sketchnet.memory import format_memory, parse_memory

_FORMATS = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".csv": "table",
    ".tsv": "table",
    ".parquet": "table",
    ".npz": "npz",
}
_PACKED = (".gz", ".bz2", ".xz", ".zst")
_ENTRY_BYTES = 80  # of a shard while it is put together, per non-zero, in the whole process


def ingest(
    paths: Annotated[list[Path], typer.Argument(metavar="INPUT... OUTPUT", help="Files, then a folder to write.")],
    format: Annotated[str, typer.Option(help="svmlight, text, table (CSV, TSV, Parquet) or npz.")] = "auto",
    text: Annotated[bool, typer.Option("--text", help="Raw strings, one a line: the same as --format text.")] = False,
    columns: Annotated[int | None, typer.Option(help="Width; strings and tables are hashed to it.")] = None,
    base: Annotated[str, typer.Option(help="svmlight: what the first column is called, 0, 1 or auto.")] = "auto",
    skip_bad_lines: Annotated[bool, typer.Option(help="svmlight: leave malformed lines out, and count them.")] = False,
    label: Annotated[str | None, typer.Option(help="Table: name of the label column.")] = None,
    text_column: Annotated[int | None, typer.Option(help="Text: which tab-separated field, from 1.")] = None,
    label_column: Annotated[int | None, typer.Option(help="Text: the label is this field.")] = None,
    where: Annotated[str | None, typer.Option(metavar="FIELD=TEXT", help="Text: only lines with that field.")] = None,
    analyzer: Annotated[str, typer.Option(help="Text: n-grams of char, word or byte.")] = "char",
    ngrams: Annotated[str, typer.Option(help="Text: lengths of n-grams.")] = "1-6",
    norm: Annotated[str | None, typer.Option(help="Text: scale rows to norm l1 or l2.")] = None,
    seed: Annotated[int, typer.Option(help="Of the hash.")] = 0,
    memory: Annotated[str, typer.Option(help="What may be used.")] = "400MB",
    overwrite: Annotated[bool, typer.Option(help="Replace OUTPUT, or forget an unfinished run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Turn files into a data set on disk. Run it again after an interruption: it goes on where it stopped.

    Example: sketchnet ingest day0.svm.gz day1.svm.gz clicks
    Example: sketchnet ingest urls.tsv urls --text --text-column 4 --label-column 2 --where 1=train --norm l2
    """
    from sketchnet.cli.progress import progress_rows
    from sketchnet.data.ingestion import SHARD_ENTRIES
    from sketchnet.data.ingestion import ingest as run

    if len(paths) < 2:
        raise InputError("ingest takes at least one INPUT and an OUTPUT folder")
    *inputs, output = paths
    kind = "text" if text else _kind(inputs, format)
    budget = parse_memory(memory)
    shard_entries = min(SHARD_ENTRIES, budget // 2 // _ENTRY_BYTES)
    if shard_entries < 1 << 16:
        raise InputError(f"--memory {memory} is too little; give at least {format_memory(_ENTRY_BYTES << 17)}")
    chunk_bytes = min(16 << 20, budget // 32)
    if kind == "svmlight":
        source = _svmlight(inputs, base, skip_bad_lines, chunk_bytes)
    elif kind == "text":
        source = _text(inputs, analyzer, ngrams, columns, norm, seed, text_column, label_column, where)
    elif kind == "table":
        source = _table(inputs, label, columns, seed)
    else:
        from sketchnet.data.sources import NpzSource

        source = NpzSource(inputs)
    start = time.perf_counter()
    width = columns if kind in ("svmlight", "npz") else None
    job = {"n_columns": width, "shard_entries": shard_entries, "overwrite": overwrite}
    with progress_rows(f"reading {inputs[0].name}{' ...' if len(inputs) > 1 else ''}") as progress:
        made = run(source, output, **job, progress=progress)
    seconds = time.perf_counter() - start
    if as_json:
        names = ("rows", "columns", "entries", "shards", "skipped_lines", "classes")
        print(json.dumps({"output": str(output), "seconds": seconds} | {n: made[n] for n in names if n in made}))
        return
    skipped = f", {made['skipped_lines']:,} malformed lines left out" if made.get("skipped_lines") else ""
    print(
        f"{output}: {made['rows']:,} x {made['columns']:,}, {made['entries']:,} non-zeros in {made['shards']} shards"
        f"{skipped}, in {seconds:.1f} s"
    )


def _kind(inputs: list[Path], given: str) -> str:
    known = sorted({*_FORMATS.values(), "text"})
    if given != "auto":
        if given not in known:
            raise InputError(f"--format {given} is not possible; it is auto, {', '.join(known)}")
        return given
    kinds = set()
    for path in inputs:
        suffixes = [suffix for suffix in path.suffixes if suffix not in _PACKED]
        kinds.add(_FORMATS.get(suffixes[-1] if suffixes else ""))
    if len(kinds) != 1 or None in kinds:
        raise InputError(f"the names do not tell the format of {inputs[0]}; give --format {', '.join(known)}")
    return kinds.pop()


def _svmlight(inputs, base: str, skip: bool, chunk_bytes: int):
    from sketchnet.data.sources import SvmlightSource

    if base not in ("auto", "0", "1"):
        raise InputError(f"--base {base} is not possible; it is auto, 0 or 1")
    on_error = "skip" if skip else "raise"
    return SvmlightSource(
        inputs, base=base if base == "auto" else int(base), on_error=on_error, chunk_bytes=chunk_bytes
    )


def _text(inputs, analyzer, ngrams, columns, norm, seed, text_column, label_column, where):
    from sketchnet.data.ngrams import NgramHasher
    from sketchnet.data.sources import TextSource

    low, dash, high = ngrams.partition("-")
    if not low.isdigit() or not (high.isdigit() if dash else not high):
        raise InputError(f"--ngrams {ngrams} is not possible; write a length or a range, such as 3 or 1-6")
    hasher = NgramHasher(analyzer, (int(low), int(high or low)), columns or 2**24, norm=norm, seed=seed).fit()
    condition = None
    if where is not None:
        field, equals, value = where.partition("=")
        if not equals or not field.isdigit() or field == "0":
            raise InputError(f"--where {where} is not possible; write FIELD=TEXT, such as 1=train")
        condition = [int(field), value]
    for name, field in (("--text-column", text_column), ("--label-column", label_column)):
        if field is not None and field < 1:
            raise InputError(f"{name} {field} is not possible; fields are counted from 1")
    return TextSource(inputs, hasher, text_column=text_column, label_column=label_column, where=condition)


def _table(inputs, label: str | None, columns: int | None, seed: int):
    from sketchnet.data.sources import TableSource
    from sketchnet.data.tables import TableEncoder

    return TableSource(inputs, TableEncoder(label, n_columns=columns, seed=seed))
