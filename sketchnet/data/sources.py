"""Sources that `ingest` reads: each names its job and gives chunks of rows with the position behind them.

Several files are read one after the other: a state says in which file it is, where, and what was learnt so far.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from sketchnet.data.compression import USUAL, Block, Limits, line_blocks
from sketchnet.data.csr import CsrBatch, as_csr, real_values
from sketchnet.data.csv_files import fit_csv, read_csv_batches
from sketchnet.data.parquet import fit_parquet, is_sparse, read_parquet_batches
from sketchnet.data.synthetic import Synthetic
from sketchnet.data.table_chunks import is_number
from sketchnet.data.tables import MISSING, TableEncoder
from sketchnet.errors import BadRows, Contradiction, InputError, MissingFile
from sketchnet.storage import check_regular

_MARK = b"\xef\xbb\xbf"  # of UTF-8: some programs put it in front of any text


class SyntheticSource:
    """A part of the dissertation's synthetic data."""

    def __init__(self, data: Synthetic, part: str, rows_per_chunk: int = 1 << 16):
        self._data, self._part, self._rows_per_chunk = data, part, rows_per_chunk
        self._span = slice(0, data.n_train) if part == "train" else slice(data.n_train, data.n)

    def job(self) -> dict:
        names = ("n", "d", "density", "significant", "seed")
        data = {name: getattr(self._data, name) for name in names}
        return {"synthetic": data, "part": self._part, "rows_per_chunk": self._rows_per_chunk}

    def chunks(self, state: dict | None) -> Iterator[tuple[CsrBatch, dict]]:
        start = self._span.start if state is None else state["row"]
        for batch in self._data.chunks(slice(start, self._span.stop), self._rows_per_chunk):
            start += batch.n_rows
            yield batch, {"row": start}

    def description(self, state: dict | None) -> dict:
        return {"classes": ["0", "1"]}

    def done(self, state: dict) -> float:
        return (state["row"] - self._span.start) / max(1, self._span.stop - self._span.start)

    def where(self, state: dict) -> str:
        return ""


class FileSource(ABC):
    """What sources of files share: the files in order, each from its beginning or from where a state says.

    `learnt` is what an earlier data set taught (the base of its ids, its classes), so that this one fits it. `limits`
    are what a file may ask of the memory; they change no row, so they are no part of the job.
    """

    def __init__(self, paths: Sequence[str | Path], *, learnt: dict | None = None, limits: Limits = USUAL, **options):
        self.paths, self.options, self.learnt = [Path(path) for path in paths], options, learnt or {}
        self.limits = limits
        for path in self.paths:
            if not path.exists():
                raise MissingFile(f"there is no file {path}")
            check_regular(path)
        self._sizes = [path.stat().st_size for path in self.paths]
        self._inside = 0.0  # fraction of the file at hand that has been read

    def job(self) -> dict:
        files = [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in self.paths]
        return {"source": type(self).__name__, "files": files, "learnt": self.learnt, **self.options}

    def chunks(self, state: dict | None) -> Iterator[tuple[CsrBatch, dict]]:
        for number in range(0 if state is None else state["file"], len(self.paths)):
            # What was learnt from a file holds for the next one too; the position in it does not.
            learnt = self.learnt if state is None else state["learnt"]
            at = state["at"] if state is not None and state["file"] == number else None
            self._inside = 0.0
            for batch, position, learnt in self._read(self.paths[number], at, learnt):  # noqa: B020 (it grows)
                state = {"file": number, "at": position, "learnt": learnt}
                yield batch, state

    @abstractmethod
    def _read(self, path: Path, at: list | None, learnt: dict) -> Iterator[tuple[CsrBatch, list, dict]]:
        """(rows, position behind them, what was learnt so far) of one file, from position `at` on."""

    def description(self, state: dict | None) -> dict:
        return dict(self.learnt if state is None else state["learnt"])

    def done(self, state: dict) -> float | None:
        """By bytes of the files as they lie on the disk."""
        before = sum(self._sizes[: state["file"]])
        return min(1.0, (before + self._inside * self._sizes[state["file"]]) / max(1, sum(self._sizes)))

    def where(self, state: dict) -> str:
        return f"{self.paths[state['file']]}: {'of all rows, ' if len(self.paths) > 1 else ''}"


