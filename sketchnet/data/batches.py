"""Mini-batches from data in memory or on disk: shuffled by a seed, read sequentially, prepared in the background.

An epoch's order: the rows are cut into blocks of consecutive rows, the blocks are shuffled, then the rows within each
group of blocks. Blocks make disk reads sequential; a group mixes blocks from all over the data. The order is a function
of the numbers of rows and non-zeros, `batch_size`, `seed` and `epoch` alone, whatever the number of workers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice

import numpy as np

from sketchnet import random
from sketchnet.data.csr import CsrBatch
from sketchnet.data.gather import concatenate, take_rows
from sketchnet.data.shard_set import ShardSet
from sketchnet.errors import InputError

_BLOCK_ENTRIES = 1 << 17  # about a megabyte: long enough for a disk to read in a row
_GROUP_ENTRIES = 1 << 22  # about 32 megabytes: the rows that are mixed with each other


def iterate_batches(
    data: Rows,
    batch_size: int,
    *,
    shuffle: bool = True,
    seed: int = 0,
    epoch: int = 0,
    workers: int = 1,
    skip: int = 0,
) -> Iterator[CsrBatch]:
    """One epoch of `data` in batches of `batch_size` rows (the last may be shorter), without the first `skip` of them.

    `workers` background threads prepare groups ahead; 0 prepares them on demand. Batches are views of their group.
    """
    numbered = iterate_numbered(data, batch_size, shuffle=shuffle, seed=seed, epoch=epoch, workers=workers, skip=skip)
    with closing(numbered):
        for _, batch in numbered:
            yield batch


def iterate_numbered(
    data: Rows,
    batch_size: int,
    *,
    shuffle: bool = True,
    seed: int = 0,
    epoch: int = 0,
    workers: int = 1,
    skip: int = 0,
) -> Generator[tuple[np.ndarray, CsrBatch], None, None]:
    """The same batches, each with the numbers of its rows in `data`; the first `skip` are left out, mostly unread."""
    if batch_size < 1 or workers < 0:
        raise InputError(f"batch_size={batch_size}, workers={workers} is not possible; they start at 1 and 0")
    groups = deque(_groups(data, batch_size, shuffle, seed, epoch))
    while groups and skip * batch_size >= _n_rows(groups[0]):
        skip -= -(-_n_rows(groups[0]) // batch_size)
        groups.popleft()
    if workers == 0:
        prepared = (_prepare(data, *group) for group in groups)
    else:
        prepared = _ahead(data, iter(groups), workers)
    with closing(prepared):  # stops the workers when the consumer stops early
        for numbers, group in prepared:
            for start in range(skip * batch_size, group.n_rows, batch_size):
                span = slice(start, min(start + batch_size, group.n_rows))
                yield numbers[span], group.rows(span)
            skip = 0


def epoch_order(data, batch_size: int, *, seed: int = 0, epoch: int = 0) -> Iterator[np.ndarray]:
    """The row numbers of the batches that a shuffled epoch of `data` has."""
    for spans, order in _groups(data, batch_size, True, seed, epoch):
        numbers = _numbers(spans, order)
        for start in range(0, len(numbers), batch_size):
            yield numbers[start : start + batch_size]


def _groups(data, batch_size: int, shuffle: bool, seed: int, epoch: int) -> Iterator[tuple]:
    """(spans of rows, seed of their order) of each group; all groups but the last hold whole batches."""
    n, entries = data.n_rows, max(1, data.n_entries)
    rows_per_block = max(1, int(_BLOCK_ENTRIES * n / entries)) if n else 1
    blocks = np.arange(0, n, rows_per_block)
    if shuffle:
        blocks = blocks[random.shuffled(len(blocks), seed, random.STREAM_SHUFFLE, _row(epoch, 0))]
    rows_per_group = max(1, int(_GROUP_ENTRIES * n / entries / batch_size)) * batch_size if n else 1
    spans: list[slice] = []
    filled = number = 0
    for start in blocks.tolist():
        stop = min(n, start + rows_per_block)
        while start < stop:
            taken = min(stop - start, rows_per_group - filled)
            spans.append(slice(start, start + taken))
            start, filled = start + taken, filled + taken
            if filled == rows_per_group:
                number += 1
                yield spans, (seed, _row(epoch, number)) if shuffle else None
                spans, filled = [], 0
    if spans:
        yield spans, (seed, _row(epoch, number + 1)) if shuffle else None


def _prepare(data, spans: list[slice], order: tuple[int, int] | None) -> tuple[np.ndarray, CsrBatch]:
    rows, numbers = concatenate([data.rows(span) for span in spans], data.n_columns), _numbers(spans, order)
    return numbers, rows if order is None else take_rows(rows, _shuffle(rows.n_rows, order))


def _numbers(spans: list[slice], order: tuple[int, int] | None) -> np.ndarray:
    numbers = np.concatenate([np.arange(span.start, span.stop) for span in spans])
    return numbers if order is None else numbers[_shuffle(len(numbers), order)]


def _shuffle(n: int, order: tuple[int, int]) -> np.ndarray:
    seed, row = order
    return random.shuffled(n, seed, random.STREAM_SHUFFLE, row)


def _n_rows(group: tuple) -> int:
    return sum(span.stop - span.start for span in group[0])


def _ahead(data, groups: Iterator[tuple], workers: int) -> Generator[tuple[np.ndarray, CsrBatch], None, None]:
    """Groups in order, with `workers` of them under way and one waiting."""
    with ThreadPoolExecutor(workers, thread_name_prefix="sketchnet-batches") as pool:
        waiting = deque(pool.submit(_prepare, data, *group) for group in islice(groups, workers + 1))
        try:
            while waiting:
                ready = waiting.popleft().result()
                waiting.extend(pool.submit(_prepare, data, *group) for group in islice(groups, 1))
                yield ready
        finally:
            for future in waiting:
                future.cancel()


def _row(epoch: int, number: int) -> int:
    """The counter's row of an epoch's shuffle: number 0 orders the blocks, the others the rows of a group."""
    return epoch << 32 | number


class Part:
    """Some rows of a data set, given by ascending numbers, as a data set of its own."""

    data: ShardSet | CsrBatch
    numbers: np.ndarray

    def __init__(self, data: ShardSet | CsrBatch | Part, numbers: np.ndarray):
        if isinstance(data, Part):
            numbers = data.numbers[numbers]
            data = data.data
        self.data, self.numbers = data, numbers
        self.n_rows, self.n_columns = len(numbers), data.n_columns
        # An estimate would do for cutting blocks, but it must not depend on how the data lies on the disk.
        self.n_entries = max(1, data.n_entries * len(numbers) // max(1, data.n_rows))

    def rows(self, span: slice) -> CsrBatch:
        numbers = self.numbers[span]
        return take_rows(self.data, numbers) if isinstance(self.data, CsrBatch) else self.data[numbers]


Rows = CsrBatch | ShardSet | Part  # what batches can be made of
