"""Sparse rows to Parquet files, as list columns of ids and values: what the reader is to read back."""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from sketchnet.data.csr import CsrBatch
from sketchnet.data.parquet import METADATA

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:  # an extra: tests that call what follows skip without it
    pass

GROUP_ROWS = 1 << 16


def write_parquet(
    path: str | Path,
    batches: CsrBatch | Iterable[CsrBatch],
    *,
    indices: str = "indices",
    values: str = "values",
    label: str = "label",
    group: str = "group",
    compression: str = "zstd",
    group_rows: int = GROUP_ROWS,
) -> None:
    names = {"indices": indices, "values": values, "label": label, "group": group}
    batches = [batches] if isinstance(batches, CsrBatch) else batches
    table = pa.concat_tables([_table(batch, names) for batch in batches])
    pq.write_table(table, path, row_group_size=group_rows, compression=compression, write_page_checksum=True)


def _table(batch: CsrBatch, names: dict[str, str]):
    ids, x = np.asarray(batch.indices), np.asarray(batch.values)
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