class SvmlightSource(FileSource):
    """svmlight text. Options: base, labels, dtype, on_error, chunk_bytes (see `SvmlightReader`).

    `n_columns` is the width that `ingest` is given too: the reader can say in which line an id is beyond it.

    What is "auto" is decided by all rows of all files, as `read_svmlight` does. The first chunk decides for the time
    being; if a later one contradicts, the `Contradiction` has what is `certain` when all is read again.
    """

    def __init__(self, paths, *, n_columns: int | None = None, **options):
        super().__init__(paths, **options)
        self._n_columns = n_columns

    def _read(self, path, at, learnt):
        from sketchnet.data.svmlight import SvmlightReader

        so_far = learnt if "groups" in learnt else None
        certain, skipped = learnt.get("certain", {}), learnt.get("skipped_lines", 0)
        options = {**self.options, **certain, "n_columns": self._n_columns}
        if options.get("on_error") == "skip":  # but not lines with an id that is too large
            options["on_error"] = "skip_malformed"
        reader = SvmlightReader(path, **options, start=tuple(at or (0, 1)), so_far=so_far, limits=self.limits)
        try:
            for batch in reader:
                self._inside = reader.bytes_read / max(1, path.stat().st_size)
                width = int(batch.indices.max(initial=-1)) + 1  # of this chunk, not of earlier ones too
                learnt = {**(reader.so_far or {}), "certain": certain, "skipped_lines": skipped + reader.skipped}
                yield replace(batch, n_columns=width), [reader.offset, reader.line], learnt
        except Contradiction as error:
            error.learnt = {"certain": {**certain, **self._understood(error, certain)}}
            raise

    def _understood(self, error: Contradiction, certain: dict) -> dict:
        """What rows that contradict those before them say for certain; an error if nothing makes sense of them."""
        from sketchnet.data.svmlight import some_row_has_several_labels

        if error.learnt is None and not some_row_has_several_labels(self.paths, **{**self.options, **certain}):
            raise InputError(str(error)) from None
        return error.learnt or {"labels": "multi"}

    def description(self, state):
        told = super().description(state)
        return {name: told[name] for name in ("base", "labels", "skipped_lines") if name in told}


class NpzSource(FileSource):
    """scipy .npz files; compressed ones unpack to a nameless file in the folder `scratch`."""

    def __init__(self, paths, scratch: str | Path):
        super().__init__(paths)
        self._scratch = scratch

    def _read(self, path, at, learnt):
        from sketchnet.data.npz import open_npz

        X, _ = open_npz(path, self._scratch)
        try:
            X = as_csr(X, X.n_columns)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        row = (at or [0])[0]
        while row < X.n_rows:
            longest = int(np.searchsorted(X.indptr, X.indptr[row] + (1 << 20), side="right")) - 1
            stop = min(max(longest, row + 1), row + (1 << 16), X.n_rows)
            self._inside = stop / X.n_rows
            yield X.rows(slice(row, stop)), [stop], learnt
            row = stop


class TextSource(FileSource):
    """Strings, one a line, hashed by a NgramHasher.

    With `text_column` lines are cut at tabs, and that field (counted from 1) is the string; `label_column` has labels,
    and `where` = [column, text] keeps only the lines with that text there. If the first labels are numbers, all must
    be; others are names of classes, numbered as they come. With `header` each file's first line is left out.
    """

    def __init__(
        self,
        paths,
        hasher,
        *,
        text_column=None,
        label_column=None,
        where=None,
        header=False,
        chunk_bytes=1 << 19,
        learnt=None,
        limits: Limits = USUAL,
    ):
        if text_column is None and (label_column is not None or where is not None):
            raise InputError("a label column or a condition needs a text column, in lines of tab-separated fields")
        params = hasher.get_params()
        fields = {"text_column": text_column, "label_column": label_column, "where": where, "header": header}
        super().__init__(paths, learnt=learnt, limits=limits, hasher=params, chunk_bytes=chunk_bytes, **fields)
        self._hasher = hasher

    def _read(self, path, at, learnt):
        offset, line = at or (0, 1)
        for block in line_blocks(path, self.options["chunk_bytes"], offset, limits=self.limits):
            self._inside = block.read / max(1, path.stat().st_size)
            lines = _lines(block)
            strings, labels = self._fields(path, line, lines)
            numbers = None
            if self.options["label_column"] is not None:
                numbers, learnt = self._numbered(path, labels, learnt)
            offset, line = block.end, line + len(lines)
            yield self._hasher.batch(strings, numbers), [offset, line], learnt

    def strings(self) -> Iterator[str]:
        """The strings that are hashed, row by row."""
        return (string for strings, _ in self._columns() for string in strings)

    def _columns(self) -> Iterator[tuple[list, list]]:
        """Strings and labels of all files, some lines at a time."""
        for path in self.paths:
            line = 1
            for block in line_blocks(path, self.options["chunk_bytes"], limits=self.limits):
                lines = _lines(block)
                yield self._fields(path, line, lines)
                line += len(lines)

    def _fields(self, path: Path, first_line: int, lines: list[bytes]) -> tuple[list, list]:
        text, label, where = (self.options[name] for name in ("text_column", "label_column", "where"))
        strings, labels = [], []
        for number, line in enumerate(lines, start=first_line):
            if number == 1:  # by its number, since standard input begins elsewhere in what is read
                if self.options["header"]:
                    continue
                line = line.removeprefix(_MARK)
            try:
                line = line.removesuffix(b"\r").decode()
            except UnicodeDecodeError as error:
                raise InputError(f"{path}:{number}:{error.start + 1}: the line is not UTF-8 text") from None
            if text is None:
                strings.append(line)
                continue
            fields = line.split("\t")
            needed = max(text, label or 0, where[0] if where else 0)
            if len(fields) < needed:
                raise InputError(f"{path}:{number}: there are {len(fields)} fields, but field {needed} is asked for")
            if where is None or fields[where[0] - 1] == where[1]:
                if label and fields[label - 1].strip() in MISSING:
                    said = f": {fields[label - 1]!r} says so" if fields[label - 1].strip() else ""
                    raise InputError(f"{path}:{number}: the label is missing{said}")
                strings.append(fields[text - 1])
                labels += [(fields[label - 1], number)] if label else []
        return strings, labels

    def _numbered(self, path: Path, labels: list[tuple[str, int]], learnt: dict) -> tuple[np.ndarray, dict]:
        """Labels as numbers, and what was learnt: whether they are numbers by themselves, or the classes so far."""
        if labels and "classes" not in learnt:
            learnt = {**learnt, "classes": None if all(is_number(text) for text, _ in labels) else []}
        if learnt.get("classes") is not None:
            classes = {name: number for number, name in enumerate(learnt["classes"])}
            numbers = np.array([classes.setdefault(text, len(classes)) for text, _ in labels], np.int64)
            return numbers, {**learnt, "classes": list(classes)}
        for text, line in labels:
            must_be_number = "classes" in self.learnt  # else one label that is none makes names of all
            if not is_number(text):
                message = f"{path}:{line}: label {text!r} is not a number, as the labels before it are"
                raise InputError(message) if must_be_number else Contradiction(message, {"classes": []})
            if abs(float(text)) >= 2.0**53 and text.strip().lstrip("+-").isdigit():
                message = f"{path}:{line}: label {text!r} has more digits than a number keeps, as ids do"
                if must_be_number or all(is_number(text) for _, others in self._columns() for text, _ in others):
                    raise InputError(message)
                raise Contradiction(message, {"classes": []})
        return np.array([float(text) for text, _ in labels]), learnt

    def description(self, state):
        return {"hasher": {**self.options["hasher"]}, **super().description(state)}


