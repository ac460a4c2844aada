"""Epochs: every row once, an order that only seed and epoch decide, well mixed."""

import threading

import numpy as np
import pytest

from sketchnet.data import CsrBatch, Synthetic, iterate_batches, open_shards
from sketchnet.data import batches as module
from sketchnet.data.batches import Part, epoch_order, iterate_numbered
from sketchnet.data.gather import concatenate, take_rows
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


@pytest.mark.parametrize("shuffle", [True, False])
def test_batches_come_with_the_numbers_of_their_rows(shards, shuffle):
    data, x = shards
    for source in (data, x):
        got = list(iterate_numbered(source, 32, seed=5, epoch=2, shuffle=shuffle))
        for numbers, b in got:
            assert np.array_equal(numbers, b.labels)
        if shuffle:
            ahead = list(epoch_order(source, 32, seed=5, epoch=2))
            assert [rows.tolist() for rows in ahead] == [numbers.tolist() for numbers, _ in got]


@pytest.mark.parametrize("batch_size", [1, 32, 150, 200, 201, 5000])
@pytest.mark.parametrize("shuffle", [True, False])
def test_an_epoch_can_be_entered_at_any_batch(shards, batch_size, shuffle):
    data, x = shards
    options = {"batch_size": batch_size, "seed": 5, "epoch": 1, "shuffle": shuffle}
    whole = list(iterate_numbered(x, **options))
    assert len(whole) == -(-1003 // batch_size)
    for skip in {0, 1, 2, 6, 7, len(whole) // 2, len(whole) - 1, len(whole), len(whole) + 3}:
        for workers in (0, 2):
            rest = list(iterate_numbered(data, **options, skip=skip, workers=workers))
            assert len(rest) == max(0, len(whole) - skip)
            for (numbers, b), (expected_numbers, expected) in zip(rest, whole[skip:]):
                assert np.array_equal(numbers, expected_numbers)
                same(b, expected)


class Watched:
    """A data set that counts the rows that are read."""

    def __init__(self, data):
        self.n_rows, self.n_columns, self.n_entries, self._data, self.read = *data.shape, data.n_entries, data, 0

    def rows(self, span):
        self.read += span.stop - span.start
        return self._data.rows(span)


def test_skipped_batches_are_mostly_unread(shards):
    data = Watched(shards[0])
    assert sum(b.n_rows for _, b in iterate_numbered(data, 32, skip=28)) == 1003 - 28 * 32
    assert data.read < 400  # two groups at most


def test_a_part_is_a_data_set_of_its_own(shards):
    data, x = shards
    numbers = np.sort(np.random.default_rng(0).choice(1003, 600, replace=False))
    for part in (Part(data, numbers), Part(x, numbers)):
        assert (part.n_rows, part.n_columns) == (600, 1000)
        same(part.rows(slice(10, 300)), take_rows(x, numbers[10:300]))
        got = list(iterate_numbered(part, 32, seed=5))
        assert sorted(np.concatenate([places for places, _ in got]).tolist()) == list(range(600))
        for places, b in got:
            assert np.array_equal(numbers[places], b.labels)
        ahead = np.concatenate(list(epoch_order(part, 32, seed=5)))
        assert np.array_equal(ahead, np.concatenate([places for places, _ in got]))
    assert np.array_equal(order(Part(data, numbers), seed=5), order(Part(x, numbers), seed=5))


def test_parts_without_rows_or_entries():
    nothing = Part(numbered(5), np.empty(0, int))
    assert list(iterate_numbered(nothing, 5)) == []
    assert list(epoch_order(nothing, 5)) == []
    empty = CsrBatch(np.zeros(4, int), np.empty(0, int), np.empty(0), 9, np.arange(3))
    assert sorted(order(Part(empty, np.array([0, 2])), batch_size=2)) == [0, 2]


def test_a_part_of_a_part_is_a_part():
    data = Synthetic(n=50, d=100, density=0.1).rows(slice(0, 50))
    part = Part(Part(data, np.arange(0, 50, 2)), np.array([1, 3, 4]))
    assert np.array_equal(part.rows(slice(0, 3)).scipy().toarray(), data.scipy().toarray()[[2, 6, 8]])
