"""Epochs: every row once, an order that only seed and epoch decide, well mixed."""

import threading

import numpy as np
import pytest

from sketchnet.data import CsrBatch, iterate_batches, open_shards
from sketchnet.data import batches as module
from sketchnet.data.gather import concatenate
from sketchnet.errors import InputError
from tests.data.test_shards import batch, same, write


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of about 10 rows, groups of about 200."""
    monkeypatch.setattr(module, "_BLOCK_ENTRIES", 40)
    monkeypatch.setattr(module, "_GROUP_ENTRIES", 800)


def numbered(n):
    """Rows that carry their number as label."""
    x = batch(n)
    return CsrBatch(x.indptr, x.indices, x.values, x.n_columns, np.arange(n))


def order(data, **options):
    return np.concatenate([b.labels for b in iterate_batches(data, **{"batch_size": 32, **options})])


@pytest.fixture
def shards(tmp_path):
    x = numbered(1003)
    cuts = [0, 400, 401, 900, 1003]
    return open_shards(write(tmp_path / "x", [x.rows(slice(a, b)) for a, b in zip(cuts, cuts[1:])])), x


def test_every_row_once_with_its_own_entries(shards):
    data, x = shards
    for source in (data, x):
        got = list(iterate_batches(source, 32, seed=5))
        assert [b.n_rows for b in got] == [32] * 31 + [11]
        rows = np.concatenate([b.labels for b in got])
        assert sorted(rows) == list(range(1003))
        for b in got[::7]:
            for i, row in enumerate(b.labels):
                same(b.rows(slice(i, i + 1)), x.rows(slice(row, row + 1)))


def test_the_order_depends_on_seed_and_epoch_alone(shards):
    data, x = shards
    first = order(data, seed=5)
    for workers in (0, 1, 2, 5):
        assert np.array_equal(order(data, seed=5, workers=workers), first)
    assert np.array_equal(order(x, seed=5), first)  # memory or disk, however sharded
    assert not np.array_equal(order(data, seed=6), first)
    assert not np.array_equal(order(data, seed=5, epoch=1), first)
    # a pinned order: a change would alter every training run that is to be resumed
    assert order(data, seed=5)[:8].tolist() == [818, 202, 379, 545, 199, 881, 67, 454]


def test_rows_are_mixed_across_the_data(shards):
    data, _ = shards
    spread = [np.ptp(b.labels) for b in iterate_batches(data, 32, seed=1)]
    assert np.median(spread) > 700  # a batch reaches over most of the 1003 rows
    positions = order(data, seed=1)
    assert abs(np.corrcoef(positions, np.arange(1003))[0, 1]) < 0.2
    firsts = [order(data, seed=s)[0] for s in range(40)]
    assert len(set(firsts)) > 30


def test_in_order_without_shuffling(shards):
    data, x = shards
    assert np.array_equal(order(data, shuffle=False), np.arange(1003))
    same(concatenate(list(iterate_batches(data, 7, shuffle=False, workers=2)), 1000), x)


def test_no_rows_and_few_rows(tmp_path):
    assert list(iterate_batches(numbered(0), 5)) == []
    assert [b.n_rows for b in iterate_batches(numbered(3), 5)] == [3]
    empty = CsrBatch(np.zeros(4, int), np.empty(0, int), np.empty(0), 9, np.arange(3))
    assert sorted(order(empty, batch_size=2)) == [0, 1, 2]


def test_stopping_early_leaves_no_threads(shards):
    before = threading.active_count()
    iterator = iterate_batches(shards[0], 32, workers=3)
    next(iterator)
    iterator.close()
    assert threading.active_count() == before


def test_impossible_sizes(shards):
    for bad in ({"batch_size": 0}, {"batch_size": 5, "workers": -1}):
        with pytest.raises(InputError, match="is not possible"):
            next(iterate_batches(shards[0], **bad))
