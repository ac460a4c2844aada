"""Sums of columns by class, and the statistics made of them."""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import kernel, prefetch
from sketchnet.kernels.cpu.threads import n_threads, over_range, over_rows

_u64 = np.uint64
_PIECE = 1 << 22  # bytes of sums that are added to at once: few enough to stay in a cache
_FEWEST = 8  # entries of a row in a piece: with fewer, finding them takes longer than adding them
_COLUMNS = 256  # whose statistics are made at once, class by class: the sums of a class lie together
_AHEAD = 4  # rows: far enough for memory, near enough to be still in the cache


@kernel
def _look(indptr, indices, values, edges, cuts, start, stop):
    """cuts[p, r] = the first entry of row r whose id is not below edges[p], if ids ascend; returns whether they do not,
    and whether there is NaN or infinity.
    """
    ascending = finite = True
    for r in range(start, stop):
        begin, end = _u64(indptr[r] - indptr[0]), _u64(indptr[r + 1] - indptr[0])
        for t in range(begin + _u64(1), end):
            ascending &= indices[t] > indices[t - _u64(1)]
        for t in range(begin, end):
            finite &= np.isfinite(values[t])
        for p in range(len(edges)):
            cuts[p, r] = begin + _u64(np.searchsorted(indices[begin:end], edges[p]))
    return not ascending, not finite


@kernel
def _sort_rows(classes, free, rows):
    for r in range(len(classes)):
        y = classes[r]
        rows[free[y]] = r
        free[y] += 1


@kernel
def _add(indices, values, rows, starts, stops, low, sums):
    """Add the entries starts[r] to stops[r] of each row to the sums of their columns, which begin with `low`."""
    squares, last = sums.shape[1] > 1, len(rows) - 1
    by_id, by_value = indices.reshape((-1, 1)), values.reshape((-1, 1))
    for k in range(len(rows)):
        soon = rows[min(k + _AHEAD, last)]
        for t in range(starts[soon], stops[soon] + 15, 16):
            prefetch(by_id, t)
            prefetch(by_value, t)
        start, stop = _u64(starts[rows[k]]), _u64(stops[rows[k]])
        if squares:
            for t in range(start, stop):
                c, x = _u64(indices[t] - low), np.float64(values[t])
                sums[c, 0] += x
                sums[c, 1] += x * x
        else:
            for t in range(start, stop):
                sums[_u64(indices[t] - low), 0] += abs(np.float64(values[t]))


def add_by_class(indptr, indices, values, classes, first: int, sums):
    """Add to sums[y, c - first] what the entries of column c have in rows of class y; other columns are left out.

    Scattered additions wait for memory. So only a few columns of one class are added to at a time, all its rows for
    these before the next: their sums stay in a cache. Threads share columns, not rows: a sum is made by one of them, in
    the order of the rows.
    """
    (n_classes, width, moments), n = sums.shape, len(indptr) - 1
    entries, threads = int(indptr[-1]) - int(indptr[0]), n_threads()
    pieces = -(-width * moments * sums.itemsize // (_PIECE * threads)) * threads
    pieces = max(1, min(pieces, width, max(2, entries // (_FEWEST * max(1, n)))))
    edges = first + np.linspace(0, width, pieces + 1).astype(np.int64)
    cuts = np.empty((pieces + 1, n), np.int64)
    looks = over_rows(lambda a, b: _look(indptr, indices, values, edges, cuts, a, b), indptr)
    unordered, non_finite = (any(flags) for flags in zip(*looks)) if n else (False, False)
    if not (unordered or non_finite):
        ends = np.bincount(classes, minlength=n_classes).cumsum()
        rows = np.empty(n, np.int32 if n < 2**31 else np.int64)
        _sort_rows(classes, np.concatenate([[0], ends[:-1]]), rows)
        by_class = np.split(rows, ends[:-1])

        def add(a, b):
            for p in range(a, b):
                for y in range(n_classes):
                    into = sums[y, edges[p] - first : edges[p + 1] - first]
                    _add(indices, values, by_class[y], cuts[p], cuts[p + 1], edges[p], into)

        over_range(add, pieces, entries)
    outside = int((cuts[-1] - cuts[0]).sum()) < entries
    return outside, unordered, non_finite


@kernel
def _chi_square(sums, share, out, start, stop):
    totals = np.empty(_COLUMNS)
    for first in range(start, stop, _COLUMNS):
        last = min(first + _COLUMNS, stop)
        totals[:] = 0
        for y in range(len(share)):
            for c in range(first, last):
                totals[c - first] += sums[y, c, 0]
        out[first:last] = 0
        for y in range(len(share)):
            for c in range(first, last):
                expected = totals[c - first] * share[y]
                out[c] += (sums[y, c, 0] - expected) ** 2 / expected


def chi_square(sums, counts, out) -> None:
    """out[c] = the sum of (observed - expected)**2 / expected over the classes; `counts` are their rows."""
    share = counts / counts.sum()
    over_range(lambda a, b: _chi_square(sums, share, out, a, b), len(out), sums.size)


@kernel
def _f_ratio(sums, counts, out, start, stop):
    n, n_classes = np.float64(counts.sum()), len(counts)
    ratio = (n - n_classes) / (n_classes - 1)
    totals, each, squares = np.empty(_COLUMNS), np.empty(_COLUMNS), np.empty(_COLUMNS)
    for first in range(start, stop, _COLUMNS):
        last = min(first + _COLUMNS, stop)
        totals[:] = each[:] = squares[:] = 0
        for y in range(n_classes):
            count = np.float64(counts[y])
            for c in range(first, last):
                total = sums[y, c, 0]
                totals[c - first] += total
                each[c - first] += total * total / count  # not times 1 / count: exact where a column is constant
                squares[c - first] += sums[y, c, 1]
        for i in range(last - first):
            between = max(each[i] - totals[i] * totals[i] / n, 0.0)
            out[first + i] = between * ratio / max(squares[i] - each[i], 0.0)


def f_ratio(sums, counts, out) -> None:
    """out[c] = the mean square between the classes over the one within them, from sums of values and of squares."""
    over_range(lambda a, b: _f_ratio(sums, counts, out, a, b), len(out), sums.size)