def _lines(block: Block) -> list[bytes]:
    text = block.buffer[: block.size].tobytes()
    if block.end == len(_MARK) and text.startswith(_MARK):
        return []  # a file of nothing but a mark: the newline behind it is not its own
    return text.split(b"\n")[:-1]


class TableSource(FileSource):
    """CSV, TSV or Parquet files, encoded by a TableEncoder; Parquet with list columns of ids needs none."""

    def __init__(
        self,
        paths,
        encoder: TableEncoder,
        *,
        label: str | None = None,
        n_columns: int | None = None,
        limits: Limits = USUAL,
        **csv,
    ):
        """`csv` may say {"header": True}: that the first line has the names of the columns."""
        super().__init__(paths, limits=limits, encoder=encoder.to_dict(), label=label, n_columns=n_columns, **csv)
        self._csv = {**csv, "limits": limits}

    def _read(self, path, at, learnt):
        encoder = TableEncoder.from_dict(learnt.get("encoder") or self.options["encoder"])
        rows, options = (at or [0])[0], {"start_row": (at or [0])[0]}
        if is_sparse(path) != is_sparse(self.paths[0]):
            raise InputError(
                f"of {path} and {self.paths[0]} one holds lists of ids, the other a table; read them apart"
            )
        if is_sparse(path):
            if self.options["label"] is not None:
                options["label"] = self.options["label"]
            batches = read_parquet_batches(path, n_columns=self.options["n_columns"], limits=self.limits, **options)
            encoder = None
        else:
            if encoder.n_columns is None and encoder.categories_ is None:
                self._fit(encoder)
            if path.suffix == ".parquet":
                batches = read_parquet_batches(path, encoder, limits=self.limits, **options)
            else:
                batches = read_csv_batches(path, encoder, **options, **self._csv)
        for batch in batches:
            batch, rows = replace(batch, values=real_values(batch.values)), rows + batch.n_rows
            if encoder is not None:
                learnt = {"encoder": encoder.to_dict(), "classes": encoder.classes_ or None}
            yield batch, [rows], learnt

    def done(self, state: dict) -> float | None:
        """By whole files: nobody knows how many rows a table has."""
        return super().done(state) if len(self.paths) > 1 else None

    def _fit(self, encoder: TableEncoder) -> None:
        parquet = [path.suffix == ".parquet" for path in self.paths]
        if any(parquet) and not all(parquet):
            raise InputError("Parquet and text tables cannot be one-hot encoded together; give a number of columns")
        try:
            fit_parquet(self.paths, encoder, self.limits) if all(parquet) else fit_csv(self.paths, encoder, **self._csv)
        except BadRows as error:
            raise InputError(f"{self.paths[0]}: {error}") from None
