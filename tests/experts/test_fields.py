"""Fields that are found in one-hot rows, and rows that have none."""

import numpy as np
import pytest
from scipy import sparse

from sketchnet.data import CsrBatch
from sketchnet.experts.fields import find_fields
from sketchnet.experts.rows import SeenColumns


def numbered(X):
    X = sparse.csr_array(X)
    X.sort_indices()
    batch = CsrBatch(X.indptr, X.indices, X.data.astype(np.float32), X.shape[1])
    columns = SeenColumns.count(batch)
    return columns.compact(batch), columns.ids


def draw_table(n=3000, sizes=(3, 40, 8, 300), missing=0.0, seed=0):
    """One-hot rows with frequent and rare values, and the true field of each column."""
    rng = np.random.default_rng(seed)
    parts = []
    for size in sizes:
        chances = 1 / np.arange(1, size + 1)
        part = sparse.csr_array(
            (np.ones(n), rng.choice(size, n, p=chances / chances.sum()), np.arange(n + 1)), (n, size)
        )
        parts.append(sparse.diags_array((rng.random(n) >= missing).astype(float)) @ part)
    return sparse.hstack(parts).tocsr(), np.repeat(np.arange(len(sizes)), sizes)


def agreement(fields, ids, truth):
    """The share of pairs of columns of which both say alike whether they are one field."""
    ours, true = fields[:-1], truth[ids]
    return np.mean((ours[:, None] == ours) == (true[:, None] == true))


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_ranges_of_ids(missing):
    X, truth = draw_table(missing=missing)
    rows, ids = numbered(X)
    fields = find_fields(rows, ids)
    assert fields.dtype == np.int32
    assert len(fields) == rows.n_columns
    assert fields[-1] == -1
    assert agreement(fields, ids, truth) > (0.995 if missing else 0.9999)


def test_ids_in_any_order():
    X, truth = draw_table(n=20_000)
    order = np.random.default_rng(1).permutation(X.shape[1])
    rows, ids = numbered(X[:, order])
    fields = find_fields(rows, ids)
    assert fields.max() <= 5
    assert agreement(fields, ids, truth[order]) > 0.95


def test_columns_of_numbers_beside_fields():
    X, truth = draw_table()
    numbers = np.random.default_rng(2).standard_normal((X.shape[0], 5)) * (np.arange(5) != 3)
    numbers[::20, 3] = np.arange(len(numbers[::20]))  # mostly absent
    rows, ids = numbered(sparse.hstack([numbers, X]))
    fields = find_fields(rows, ids)
    assert set(ids[np.flatnonzero(fields[:-1] < 0)]) == set(range(5))
    kept = fields[:-1] >= 0
    assert agreement(np.r_[fields[:-1][kept], -1], ids[kept] - 5, truth) > 0.9999


def test_several_of_one_kind_a_row_leave_the_other_fields():
    """Such as the kinds of a film."""
    X, truth = draw_table(n=20_000)
    rng = np.random.default_rng(3)
    kinds = sparse.csr_array((rng.random((20_000, 12)) < 0.15).astype(float))
    order = rng.permutation(X.shape[1] + 12)
    rows, ids = numbered(sparse.hstack([X, kinds]).tocsr()[:, order])
    fields = find_fields(rows, ids)
    of_table = order[ids] < X.shape[1]
    assert agreement(np.r_[fields[:-1][of_table], -1], order[ids[of_table]], truth) > 0.95


def test_dense_numbers_are_a_table_without_fields():
    rows, ids = numbered(
        np.random.default_rng(0).random((200, 30)) * (np.random.default_rng(1).random((200, 30)) < 0.4)
    )
    assert np.array_equal(find_fields(rows, ids), np.full(31, -1))


@pytest.mark.parametrize("values", ["ones", "numbers"])
@pytest.mark.parametrize("lengths", ["equal", "poisson"])
def test_text_is_no_table(values, lengths):
    rng = np.random.default_rng(4)
    n, words = 4000, 5000
    chances = 1 / np.arange(1, words + 1)
    counts = np.full(n, 12) if lengths == "equal" else 1 + rng.poisson(11, n)
    drawn = [np.unique(rng.choice(words, count, p=chances / chances.sum())) for count in counts]
    indices = np.concatenate(drawn)
    data = np.ones(len(indices)) if values == "ones" else rng.random(len(indices))
    X = sparse.csr_array((data, indices, np.r_[0, np.cumsum([len(row) for row in drawn])]), (n, words))
    assert find_fields(*numbered(X)) is None


def test_random_sets_of_one_size_are_no_table():
    rng = np.random.default_rng(5)
    indices = np.concatenate([rng.choice(5000, 20, replace=False) for _ in range(3000)])
    X = sparse.csr_array((np.ones(60_000), indices, np.arange(0, 60_001, 20)), (3000, 5000))
    assert find_fields(*numbered(X)) is None


def test_no_entries():
    rows = CsrBatch(np.zeros(4, np.int64), np.empty(0, np.uint32), np.empty(0, np.float32), 1)
    assert find_fields(rows, np.empty(0, np.int64)) is None


def test_ranges_are_those_of_a_plain_search():
    from sketchnet.kernels.cpu.field_statistics import split_ranges

    X = sparse.random_array((60, 50), density=0.04, format="csr", rng=np.random.default_rng(6))
    X.sort_indices()
    dense, starts = X.toarray() != 0, [0]
    for place in range(1, 50):
        if (dense[:, starts[-1] : place + 1].sum(axis=1) > 1).any():
            starts.append(place)
    assert 2 < len(starts) < 50
    assert np.array_equal(split_ranges(X.indptr, X.indices, 50), starts)
