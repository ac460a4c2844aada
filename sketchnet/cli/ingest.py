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
_ENTRY_BYTES = 80  # of a shard while it is put together, per non-zero, in the whole process
_NGRAM_BYTES = 1024  # of a chunk of strings while it is hashed, per byte of text


def ingest(
    paths: Annotated[list[Path], typer.Argument(metavar="INPUT... OUTPUT", help="Files, then a folder to write.")],
    format: Annotated[str, typer.Option(help="svmlight, text, table (CSV, TSV, Parquet) or npz.")] = "auto",
    text: Annotated[bool, typer.Option("--text", help="Raw strings, one a line: the same as --format text.")] = False,
    like: Annotated[
        Path | None, typer.Option(help="A data set that this one must fit: its base, classes, hashes, categories.")
    ] = None,
    columns: Annotated[int | None, typer.Option(min=1, help="Width; strings and tables are hashed to it.")] = None,
    base: Annotated[str | None, typer.Option(help="svmlight: what the first column is called, 0, 1 or auto.")] = None,
    labels: Annotated[str | None, typer.Option(help="svmlight: labels a row, single, multi or auto.")] = None,
    skip_bad_lines: Annotated[
        bool | None, typer.Option("--skip-bad-lines", help="svmlight: leave malformed lines out, and count them.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Table: name of the label column.")] = None,
    text_column: Annotated[int | None, typer.Option(min=1, help="Text: which tab-separated field, from 1.")] = None,
    label_column: Annotated[int | None, typer.Option(min=1, help="Text: the label is this field.")] = None,
    where: Annotated[str | None, typer.Option(metavar="FIELD=TEXT", help="Text: only lines with that field.")] = None,
    analyzer: Annotated[str | None, typer.Option(help="Text: n-grams of char (default), word or byte.")] = None,
    ngrams: Annotated[str | None, typer.Option(help="Text: lengths of n-grams, 1-6 by default.")] = None,
    norm: Annotated[str | None, typer.Option(help="Text: scale rows to norm l1 or l2.")] = None,
    binary: Annotated[bool | None, typer.Option("--binary", help="Text: ones instead of counts.")] = None,
    lowercase: Annotated[bool | None, typer.Option("--lowercase", help="Text: in lower case.")] = None,
    seed: Annotated[int, typer.Option(help="Of the hash.")] = 0,
    memory: Annotated[str, typer.Option(help="What may be used, the program itself aside.")] = "400MB",
    overwrite: Annotated[bool, typer.Option(help="Replace OUTPUT, or forget an unfinished run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Turn files into a data set on disk. Run it again after an interruption: it goes on where it stopped.

    \b
    Examples:
      sketchnet ingest day0.svm.gz day1.svm.gz clicks
      sketchnet ingest urls.tsv urls --text --text-column 4 --label-column 2
      sketchnet ingest train.csv train --label income
      sketchnet ingest test.csv test --like train
    """
    from sketchnet.cli.progress import progress_rows
    from sketchnet.data.ingestion import SHARD_ENTRIES
    from sketchnet.data.ingestion import ingest as run
    from sketchnet.data.sources import NpzSource

    if len(paths) < 2:
        raise InputError("ingest takes at least one INPUT and an OUTPUT folder")
    *inputs, output = paths
    kind = "text" if text else _kind(inputs, format)
    given = {
        "svmlight": {"--base": base, "--labels": labels, "--skip-bad-lines": skip_bad_lines},
        "table": {"--label": label},
        "text": {
            "--text-column": text_column,
            "--label-column": label_column,
            "--where": where,
            "--analyzer": analyzer,
            "--ngrams": ngrams,
            "--norm": norm,
            "--binary": binary,
            "--lowercase": lowercase,
        },
    }
    for other, options in given.items():
        stray = [name for name, value in options.items() if value is not None and other != kind]
        if stray:
            raise InputError(f"{stray[0]} is for {other}, but {inputs[0]} is read as {kind}")
    budget = parse_memory(memory)
    shard_entries = min(SHARD_ENTRIES, budget // 2 // _ENTRY_BYTES)
    if shard_entries < 1 << 16:
        raise InputError(f"--memory {memory} is too little; give at least {format_memory(_ENTRY_BYTES << 17)}")
    known = _description(like)
    width = columns if columns is not None else known.get("columns")
    if kind == "svmlight":
        source = _svmlight(inputs, base, labels, bool(skip_bad_lines), min(16 << 20, budget // 32), known)
    elif kind == "text":
        options = {
            "analyzer": analyzer or "char",
            "ngram_range": _range(ngrams or "1-6"),
            "n_columns": columns or 2**24,
            "counts": not binary,
            "lowercase": bool(lowercase),
            "norm": norm,
            "seed": seed,
        }
        fields = {"text_column": text_column, "label_column": label_column, "where": _condition(where)}
        source, width = _text(inputs, options, fields, max(1 << 14, budget // 2 // _NGRAM_BYTES), known), None
    elif kind == "table":
        source, width = _table(inputs, label, columns, seed, known), None
    else:
        source = NpzSource(inputs, scratch=output.absolute().parent)
    start = time.perf_counter()
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
    from sketchnet.data.compression import SUFFIXES

    known = sorted({*_FORMATS.values(), "text"})
    if given != "auto":
        if given not in known:
            raise InputError(f"--format {given} is not possible; it is auto, {', '.join(known)}")
        return given
    kinds = set()
    for path in inputs:
        suffixes = [suffix for suffix in path.suffixes if suffix not in SUFFIXES]
        kinds.add(_FORMATS.get(suffixes[-1] if suffixes else ""))
    if len(kinds) != 1 or None in kinds:
        raise InputError(f"the names do not tell the format of {inputs[0]}; give --format {', '.join(known)}")
    return kinds.pop()


def _description(like: Path | None) -> dict:
    """What an earlier data set knows."""
    from sketchnet.data.shards import read_description

    return {} if like is None else read_description(like / "dataset.json")


def _svmlight(inputs, base: str | None, labels: str | None, skip: bool, chunk_bytes: int, known: dict):
    from sketchnet.data.sources import SvmlightSource

    if base not in (None, "auto", "0", "1"):
        raise InputError(f"--base {base} is not possible; it is auto, 0 or 1")
    base = known.get("base", "auto") if base in (None, "auto") else int(base)
    labels = labels or known.get("labels", "auto")
    on_error = "skip" if skip else "raise"
    return SvmlightSource(inputs, base=base, labels=labels, on_error=on_error, chunk_bytes=chunk_bytes)


def _text(inputs, options: dict, fields: dict, chunk_bytes: int, known: dict):
    from sketchnet.data.ngrams import NgramHasher
    from sketchnet.data.sources import TextSource

    hasher = NgramHasher(**(known.get("hasher") or options)).fit()
    learnt = {"classes": known["classes"]} if "classes" in known else {}
    return TextSource(inputs, hasher, **fields, chunk_bytes=min(1 << 20, chunk_bytes), learnt=learnt)


def _range(ngrams: str) -> list[int]:
    low, dash, high = ngrams.partition("-")
    if not low.isdigit() or not (high.isdigit() if dash else not high):
        raise InputError(f"--ngrams {ngrams} is not possible; write a length or a range, such as 3 or 1-6")
    return [int(low), int(high or low)]


def _condition(where: str | None) -> list | None:
    if where is None:
        return None
    field, equals, value = where.partition("=")
    if not equals or not field.isdigit() or field == "0":
        raise InputError(f"--where {where} is not possible; write FIELD=TEXT, such as 1=train")
    return [int(field), value]


def _table(inputs, label: str | None, columns: int | None, seed: int, known: dict):
    from sketchnet.data.sources import TableSource
    from sketchnet.data.tables import TableEncoder

    if known.get("encoder"):
        encoder = TableEncoder.from_dict(known["encoder"])
    else:
        encoder = TableEncoder(label, n_columns=columns, seed=seed)
    return TableSource(inputs, encoder, label=label, n_columns=columns)
