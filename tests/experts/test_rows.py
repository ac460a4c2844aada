"""Rows with numbered columns."""

import numpy as np
import pytest
from scipy import sparse

from sketchnet.data import CsrBatch
from sketchnet.experts.rows import SeenColumns
from sketchnet.kernels.cpu import threads


def random_rows(seed, n=500, ids=None):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, len(ids)), density=0.05, format="csr", rng=rng, dtype=np.float32)
    return CsrBatch(X.indptr, ids[X.indices], X.data, int(ids.max()) + 1)


@pytest.mark.parametrize("top", [300, 2**40, 2**63 - 1])
def test_frequent_columns_come_first_whatever_their_ids(top, monkeypatch):
    monkeypatch.setattr(threads, "_SMALL", 1)
    rng = np.random.default_rng(0)
    ids = np.unique(np.r_[0, rng.integers(0, top, 200), top - 1])
    rows = random_rows(1, ids=ids)
    seen = SeenColumns.count(rows)
    columns, counts = np.unique(rows.indices, return_counts=True)
    assert np.array_equal(seen.ids, columns[np.lexsort((columns, -counts))])
    compact = seen.compact(rows)
    assert np.array_equal(seen.ids[compact.indices], rows.indices)
    assert np.array_equal(compact.values, rows.values)
    assert compact.indices.dtype == np.uint32


def test_many_columns_make_the_table_grow():
    ids = np.sort(np.random.default_rng(0).permutation(2**20)[:100_000]) * 2**40
    rows = CsrBatch(np.array([0, len(ids)]), ids, np.ones(len(ids), np.float32), 2**62)
    seen = SeenColumns.count(rows)
    assert np.array_equal(seen.ids, ids)
    assert np.array_equal(seen.ids[seen.compact(rows).indices], ids)


def test_columns_that_never_occurred_share_a_number():
    seen = SeenColumns.count(CsrBatch(np.array([0, 2]), np.array([5, 9]), np.ones(2, np.float32), 10))
    later = CsrBatch(np.array([0, 3]), np.array([7, 9, 2**62]), np.ones(3, np.float32), 2**63 - 1)
    assert seen.compact(later).indices.tolist() == [2, 1, 2]
    assert seen.compact(later).n_columns == 3


def test_repeated_ids_add_up():
    rows = CsrBatch(np.array([0, 3]), np.array([4, 1, 4]), np.array([1.0, 2.0, 3.0], np.float32), 5)
    compact = SeenColumns.count(rows).compact(rows)
    assert dict(zip(compact.indices.tolist(), compact.values.tolist())) == {0: 4.0, 1: 2.0}


def test_numbers_of_different_sizes_are_put_on_one_scale():
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((200, 3)) * [1.0, 1000.0, 1e-3]
    choice = np.eye(4)[rng.integers(0, 4, 200)]
    X = sparse.csr_array(np.hstack([numbers, choice]).astype(np.float32))
    rows = CsrBatch(X.indptr, X.indices, X.data, 7)
    columns = SeenColumns.count(rows)
    fields = np.append(np.where(columns.ids < 3, -1, 0), -1)
    scaled = columns.scale_numbers(columns.compact(rows), fields).scipy().toarray()[:, np.argsort(columns.ids)]
    np.testing.assert_allclose(np.sqrt((scaled[:, :3] ** 2).mean(axis=0)), 1, rtol=1e-5)
    np.testing.assert_array_equal(scaled[:, 3:], choice)
    np.testing.assert_array_equal(columns.compact(rows).scipy().toarray()[:, np.argsort(columns.ids)], scaled)
    alike = SeenColumns(columns.ids)
    assert alike.scale_numbers(columns.compact(rows), fields) is not None
    assert alike.scales is None  # sizes that are one are left alone
