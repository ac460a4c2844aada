"""Ranking documents by similarity, and adding up what is relevant among them."""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import inlined, kernel
from sketchnet.kernels.cpu.threads import over_range

_NUMBER = np.uint64(2**32 - 1)  # the bits of a key that hold the document's number
_LAST = np.uint64(2**64 - 1)
_TILE = 1024


@inlined
def _document(key):
    return np.int64(key & _NUMBER)


@kernel
def _dot(query, panel, sums):
    """The inner products of a query with the documents of a panel. Every product is summed in the same order, whatever
    is computed beside it: BLAS promises that no more than that results are right to rounding.
    """
    for j in range(panel.shape[1]):
        sums[j] = 0
    for t in range(0, panel.shape[0], 4):
        p, q, r, s = query[t], query[t + 1], query[t + 2], query[t + 3]
        a, b, c, d = panel[t], panel[t + 1], panel[t + 2], panel[t + 3]
        for j in range(panel.shape[1]):
            sums[j] += (p * a[j] + q * b[j]) + (r * c[j] + s * d[j])


@kernel
def _similarity_keys(panels, queries, own, keys, start, stop):
    width, n = panels.shape[2], keys.shape[1]
    sums = np.empty(width, np.float32)
    bits = sums.view(np.uint32)
    for p in range(panels.shape[0]):  # outside, so that a panel stays in the cache for all queries
        first = p * width
        for i in range(start, stop):
            _dot(queries[i], panels[p], sums)
            row = keys[i, first : min(n, first + width)]
            for j in range(len(row)):
                # Floats order as their bits do: upwards if positive, downwards if negative.
                x = bits[j]
                down = x if x >> np.uint32(31) else np.uint32(0x7FFFFFFF) - x
                row[j] = np.uint64(down) << np.uint64(32) | np.uint64(first + j)
    for i in range(start, stop):
        if own[i] >= 0:
            keys[i, own[i]] = _LAST


def similarity_keys(panels, queries, own, keys):
    """keys[i, j] = a number that orders document j for query i: by falling inner product, then by j, its low 32 bits.

    Column c of panels[p] is document p * width + c; `queries` are rows; both have a multiple of four numbers a code.
    Document own[i], the query itself unless negative, gets the largest key.
    """
    work = keys.size * queries.shape[1]
    over_range(lambda a, b: _similarity_keys(panels, queries, own, keys, a, b), len(keys), work)


def sort_rows(keys, first):
    """Put the `first` smallest keys of every row in order at its front."""

    def sort(a, b):
        rows = keys[a:b]
        if first < rows.shape[1]:
            rows.partition(first - 1, axis=1)
        rows[:, :first].sort(axis=1)

    over_range(sort, len(keys), 8 * keys.size)


@kernel
def _class_gains(keys, classes, own, gains, average, start, stop):
    for i in range(start, stop):
        wanted, found, score = classes[own[i]], 0, 0.0
        for r in range(gains.shape[1]):
            if classes[_document(keys[i, r])] == wanted:
                found += 1
                score += found / (r + 1)
            gains[i, r] = found
        average[i] = score / found


def class_gains(keys, classes, own, gains, average):
    """gains[i, r] = how many of the first r + 1 documents in keys[i] have the class of document own[i].

    average[i] = the mean of gains[i, r] / (r + 1) over the ranks of those documents. `gains` may be the memory of
    `keys`.
    """
    over_range(lambda a, b: _class_gains(keys, classes, own, gains, average, a, b), len(keys), 2 * keys.size)


@kernel
def _set_gains(keys, indptr, labels, starts, documents, own, gains, average, start, stop):
    shared = np.empty(len(indptr) - 1, np.int32)
    for i in range(start, stop):
        shared[:] = 0
        first, last = indptr[own[i]], indptr[own[i] + 1]
        for t in range(first, last):
            for u in range(starts[labels[t]], starts[labels[t] + 1]):
                shared[documents[u]] += 1
        gain, score = 0.0, 0.0
        for r in range(gains.shape[1]):
            j = _document(keys[i, r])
            both = shared[j]
            if both > 0:
                relevance = both / (last - first + indptr[j + 1] - indptr[j] - both)
                gain += relevance
                score += gain / (r + 1) * relevance
            gains[i, r] = gain
        average[i] = score / gain


def set_gains(keys, indptr, labels, starts, documents, own, gains, average):
    """The same where document j has the set of labels[indptr[j] : indptr[j + 1]], and |A ∩ B| / |A ∪ B| is gained.

    documents[starts[l] : starts[l + 1]] are those with label l. average[i] weighs ranks by what is gained there.
    """
    over_range(
        lambda a, b: _set_gains(keys, indptr, labels, starts, documents, own, gains, average, a, b),
        len(keys),
        4 * keys.size,
    )


@kernel
def _add_gains(gains, sums, start, stop):
    for first in range(start, stop, _TILE):
        last = min(stop, first + _TILE)
        for i in range(gains.shape[0]):
            total = gains[i, -1]
            for r in range(first, last):
                sums[0, r] += gains[i, r]
                sums[1, r] += gains[i, r] / total


def add_gains(gains, sums):
    """Add to sums[0] the rows of `gains`, in order, and to sums[1] the rows as shares of their last number."""
    # Threads share ranks, not queries: sums do not depend on how many there are.
    over_range(lambda a, b: _add_gains(gains, sums, a, b), gains.shape[1], gains.size)
