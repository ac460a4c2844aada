"""Parquet files: sparse rows in list columns, and tables of categorical and numeric columns.

A sparse table has a list column of ids, one of values (absent: all ones), and a column of labels: numbers, or lists of
numbers where a row has several. A null list is an empty row. Sparse rows of any dtypes read back exactly.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from sketchnet.checks import import_extra
from sketchnet.data.compression import USUAL, Limits
from sketchnet.data.csr import CsrBatch
from sketchnet.data.parquet_claims import check_claims, check_pages
from sketchnet.data.table_chunks import NotANumber, TableChunk, TextColumn, check_names, is_number
from sketchnet.data.tables import TableEncoder
from sketchnet.errors import InputError, Setting
from sketchnet.storage import check_regular

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError:  # an extra, asked for when a file is
    pass

_CHUNK_BYTES = 1 << 24  # of a batch, about
_CHUNK_ROWS = 1 << 16  # of a batch, at most
_BUFFER = 1 << 20  # bytes of a column that are read at a time
_LOOKED_AT = 256  # rows that tell how long rows are
METADATA = b"sketchnet"


def read_parquet_batches(
    path: str | Path,
    encoder: TableEncoder | None = None,
    *,
    indices: str = "indices",
    values: str = "values",
    label: str = "label",
    group: str = "group",
    n_columns: int | None = None,
    chunk_rows: int | None = None,
    start_row: int = 0,
    labels: bool = True,
    limits: Limits = USUAL,
) -> Iterator[CsrBatch]:
    """Rows of a Parquet file as batches, from `start_row` on.

    A file with a list column `indices` is a sparse table: its columns `values`, `label` and `group` are read where
    present, all others are left alone, and `encoder` is not used. Its width is `n_columns`, or what the file's
    metadata say, or one more than its largest id. Any other file is a table for `encoder`, which has its own label.
    """
    with _opened(path, limits) as file:
        schema = file.schema_arrow
        check_names(schema.names, str(path))
        if start_row < 0 or (chunk_rows is not None and chunk_rows < 1):
            raise InputError(f"start_row={start_row}, chunk_rows={chunk_rows} is not allowed; at least 0 and 1 are")
        if start_row > file.metadata.num_rows:
            raise InputError(f"{path} has {file.metadata.num_rows} rows; start_row={start_row} is beyond them")
        if indices in schema.names and _is_list(schema.field(indices).type):
            names = _sparse_columns(path, schema, indices, values, label, group)
            check_pages(Path(path), names.values(), limits.window)
            width = _width(path, file, indices) if n_columns is None else n_columns
            if not 0 <= width <= 2**63:
                raise InputError(f"{path}: n_columns={width} is not allowed; ids are 0 to 2**63 - 1")
            for row, batch in _record_batches(path, file, list(names.values()), chunk_rows, start_row):
                yield _sparse_batch(path, row, {role: batch.column(name) for role, name in names.items()}, width)
        elif encoder is not None:
            for chunk in _chunks(path, file, encoder, chunk_rows, start_row, limits):
                yield encoder.transform(chunk, labels)
        else:
            have = ", ".join(f"{field.name!r} ({field.type})" for field in schema)
            raise InputError(f"{path} has no list column {indices!r}, so it takes a TableEncoder; its columns: {have}")


def is_sparse(path: Path) -> bool:
    """Whether a file is one of Parquet with a list column of ids, so that it needs no encoder."""
    if path.suffix != ".parquet":
        return False
    with _opened(path) as file:
        schema = file.schema_arrow
        return "indices" in schema.names and _is_list(schema.field("indices").type)


def fit_parquet(
    paths: str | Path | Iterable[str | Path], encoder: TableEncoder, limits: Limits = USUAL
) -> TableEncoder:
    """Fit an encoder to the table in one Parquet file or several."""

    def chunks(path):
        with _opened(path, limits) as file:
            yield from _chunks(path, file, encoder, None, 0, limits)

    paths = [paths] if isinstance(paths, str | Path) else paths
    return encoder.fit(chain.from_iterable(map(chunks, paths)))


@contextmanager
def _opened(path: str | Path, limits: Limits = USUAL):
    import_extra("pyarrow", "parquet", "reading Parquet")
    try:
        check_regular(Path(path))
        open(path, "rb").close()
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    try:
        # As dictionaries, the distinct texts come apart for free.
        text = [f.name for f in pq.read_schema(path) if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
        # Buffered, because whole row groups may be larger than memory.
        how = {"read_dictionary": text, "buffer_size": _BUFFER, "pre_buffer": False}
        with pq.ParquetFile(path, page_checksum_verification=True, **how) as file:
            for number in range(file.metadata.num_row_groups):
                group = file.metadata.row_group(number)
                if group.total_byte_size > limits.window * max(1, group.num_rows):
                    size = f"{group.total_byte_size:,} bytes for {group.num_rows:,} rows"
                    raise InputError(f"{path}: row group {number} takes {size}; allowed a row are {limits.window:,}")
            check_claims(Path(path), limits.window)
            yield file
    except InputError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        what = str(error).partition("\n")[0]
        raise InputError(f"{path} is not a whole Parquet file, or of a kind that cannot be read: {what}") from None


def _record_batches(path, file, names: list[str], chunk_rows: int | None, start_row: int):
    """Record batches from a row on, each with the number of its first row. Row groups before it are not read.

    Of the metadata, only what row groups say is looked at: pyarrow ends the process where a column's are damaged.
    Encoded columns may be a tenth of what they unpack to, so the first rows are unpacked to tell how long rows are.
    """
    groups = [file.metadata.row_group(g) for g in range(file.metadata.num_row_groups)]
    n_bytes = max(sum(group.total_byte_size for group in groups), 1) / max(1, file.metadata.num_rows)
    if chunk_rows is None:
        first = next(file.iter_batches(_LOOKED_AT, columns=names), None)
        n_bytes = max(n_bytes, first.nbytes / max(1, first.num_rows) if first is not None else 0)
    size = chunk_rows or max(1, min(_CHUNK_ROWS, int(_CHUNK_BYTES / n_bytes)))
    ends = np.cumsum([0] + [group.num_rows for group in groups], dtype=np.int64)
    first = int(np.searchsorted(ends[1:], start_row, side="right"))
    row = int(ends[first])
    for group in range(first, len(groups)):  # batches begin anew in each, so that they end alike wherever one starts
        for batch in file.iter_batches(size, row_groups=[group], columns=names):
            skipped = min(max(start_row - row, 0), batch.num_rows)
            if batch.num_rows > skipped:
                yield row + skipped, batch.slice(skipped)
            row += batch.num_rows
    if row != file.metadata.num_rows:
        raise InputError(f"{path} is damaged: it has {row} rows, but its metadata say {file.metadata.num_rows}")


# Sparse tables


def _is_list(kind) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _is_real(kind) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _sparse_columns(path, schema, indices: str, values: str, label: str, group: str) -> dict[str, str]:
    """Which column plays which role; a column that was named by the user must be there."""
    names = {"indices": indices}
    for role, name in {"values": values, "label": label, "group": group}.items():
        if name in schema.names:
            names[role] = name
        elif name != role:
            raise InputError(f"{path} has no column {name!r} for the {role}; its columns: {', '.join(schema.names)}")
    for role, name in names.items():
        kind = schema.field(name).type
        inner = kind.value_type if _is_list(kind) and role != "group" else kind
        right = pa.types.is_integer(inner) if role in ("indices", "group") else _is_real(inner)
        if not right or (role == "values" and inner is kind):
            need = {"indices": "lists of integers", "values": "lists of numbers", "group": "integers"}
            allowed = need.get(role, "numbers or lists of numbers")
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind  # texts are read so
            raise InputError(f"{path}: column {name!r} holds {kind}; {role} must be {allowed}")
    return names


def columns_in(schema) -> int | None:
    written = (schema.metadata or {}).get(METADATA)
    return None if written is None else int(json.loads(written)["n_columns"])


def _width(path, file, indices: str) -> int:
    """One more than the largest id: as our own metadata say, or by looking at all of them."""
    try:
        n_columns = columns_in(file.schema_arrow)
    except (ValueError, TypeError, KeyError):
        raise InputError(f"{path}: the metadata {METADATA.decode()!r} are damaged") from None
    if n_columns is not None:
        return n_columns
    ids = (batch.column(indices).flatten() for _, batch in _record_batches(path, file, [indices], None, 0))
    largest = max((pc.max(x).as_py() for x in ids if len(x) > x.null_count), default=-1)
    return min(max(largest + 1, 0), 2**63)  # ids beyond are refused later, with their row


def _sparse_batch(path, first_row: int, columns: dict, n_columns: int) -> CsrBatch:
    def refuse(row: int, what: str):
        raise InputError(f"{path}, row {first_row + row}: {what}")

    indptr, ids = _lists(columns["indices"], "a column id", refuse)

    def refuse_entry(bad: np.ndarray, what: str) -> None:
        if bad.any():
            entry = int(np.argmax(bad))
            refuse(int(np.searchsorted(indptr, entry, side="right")) - 1, what.format(ids[entry]))

    if ids.dtype.kind == "i":
        refuse_entry(ids < 0, "column id {} is negative")
    if n_columns <= np.iinfo(ids.dtype).max:
        refuse_entry(ids >= ids.dtype.type(n_columns), f"column id {{}} is too large; allowed are 0 to {n_columns - 1}")
    if ids.dtype == np.uint64:
        refuse_entry(ids >= np.uint64(2**63), "column id {} is too large; allowed are 0 to 2**63 - 1")
    if "values" in columns:
        offsets, x = _lists(columns["values"], "a value", refuse)
        differ = np.flatnonzero(np.diff(offsets) != np.diff(indptr))
        if len(differ):
            n_ids, n_values = (int(a[differ[0] + 1] - a[differ[0]]) for a in (indptr, offsets))
            refuse(int(differ[0]), f"there are {n_ids} column ids but {n_values} values")
        if x.dtype.kind == "f":
            refuse_entry(~np.isfinite(x), "the value of column {} is not finite")
    else:
        x = np.ones(len(ids), np.float32)
    y = label_indptr = None
    if "label" in columns and _is_list(columns["label"].type):
        label_indptr, y = _lists(columns["label"], "a label", refuse)
    elif "label" in columns:
        y = _flat(columns["label"], "the label", refuse)
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            row = int(np.argmin(np.isfinite(y)))
            refuse(row, f"the label is {y[row]}, which is no finite number")
    groups = _flat(columns["group"], "the group", refuse) if "group" in columns else None
    return CsrBatch(indptr, ids, x, n_columns, y, label_indptr, groups)


def _lists(column, what: str, refuse) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and flat elements. flatten() leaves out what slices and null lists hide."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return indptr, _flat(
        column.flatten(), what, lambda e, why: refuse(int(np.searchsorted(indptr, e, "right")) - 1, why)
    )


def _flat(array, what: str, refuse) -> np.ndarray:
    if array.null_count:
        refuse(int(np.argmax(array.is_null().to_numpy(zero_copy_only=False))), f"{what} is null")
    return array.to_numpy(zero_copy_only=False)


# Tables of categorical and numeric columns


def _unusable(path, name: str, what: str) -> InputError:
    ignoring = Setting("ignore", [name])
    return InputError(f"{path}: column {name!r} holds {what}; {ignoring} leaves it out", ignoring)


class _ArrowColumn:
    """A column of a record batch of the file at `path`; the methods are TextColumn's."""

    def __init__(self, array, path, name: str):
        self._array, self._path, self._name = array, path, name

    def coded(self) -> tuple[list[str], np.ndarray]:
        try:
            return self._coded()
        except pa.ArrowException as error:  # bytes that are no text, a time zone that nobody knows
            what = f"{self._array.type}, of which no categories can be made ({str(error).splitlines()[0]})"
            raise _unusable(self._path, self._name, what) from None

    def _coded(self) -> tuple[list[str], np.ndarray]:
        if self._array.type in (pa.string_view(), pa.binary_view()):  # of which Arrow cannot take single ones
            self._array = self._array.cast(pa.string())
        array = self._array if pa.types.is_dictionary(self._array.type) else self._array.dictionary_encode()
        codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        used, places = np.unique(codes, return_inverse=True)  # the dictionary may be longer than the chunk
        texts = array.dictionary.take(pa.array(used[used >= 0]))
        if pa.types.is_boolean(texts.type):  # spelt as in the text files that Python writes
            texts = pc.if_else(texts, "True", "False")
        texts = texts.cast(pa.string()).to_pylist()
        texts = [None] * (len(used) - len(texts)) + texts  # nulls: those of the column, and any in the dictionary
        distinct = dict.fromkeys(text for text in texts if text is not None)
        number = {text: place for place, text in enumerate(distinct)} | {None: -1}
        return list(distinct), np.array([number[text] for text in texts], np.int64)[places]

    def numbers(self, missing: frozenset[str]) -> tuple[np.ndarray, np.ndarray]:
        if not self.looks_numeric(missing):
            return self._parsed(missing)
        present = self._array.is_valid().to_numpy(zero_copy_only=False)
        values = self._array.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy(zero_copy_only=False)
        bad = ~np.isfinite(values)
        for text, same in (("nan", np.isnan), ("NaN", np.isnan), ("inf", np.isposinf), ("-inf", np.isneginf)):
            if text in missing:  # which has the texts that mean "no value", in any file
                absent = same(values)
                values, present, bad = np.where(absent, 0.0, values), present & ~absent, bad & ~absent
        if bad.any():
            row = int(np.argmax(bad))
            raise NotANumber(row, str(values[row]))
        return values, present

    def _parsed(self, missing: frozenset[str]) -> tuple[np.ndarray, np.ndarray]:
        """Numbers written as text: each distinct text is parsed once."""
        texts, codes = self.coded()
        bad = np.array([text not in missing and not is_number(text) for text in texts] + [False])[codes]
        if bad.any():
            row = int(np.argmax(bad))
            raise NotANumber(row, texts[codes[row]])
        values, present = TextColumn(texts).numbers(missing)
        return np.append(values, 0.0)[codes], np.append(present, False)[codes]

    def looks_numeric(self, missing: frozenset[str]) -> bool:
        """The file's types say it, not the cells."""
        kind = self._array.type
        return _is_real(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)

    def whole(self, row: int) -> str | None:
        value = self._array[row]
        if pa.types.is_decimal(self._array.type):
            number = value.as_py()
            return str(number) if number == number.to_integral_value() else None
        return str(value) if pa.types.is_integer(self._array.type) else None


def _chunks(
    path, file, encoder: TableEncoder, chunk_rows: int | None, start_row: int, limits: Limits
) -> Iterator[TableChunk]:
    schema = file.schema_arrow
    wanted = [field.name for field in schema if field.name not in encoder.ignore]
    for name in wanted:
        if pa.types.is_nested(schema.field(name).type):
            raise _unusable(path, name, f"{schema.field(name).type}, and a table has plain columns")
    check_pages(Path(path), wanted, limits.window)

    def chunk(row: int, batch) -> TableChunk:
        columns: dict[str, Any] = {
            name: _ArrowColumn(batch.column(name), path, name) if name in wanted else None for name in schema.names
        }
        return TableChunk(columns, batch.num_rows, lambda r: f"{path}, row {row + r}")

    encoder.learn_kinds(chunk(0, pa.RecordBatch.from_pylist([], schema)))
    begin = 0 if encoder.numbers_classes else start_row
    for row, batch in _record_batches(path, file, wanted, chunk_rows, begin):
        skipped = min(max(start_row - row, 0), batch.num_rows)
        if skipped:
            encoder.see_classes(chunk(row, batch.slice(0, skipped)))
        if batch.num_rows > skipped:
            yield chunk(row + skipped, batch.slice(skipped))
