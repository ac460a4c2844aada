"""Small Parquet files; tests that take them need the extra."""

import numpy as np
import pytest

from sketchnet.data.csr import CsrBatch
from sketchnet.data.parquet import read_parquet_batches

pa = pytest.importorskip("pyarrow", reason="the extra 'parquet' is not installed")
pq = pytest.importorskip("pyarrow.parquet")

FIELDS = ("indptr", "indices", "values", "labels", "label_indptr", "groups")
TABLE = {
    "colour": ["red", None, "blue", "", "red"],
    "size": [1, None, 0, 4, 5],
    "weight": [0.5, 1.5, None, 2.5, 0.0],
    "class": ["cat", "dog", "cat", "bird", "dog"],
}


def put(tmp_path, columns, **options):
    path = tmp_path / "a.parquet"
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path, **options)
    return path


def read(path, **options):
    return list(read_parquet_batches(path, **options))


def batch_of(lists, values=None, n_columns=100, dtype=np.int64, **more):
    indptr = np.cumsum([0, *map(len, lists)])
    flat = np.array([i for row in lists for i in row], dtype)
    values = np.arange(1, len(flat) + 1, dtype=np.float32) if values is None else values
    return CsrBatch(indptr, flat, values, n_columns, **more)


def equal(a: CsrBatch, b: CsrBatch) -> bool:
    pairs = [(getattr(a, name), getattr(b, name)) for name in FIELDS]
    return a.n_columns == b.n_columns and all(
        x is y or (x is not None and y is not None and x.dtype == y.dtype and np.array_equal(x, y)) for x, y in pairs
    )
