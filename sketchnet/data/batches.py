"""Mini-batches from data in memory or on disk: shuffled by a seed, read sequentially, prepared in the background.

An epoch's order: the rows are cut into blocks of consecutive rows, the blocks are shuffled, then the rows within each
group of blocks. Blocks make disk reads sequential; a group mixes blocks from all over the data. The order is a function
of the numbers of rows and non-zeros, `batch_size`, `seed` and `epoch` alone, whatever the number of workers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
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
    data: ShardSet | CsrBatch,
    batch_size: int,
    *,
    shuffle: bool = True,
    seed: int = 0,
    epoch: int = 0,
    workers: int = 1,
) -> Iterator[CsrBatch]:
    """One epoch of `data` in batches of `batch_size` rows (the last may be shorter).

    `workers` background threads prepare groups ahead; 0 prepares them on demand. Batches are views of their group.
    """
    if batch_size < 1 or workers < 0:
        raise InputError(f"batch_size={batch_size}, workers={workers} is not possible; they start at 1 and 0")
    groups = _groups(data, batch_size, shuffle, seed, epoch)
    if workers == 0:
        prepared = (_prepare(data, *group) for group in groups)
    else:
        prepared = _ahead(data, groups, workers)
    with closing(prepared):  # stops the workers when the consumer stops early
        for group in prepared:
            for start in range(0, group.n_rows, batch_size):
                yield group.rows(slice(start, min(start + batch_size, group.n_rows)))


def _groups(data, batch_size: int, shuffle: bool, seed: int, epoch: int) -> Iterator[tuple]:
    """(spans of rows, seed of their order) of each group; all groups but the last hold whole batches."""
    n, entries = data.n_rows, max(1, _n_entries(data))
    rows_per_block = max(1, int(_BLOCK_ENTRIES * n / entries)) if n else 1
    blocks = np.arange(0, n, rows_per_block)
    if shuffle:
        blocks = blocks[random.shuffled(len(blocks), seed, random.STREAM_SHUFFLE, _row(epoch, 0))]
    rows_per_group = max(1, int(_GROUP_ENTRIES * n / entries / batch_size)) * batch_size if n else 1
    spans, filled, number = [], 0, 0
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


def _prepare(data, spans: list[slice], order: tuple[int, int] | None) -> CsrBatch:
    rows = concatenate([data.rows(span) for span in spans], data.n_columns)
    if order is None:
        return rows
    seed, row = order
    return take_rows(rows, random.shuffled(rows.n_rows, seed, random.STREAM_SHUFFLE, row))


def _ahead(data, groups: Iterator[tuple], workers: int) -> Iterator[CsrBatch]:
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


def _n_entries(data) -> int:
    return data.n_entries if isinstance(data, ShardSet) else len(data.indices)
