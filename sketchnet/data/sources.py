"""Sources that `ingest` reads: each names its job and gives chunks of rows with the position behind them.

A state is {"file": number of the input file, ...}, so that several inputs are read one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from sketchnet.data.csr import CsrBatch, as_csr
from sketchnet.data.synthetic import Synthetic
from sketchnet.errors import InputError


class SyntheticSource:
    """A part of the dissertation's synthetic data."""

    def __init__(self, data: Synthetic, part: str, rows_per_chunk: int = 1 << 16):
        self._data, self._part, self._rows_per_chunk = data, part, rows_per_chunk
        self._span = slice(0, data.n_train) if part == "train" else slice(data.n_train, data.n)

    def job(self) -> dict:
        names = ("n", "d", "density", "significant", "seed")
        return {"synthetic": {name: getattr(self._data, name) for name in names}, "part": self._part}

    def chunks(self, state: dict | None) -> Iterator[tuple[CsrBatch, dict]]:
        start = self._span.start if state is None else state["row"]
        for batch in self._data.chunks(slice(start, self._span.stop), self._rows_per_chunk):
            start += batch.n_rows
            yield batch, {"row": start}

    def description(self, state: dict | None) -> dict:
        return {"classes": ["0", "1"]}

    def done(self, state: dict) -> float:
        return (state["row"] - self._span.start) / max(1, self._span.stop - self._span.start)


class FileSource:
    """What sources of files share: the files in order, each from its beginning or from where a state says."""

    def __init__(self, paths: Sequence[str | Path], **options):
        self.paths, self.options = [Path(path) for path in paths], options
        for path in self.paths:
            if not path.is_file():
                raise InputError(f"there is no file {path}")
        self._sizes = [path.stat().st_size for path in self.paths]

    def job(self) -> dict:
        files = [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in self.paths]
        return {"source": type(self).__name__, "files": files, **self.options}

    def chunks(self, state: dict | None) -> Iterator[tuple[CsrBatch, dict]]:
        first = 0 if state is None else state["file"]
        for number in range(first, len(self.paths)):
            # what a file has learnt (its base, its classes) holds for the next; its position does not
            carried = {} if state is None else {key: state[key] for key in state.keys() - {"at"}}
            at = state["at"] if state is not None and state["file"] == number else None
            for batch, position, learnt in self._read(self.paths[number], at, carried):
                state = {**carried, **learnt, "file": number, "at": position}
                yield batch, state

    def _read(self, path: Path, at, carried: dict) -> Iterator[tuple[CsrBatch, object, dict]]:
        """(rows, position behind them, what was learnt) of one file, from position `at` on."""
        raise NotImplementedError

    def description(self, state: dict | None) -> dict:
        return {}

    def done(self, state: dict) -> float | None:
        """By bytes, where positions are bytes of a plain file; by files otherwise."""
        before, all_bytes = sum(self._sizes[: state["file"]]), max(1, sum(self._sizes))
        at = state["at"][0] if isinstance(state["at"], list) else 0
        inside = at if at <= self._sizes[state["file"]] else 0
        return (before + inside) / all_bytes if inside or len(self.paths) > 1 else None


class SvmlightSource(FileSource):
    """svmlight text. Options: base, dtype, on_error, chunk_bytes (see `SvmlightReader`)."""

    def _read(self, path, at, carried):
        from sketchnet.data.svmlight import SvmlightReader

        options = {**self.options, "base": carried.get("base", self.options.get("base", "auto"))}
        reader = SvmlightReader(path, **options, start=tuple(at or (0, 1)))
        skipped = carried.get("skipped", 0)
        for batch in reader:
            width = int(batch.indices.max(initial=-1)) + 1  # of this chunk, so that it does not depend on earlier ones
            batch = CsrBatch(*batch.arrays, width, batch.labels, batch.label_indptr, batch.groups)
            yield batch, [reader.offset, reader.line], {"base": reader.base, "skipped": skipped + reader.skipped}

    def description(self, state):
        return {"skipped_lines": (state or {}).get("skipped", 0)}


class NpzSource(FileSource):
    """scipy .npz files. No options."""

    def _read(self, path, at, carried):
        from sketchnet.data.npz import open_npz

        X, _ = open_npz(path, path.absolute().parent)
        X = as_csr(X, X.n_columns)
        for start in range((at or [0])[0], X.n_rows, 1 << 14):
            stop = min(X.n_rows, start + (1 << 14))
            yield X.rows(slice(start, stop)), [stop], {}


