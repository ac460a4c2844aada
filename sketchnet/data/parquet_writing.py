"""Sparse rows to Parquet files, as list columns of ids and values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import numpy as np

from sketchnet.checks import import_extra
from sketchnet.data.csr import CsrBatch
from sketchnet.data.parquet import METADATA, columns_in
from sketchnet.errors import InputError
from sketchnet.storage import replacing

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:  # an extra, asked for when a file is
    pass

_GROUP_ROWS, _GROUP_ENTRIES = 1 << 16, 1 << 22  # of a row group that we write, about


def write_parquet(
    path: str | Path,
    batches: CsrBatch | Iterable[CsrBatch],
    *,
    indices: str = "indices",
    values: str = "values",
    label: str = "label",
    group: str = "group",
    compression: str = "zstd",
) -> None:
    """Write sparse rows as list columns. The file is whole or absent: it is written beside its place, then renamed."""
    import_extra("pyarrow", "parquet", "writing Parquet")
    path = Path(path)
    names = {"indices": indices, "values": values, "label": label, "group": group}
    try:
        with replacing(path) as new, open(new, "wb") as file:
            _write(file, [batches] if isinstance(batches, CsrBatch) else batches, names, compression)
    except pa.ArrowException as error:
        raise InputError(f"cannot write {path}: {error}") from None


def _write(file, batches: Iterable[CsrBatch], names: dict[str, str], compression: str) -> None:
    batches = iter(batches)
    first = next(batches, None)
    if first is None:
        raise InputError("there are no batches to write, so the columns are not known; write an empty batch")
    schema = _table(first, names, 0).schema
    with pq.ParquetWriter(file, schema, compression=compression, write_page_checksum=True) as writer:
        waiting, n_rows, n_entries = [], 0, 0  # small batches are gathered: a row group each would be slow to read
        for number, batch in enumerate(chain([first], batches)):
            table = _table(batch, names, number)
            if not table.schema.equals(schema, check_metadata=True):
                raise InputError(
                    f"batch {number} has other columns than batch 0: "
                    f"{_described(table.schema)}; before: {_described(schema)}"
                )
            waiting.append(table)
            n_rows, n_entries = n_rows + batch.n_rows, n_entries + len(batch.indices)
            if n_rows >= _GROUP_ROWS or n_entries >= _GROUP_ENTRIES:
                writer.write_table(pa.concat_tables(waiting), row_group_size=2 * _GROUP_ROWS)
                waiting, n_rows, n_entries = [], 0, 0
        if n_rows:
            writer.write_table(pa.concat_tables(waiting))


def _described(schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema) + f", {columns_in(schema)} columns"


def _table(batch: CsrBatch, names: dict[str, str], number: int):
    """An Arrow table of a batch, without copying its entries. Refuses what could not be read again."""
    ids, x = np.asarray(batch.indices), np.asarray(batch.values)
    for bad, what in (
        (len(ids) != len(x), f"has {len(ids)} column ids but {len(x)} values"),
        (len(ids) and (ids.min() < 0 or ids.max() >= batch.n_columns), f"has ids beyond 0 to {batch.n_columns - 1}"),
        (x.dtype.kind == "f" and not np.isfinite(x).all(), "has values that are not finite"),
    ):
        if bad:
            raise InputError(f"batch {number} {what}")
    columns = {names["indices"]: _list_array(batch.indptr, ids), names["values"]: _list_array(batch.indptr, x)}
    if batch.label_indptr is not None:
        columns[names["label"]] = _list_array(batch.label_indptr, np.asarray(batch.labels))
    elif batch.labels is not None:
        columns[names["label"]] = pa.array(np.asarray(batch.labels))
    if batch.groups is not None:
        columns[names["group"]] = pa.array(np.asarray(batch.groups))
    return pa.table(columns).replace_schema_metadata({METADATA: json.dumps({"n_columns": batch.n_columns})})


def _list_array(indptr: np.ndarray, flat: np.ndarray):
    offsets = np.asarray(indptr).astype(np.int64) - int(indptr[0])
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(flat[: offsets[-1]]))
