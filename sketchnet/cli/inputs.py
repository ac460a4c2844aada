"""What the verbs that read files share: which format, and how."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from sketchnet.cli.flags import flag_of
from sketchnet.errors import InputError, MissingFile
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
_HASHING = ("analyzer", "ngrams", "norm", "binary", "lowercase")
_ENTRY_BYTES = 80  # of a shard while it is put together, per non-zero, in the whole process
_NGRAM_BYTES = 1024  # of a chunk of strings while it is hashed, per byte of text
_LINE_BYTES = {"svmlight": 12, "text": 20, "table": 16, "npz": 1}  # of a long line, per byte (text: and n of n-grams)


@dataclass(frozen=True)
class InputOptions:
    """Options of every verb that reads files; `takes_input_options` adds them to it."""

    format: Annotated[str, typer.Option(help="svmlight, text, table (CSV, TSV, Parquet) or npz.")] = "auto"
    text: Annotated[bool, typer.Option("--text", help="Raw strings, one a line: the same as --format text.")] = False
    columns: Annotated[int | None, typer.Option(min=1, help="Width; strings and tables are hashed to it.")] = None
    base: Annotated[str | None, typer.Option(help="svmlight: what the first column is called, 0, 1 or auto.")] = None
    labels: Annotated[str | None, typer.Option(help="svmlight: labels a row, single, multi, ignore or auto.")] = None
    skip_bad_lines: Annotated[
        bool | None, typer.Option("--skip-bad-lines", help="svmlight: leave malformed lines out, and count them.")
    ] = None
    label: Annotated[str | None, typer.Option(help="Table: name of the label column.")] = None
    categorical: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Table: a column of codes, though they look like numbers.")
    ] = None
    ignore: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Table: a column to leave out.")] = None
    group_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Table: rows with the same text there are held back together.")
    ] = None
    missing: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Table: one more text that means no value, such as ?.")
    ] = None
    text_column: Annotated[int | None, typer.Option(min=1, help="Text: which tab-separated field, from 1.")] = None
    label_column: Annotated[int | None, typer.Option(min=1, help="Text: the label is this field.")] = None
    where: Annotated[str | None, typer.Option(metavar="FIELD=TEXT", help="Text: only lines with that field.")] = None
    header: Annotated[
        bool | None, typer.Option("--header", help="Text, table: the first line has the names of the columns.")
    ] = None
    analyzer: Annotated[str | None, typer.Option(help="Text: n-grams of char (default), word or byte.")] = None
    ngrams: Annotated[str | None, typer.Option(help="Text: lengths of n-grams, 1-6 by default.")] = None
    norm: Annotated[str | None, typer.Option(help="Text: scale rows to norm l1 or l2.")] = None
    binary: Annotated[bool | None, typer.Option("--binary", help="Text: ones instead of counts.")] = None
    lowercase: Annotated[bool | None, typer.Option("--lowercase", help="Text: in lower case.")] = None

    def kind(self, inputs: list[Path], known: dict) -> str:
        """The format of the inputs; options of other formats are an error."""
        kind = "text" if self.text else _kind(inputs, self.format, known)
        given = {
            ("svmlight",): ("base", "labels", "skip_bad_lines"),
            ("table",): ("label", "categorical", "ignore", "missing", "group_column"),
            ("text",): ("text_column", "label_column", "where", *_HASHING),
            ("text", "table"): ("header",),
        }
        for others, names in given.items():
            stray = [name for name in names if getattr(self, name) is not None and kind not in others]
            if stray:
                raise InputError(
                    f"{flag_of(stray[0])} is for {' and '.join(others)}, but {inputs[0]} is read as {kind}"
                )
        return kind

    def check_used(self, *inputs: Path) -> None:
        """Data sets on disk were read when they were made: if all are folders, what says how to read is an error."""
        if not inputs or not all(path.is_dir() for path in inputs):
            return
        given = [field.name for field in fields(self) if getattr(self, field.name) != field.default]
        if given:
            flag = flag_of(given[0])
            raise InputError(f"{flag} is for files, but {inputs[0]} is a folder: its rows have been read before")

    def source(self, inputs: list[Path], memory: str, seed: int, known: dict, scratch: Path):
        """(source, options of `ingest`) for the inputs; `known` is the description of a data set they must fit."""
        from sketchnet.data.ingestion import SHARD_ENTRIES
        from sketchnet.data.sources import NpzSource

        kind, budget = self.kind(inputs, known), parse_memory(memory)
        shard_entries = min(SHARD_ENTRIES, budget // 2 // _ENTRY_BYTES)
        if shard_entries < 1 << 16:
            raise InputError(f"--memory {memory} is too little; give at least {format_memory(_ENTRY_BYTES << 17)}")
        width = self.columns if self.columns is not None else known.get("columns")
        limits = line_limits(kind, budget)
        if kind == "svmlight":
            source = _svmlight(inputs, self, min(16 << 20, budget // 32), width, known, limits)
        elif kind == "text":
            source, width = _text(inputs, self, seed, max(1 << 14, budget // 2 // _NGRAM_BYTES), known, limits), None
        elif kind == "table":
            source, width = _table(inputs, self, seed, known, limits), None
        else:
            source = NpzSource(inputs, scratch=scratch)
        return source, {"n_columns": width, "shard_entries": shard_entries}


def line_limits(kind: str, budget: int):
    """Return the limits of a file of that format: half of the budget is for its longest line, half for unpacking."""
    from sketchnet.data.compression import USUAL, Limits

    return Limits(min(USUAL.line, budget // 2 // _LINE_BYTES[kind]), budget // 2)


def takes_input_options(verb: Callable) -> Callable:
    """The verb as typer sees it: with the fields of InputOptions in place of its parameter `options`."""
    fields, hints = inspect.signature(InputOptions).parameters, get_type_hints(InputOptions, include_extras=True)

    def command(**given):
        options = InputOptions(**{name: given.pop(name) for name in fields})
        return verb(options=options, **given)

    own = {**inspect.signature(verb).parameters}
    del own["options"]
    own_hints = get_type_hints(verb, include_extras=True)
    parameters = {**own, **fields}
    keyword = inspect.Parameter.KEYWORD_ONLY
    command.__annotations__ = {name: {**hints, **own_hints}[name] for name in parameters}
    shown = [p.replace(kind=keyword, annotation=command.__annotations__[n]) for n, p in parameters.items()]
    vars(command)["__signature__"] = inspect.Signature(shown)
    command.__name__, command.__doc__ = verb.__name__, verb.__doc__
    return command


def _kind(inputs: list[Path], given: str, known: dict) -> str:
    from sketchnet.data.compression import SUFFIXES

    formats = sorted({*_FORMATS.values(), "text"})
    if given != "auto":
        if given not in formats:
            raise InputError(f"--format {given} is not possible; it is auto, {', '.join(formats)}")
        return given
    kinds, unknown = set[Any](), list[Path]()
    for path in inputs:
        suffixes = [suffix for suffix in path.suffixes if suffix not in SUFFIXES]
        kind = _FORMATS.get(suffixes[-1] if suffixes else "")
        kinds.add(kind)
        unknown += [path] if kind is None else []
    if "hasher" in known:
        named = kinds - {None}
        if named and not all(".tsv" in path.suffixes for path in inputs):
            raise InputError(f"{inputs[0]} is named as {named.pop()}, but its like was text; give --text if it is text")
        return "text"
    if len(kinds) > 1 and None not in kinds:
        raise InputError(
            f"{inputs[0]} and the others have several formats: {', '.join(sorted(kinds))}; give those of one"
        )
    if None in kinds:
        for path in inputs:
            if not path.exists():
                raise MissingFile(f"there is no file {path}")
        raise InputError(f"the names do not tell the format of {unknown[0]}; give --format {', '.join(formats)}")
    return kinds.pop()


def _svmlight(inputs, options: InputOptions, chunk_bytes: int, n_columns: int | None, known: dict, limits):
    from sketchnet.data.sources import SvmlightSource

    base = options.base
    if base not in (None, "auto", "0", "1"):
        raise InputError(f"--base {base} is not possible; it is auto, 0 or 1")
    base = known.get("base", "auto") if base in (None, "auto") else int(base)
    labels = options.labels or known.get("labels", "auto")
    on_error = "skip" if options.skip_bad_lines else "raise"
    return SvmlightSource(
        inputs, base=base, labels=labels, on_error=on_error, chunk_bytes=chunk_bytes, n_columns=n_columns, limits=limits
    )


def _text(inputs, options: InputOptions, seed: int, chunk_bytes: int, known: dict, limits):
    from sketchnet.data.ngrams import NgramHasher
    from sketchnet.data.sources import TextSource

    law: dict = {
        "analyzer": options.analyzer,
        "ngram_range": None if options.ngrams is None else _range(options.ngrams),
        "n_columns": options.columns,
        "counts": None if options.binary is None else not options.binary,
        "lowercase": options.lowercase,
        "norm": options.norm,
    }
    usual = {"analyzer": "char", "ngram_range": [1, 6], "n_columns": 2**24, "counts": True, "lowercase": False}
    law = _agreed(law, known.get("hasher"), {**usual, "norm": None, "seed": seed})
    fields = {"text_column": options.text_column, "label_column": options.label_column}
    learnt = {"classes": known["classes"]} if "classes" in known else {}
    return TextSource(
        inputs,
        NgramHasher(**law).fit(),
        **fields,
        where=_condition(options.where),
        header=bool(options.header),
        chunk_bytes=min(1 << 20, chunk_bytes),
        learnt=learnt,
        limits=replace(limits, line=limits.line // (law["ngram_range"][1] - law["ngram_range"][0] + 1)),
    )


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


def _table(inputs, options: InputOptions, seed: int, known: dict, limits):
    from sketchnet.data.parquet import is_sparse
    from sketchnet.data.sources import TableSource
    from sketchnet.data.tables import MISSING, TableEncoder

    label, columns = options.label, options.columns
    if columns is None and not known.get("encoder") and is_sparse(inputs[0]):
        columns = known.get("columns")
    named = {"categorical": options.categorical, "ignore": options.ignore}
    missing = None if options.missing is None else [*MISSING, *sorted(options.missing)]
    if known.get("encoder"):
        encoder = TableEncoder.from_dict(known["encoder"])
        _agreed({"n_columns": columns, "missing": missing, "group": options.group_column}, known["encoder"], {})
        for option, names in named.items():
            for name in names or []:
                learnt = encoder.kinds_.get(name)
                if learnt is None and option == "categorical":
                    raise InputError(f"--{option} {name} is not possible: the training rows have no such column")
                if learnt not in (None, option):  # what was not there can be left out
                    raise InputError(f"--{option} {name} is not how the training rows were read: it was {learnt} there")
        encoder.ignore += [name for name in options.ignore or [] if name not in encoder.ignore]
    else:
        how: dict[str, Any] = {**named, "missing": missing, "group": options.group_column}
        how = {name: given for name, given in how.items() if given is not None}
        encoder = TableEncoder(label, n_columns=columns, seed=seed, **how)
    csv = {"header": True} if options.header else {}
    return TableSource(inputs, encoder, label=label, n_columns=columns, limits=limits, **csv)


def _said(name: str, learnt: dict) -> str:
    """What was learnt, as options say it."""
    from sketchnet.data.tables import MISSING

    flag, value = flag_of(name), learnt[name]
    if name == "missing":
        value = ", ".join(text for text in value if text not in MISSING)
    elif name == "ngram_range":
        value = "-".join(map(str, value))
    elif name == "counts":
        value = not value
    if value in (None, False, ""):
        return f"there was no {flag} there"
    return f"it was {flag}{'' if value is True else f' {value}'} there"


def _agreed(given: dict, learnt: dict | None, usual: dict) -> dict:
    """What options say, or what was learnt from other rows, which they must not contradict, or what is usual."""
    given = {name: value for name, value in given.items() if value is not None}
    if not learnt:
        return {**usual, **given}
    for name, value in given.items():
        if value != learnt[name]:
            learnt = _said(name, learnt)
            raise InputError(f"{flag_of(name)} is not how the training rows were read: {learnt}")
    return learnt
