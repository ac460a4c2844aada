"""Sparse rows written as Parquet: read back the same, or nothing is changed."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sketchnet.data.csr import CsrBatch
from sketchnet.data.parquet_writing import write_parquet
from sketchnet.errors import InputError, StorageError
from tests.data.parquet_files import batch_of, equal, read


@st.composite
def batches(draw):
    def some(dtypes, n, **elements):
        dtype = np.dtype(draw(st.sampled_from(dtypes)))
        return draw(
            hnp.arrays(dtype, int(n), elements=hnp.from_dtype(dtype, allow_nan=False, allow_infinity=False, **elements))
        )

    lengths = draw(st.lists(st.integers(0, 4), max_size=6))
    indptr = np.cumsum([0, *lengths], dtype=np.int64)
    ids = some(["i4", "i8", "u4", "u8", "i2"], indptr[-1], min_value=0, max_value=2**15 - 1)
    values = some(["f4", "f8", "f2", "i1", "u8", "?"], indptr[-1])
    labels = label_indptr = None
    kind = draw(st.sampled_from(["none", "one", "several"]))
    if kind == "one":
        labels = some(["f8", "i8", "u1", "?"], len(lengths))
    elif kind == "several":
        label_indptr = np.cumsum([0, *draw(st.lists(st.integers(0, 3), min_size=len(lengths), max_size=len(lengths)))])
        labels = some(["f8", "i8"], label_indptr[-1])
    groups = some(["i8", "u8"], len(lengths)) if draw(st.booleans()) else None
    return CsrBatch(indptr, ids, values, draw(st.integers(2**15, 2**63)), labels, label_indptr, groups)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=batches())
def test_round_trip(batch, tmp_path):
    write_parquet(tmp_path / "x.parquet", batch)
    got = read(tmp_path / "x.parquet")
    assert len(got) == (1 if batch.n_rows else 0)
    assert all(equal(x, batch) for x in got)
    assert os.listdir(tmp_path) == ["x.parquet"]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (batch_of([[1], [100]]), "batch 1 has ids beyond 0 to 99"),
        (batch_of([[-1]]), "batch 1 has ids beyond 0 to 99"),
        (batch_of([[1]], np.array([np.nan], np.float32)), "batch 1 has values that are not finite"),
        (batch_of([[1]], np.ones(2, np.float32)), "batch 1 has 1 column ids but 2 values"),
        (batch_of([[1]], dtype=np.int32), "batch 1 has other columns than batch 0: indices large_list<item: int32>"),
        (batch_of([[1]], n_columns=101), "batch 1 has other columns than batch 0: .*101 columns; before.*100 columns"),
        (batch_of([[1]], labels=np.ones(1)), "batch 1 has other columns than batch 0"),
    ],
)
def test_a_failed_write_leaves_the_old_file(batch, message, tmp_path):
    path = tmp_path / "x.parquet"
    old = batch_of([[1, 2]])
    write_parquet(path, old)
    with pytest.raises(InputError, match=message):
        write_parquet(path, [batch_of([[4]]), batch])
    assert equal(read(path)[0], old)
    assert os.listdir(tmp_path) == ["x.parquet"]


def full_disk():
    yield batch_of([[1]])
    raise OSError(28, "No space left on device")


def test_other_failures_of_writing(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="no batches to write"):
        write_parquet(tmp_path / "x.parquet", [])
    with pytest.raises(StorageError, match="cannot write"):
        write_parquet(tmp_path / "no" / "x.parquet", batch_of([[1]]))
    with pytest.raises(StorageError, match="no room on the disk"):
        write_parquet(tmp_path / "x.parquet", full_disk())
    assert os.listdir(tmp_path) == []
