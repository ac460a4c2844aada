"""Sparse rows of every type in Parquet are read back the same."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sketchnet.data.csr import CsrBatch
from tests.data.parquet_files import equal, read
from tests.data.parquet_writing import write_parquet


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
