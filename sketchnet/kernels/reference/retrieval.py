"""Ranking documents by similarity, in plain NumPy."""

from __future__ import annotations

import numpy as np


def similarity_keys(panels, queries, own, keys):
    """keys[i, j] = a number that orders document j for query i: by falling inner product, then by j, its low 32 bits.

    Column c of panels[p] is document p * width + c; `queries` are rows; both have a multiple of four numbers a code.
    Document own[i], the query itself unless negative, gets the largest key.
    """
    documents = panels.transpose(0, 2, 1).reshape(-1, panels.shape[1])[: keys.shape[1]]
    sums = np.zeros(keys.shape, np.float32)
    for t in range(0, documents.shape[1], 4):  # this order of summing is part of the definition
        products = [np.outer(queries[:, t + s], documents[:, t + s]) for s in range(4)]
        sums += (products[0] + products[1]) + (products[2] + products[3])
    bits = sums.view(np.int32).astype(np.int64)
    keys[:] = np.where(bits < 0, bits + 2**32, 2**31 - 1 - bits).astype(np.uint64) << np.uint64(32)
    keys |= np.arange(keys.shape[1], dtype=np.uint64)
    with_own = np.flatnonzero(own >= 0)
    keys[with_own, own[with_own]] = 2**64 - 1


def sort_rows(keys, first):
    """Put the `first` smallest keys of every row in order at its front."""
    keys.sort(axis=1)


def class_gains(keys, classes, own, gains, average):
    """gains[i, r] = how many of the first r + 1 documents in keys[i] have the class of document own[i].

    average[i] = the mean of gains[i, r] / (r + 1) over the ranks of those documents. `gains` may be the memory of
    `keys`.
    """
    ranked = _ranked(keys, gains)
    _gains((classes[ranked] == classes[own][:, None]).astype(np.float64), gains, average)


def set_gains(keys, indptr, labels, starts, documents, own, gains, average):
    """The same where document j has the set of labels[indptr[j] : indptr[j + 1]], and |A ∩ B| / |A ∪ B| is gained.

    documents[starts[l] : starts[l + 1]] are those with label l. average[i] weighs ranks by what is gained there.
    """
    sets = [set(labels[a:b]) for a, b in zip(indptr[:-1], indptr[1:])]
    relevance = [
        [len(sets[q] & sets[j]) / max(1, len(sets[q] | sets[j])) for j in row]
        for q, row in zip(own, _ranked(keys, gains))
    ]
    _gains(np.array(relevance), gains, average)


def add_gains(gains, sums):
    """Add to sums[0] the rows of `gains`, in order, and to sums[1] the rows as shares of their last number."""
    for row in gains:
        sums[0] += row
        sums[1] += row / row[-1]


def _ranked(keys, gains):
    return (keys[:, : gains.shape[1]] & np.uint64(2**32 - 1)).astype(np.int64)


def _gains(relevance, gains, average):
    gains[:] = np.cumsum(relevance, axis=1)
    average[:] = (gains / np.arange(1, gains.shape[1] + 1) * relevance).sum(axis=1) / gains[:, -1]