class TextSource(FileSource):
    """Strings, one a line, hashed by a NgramHasher.

    With `text_column` lines are cut at tabs, and that field (counted from 1) is the string; `label_column` has labels,
    and `where` = [column, text] keeps only the lines with that text there. Labels that are numbers in the first chunk
    stay numbers; others are names of classes, numbered as they come.
    """

    def __init__(self, paths, hasher, *, text_column=None, label_column=None, where=None, chunk_bytes=1 << 22):
        super().__init__(paths, text_column=text_column, label_column=label_column, where=where)
        if text_column is None and (label_column is not None or where is not None):
            raise InputError("a label column or a condition needs a text column, in lines of tab-separated fields")
        self._hasher, self._chunk_bytes = hasher, chunk_bytes
        self.options |= {"hasher": hasher.get_params(), "chunk_bytes": chunk_bytes}
        self.options["hasher"]["ngram_range"] = list(hasher.ngram_range)

    def _read(self, path, at, carried):
        from sketchnet.data.compression import line_blocks

        offset, line = at or (0, 1)
        for block in line_blocks(path, self._chunk_bytes, offset):
            lines = block.buffer[: block.size].tobytes().split(b"\n")[:-1]
            strings, labels = self._fields(path, line, lines)
            numbers = None
            if self.options["label_column"] is not None:
                numbers, carried = _numbered(path, labels, carried)
            offset, line = block.end, line + len(lines)
            yield self._hasher.batch(strings, numbers), [offset, line], carried

    def _fields(self, path: Path, first_line: int, lines: list[bytes]) -> tuple[list, list]:
        text, label, where = (self.options[name] for name in ("text_column", "label_column", "where"))
        strings, labels = [], []
        for number, line in enumerate(lines, start=first_line):
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
                strings.append(fields[text - 1])
                labels += [(fields[label - 1], number)] if label else []
        return strings, labels

    def description(self, state):
        classes = (state or {}).get("classes")
        return {"hasher": self.options["hasher"], **({"classes": classes} if classes else {})}


def _numbered(path: Path, labels: list[tuple[str, int]], carried: dict) -> tuple[np.ndarray, dict]:
    """Labels as numbers, and what was learnt: whether they are numbers by themselves, or the classes so far."""
    if labels and "classes" not in carried:
        numeric = all(_is_number(text) for text, _ in labels)
        carried = {**carried, "classes": None if numeric else []}
    if carried.get("classes") is None:
        for text, line in labels:
            if not _is_number(text):
                raise InputError(f"{path}:{line}: label {text!r} is not a number, as the labels before it are")
        return np.array([float(text) for text, _ in labels]), carried
    classes = {name: number for number, name in enumerate(carried["classes"])}
    numbers = np.array([classes.setdefault(text, len(classes)) for text, _ in labels], np.int64)
    return numbers, {**carried, "classes": list(classes)}


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


class TableSource(FileSource):
    """CSV, TSV or Parquet files, encoded by a TableEncoder; Parquet with list columns of ids needs none."""

    def __init__(self, paths, encoder, *, chunk_rows: int = 1 << 13, **options):
        super().__init__(paths, chunk_rows=chunk_rows, **options)
        self._encoder = encoder
        self.options["encoder"] = {k: v for k, v in encoder.to_dict().items() if not k.endswith("_")}
        self._fitted = encoder.n_columns is not None

    def _read(self, path, at, carried):
        from sketchnet.data.csv_files import read_csv_batches
        from sketchnet.data.parquet import read_parquet_batches

        is_parquet = path.suffix == ".parquet"
        if not self._fitted and not (is_parquet and _has_ids(path)):
            self._fit()
        rows = (at or [0])[0]
        how = {"chunk_rows": self.options["chunk_rows"], "start_row": rows}
        read = read_parquet_batches if is_parquet else read_csv_batches
        for batch in read(path, self._encoder, **how):
            rows += batch.n_rows
            yield batch, [rows], {"classes": self._encoder.classes_ or None}

    def _fit(self) -> None:
        from sketchnet.data.csv_files import fit_csv
        from sketchnet.data.parquet import fit_parquet

        parquet = [path.suffix == ".parquet" for path in self.paths]
        if any(parquet) and not all(parquet):
            raise InputError("Parquet and text tables cannot be one-hot encoded together; give a number of columns")
        (fit_parquet if all(parquet) else fit_csv)(self.paths, self._encoder)
        self._fitted = True

    def done(self, state: dict) -> float | None:
        return sum(self._sizes[: state["file"]]) / max(1, sum(self._sizes)) if len(self.paths) > 1 else None

    def description(self, state):
        classes = (state or {}).get("classes")
        return {"encoder": self._encoder.to_dict(), **({"classes": classes} if classes else {})}


def _has_ids(path: Path) -> bool:
    from sketchnet.data.parquet import is_sparse

    return is_sparse(path)
