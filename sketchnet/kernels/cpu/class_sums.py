"""Sums of columns by class, and the statistics made of them."""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import inlined, kernel, prefetch
from sketchnet.kernels.cpu.selection import ordered
from sketchnet.kernels.cpu.threads import n_threads, over_range, over_rows

_u64 = np.uint64
_MOST_FIELDS = 4  # of a packed word
_AHEAD = 4  # rows: far enough for memory, near enough to be still in the cache


@kernel
def _cut(indptr, indices, edges, cuts, start, stop):
    """cuts[r, p] = the first entry of row r whose id is not below edges[p]."""
    for r in range(start, stop):
        begin, end = _u64(indptr[r] - indptr[0]), _u64(indptr[r + 1] - indptr[0])
        for p in range(len(edges)):
            # From the row's ends in each search: then even ids out of order give cuts that do not fall.
            place, left, edge = begin, end - begin, edges[p]
            while left > _u64(1):
                half = left >> _u64(1)
                place = place + half if indices[place + half - _u64(1)] < edge else place
                left -= half
            if left == _u64(1) and indices[place] < edge:
                place += _u64(1)
            cuts[r, p] = place


@inlined
def _unpack(table, sums, n_classes, bits):
    """Add the fields of all words to the sums, and clear the words."""
    squares, rest = sums.shape[1] > n_classes, _u64(64) - bits
    for c in range(len(table)):
        word = table[c]
        if word:
            for y in range(n_classes):
                if squares:  # sums may be negative
                    field = np.int64(word << rest) >> np.int64(rest)
                    sums[c, y] += field
                    word = (word - _u64(field)) >> bits
                else:
                    sums[c, y] += np.float64((word << rest) >> rest)
                    word >>= bits
            if squares:
                sums[c, n_classes] += np.float64(word)
            table[c] = _u64(0)


@inlined
def _pack(values, one, square, words):
    """words[t] = x * one + x**2 * square of counts x, |x| * one where `square` is zero; returns how many values are no
    counts, and the largest of the others.
    """
    fractions, most = 0, np.int64(0)
    for t in range(len(values)):
        x = values[t]
        count = np.int64(np.int32(x if abs(x) < 65536 else 0))
        fractions += count != x
        size = abs(count)
        most = max(most, size)
        words[t] = count * (one + square * count) if square else size * one
    return fractions, most


@kernel
def _add(indptr, indices, values, classes, cuts, p, low, n_classes, bits, table, words, sums):
    """Add the entries between cuts p and p + 1, whose columns begin with `low`."""
    squares, packed = sums.shape[1] > n_classes, bits > _u64(0)
    sum_limit = 2.0 ** (np.float64(bits) - (1 if squares else 0)) - 1
    square_limit = 2.0 ** (64.0 - n_classes * np.float64(bits)) - 1
    largest, rows, added = 0.0, 0, 0  # of the words that are not yet unpacked
    n, high = len(indptr) - 1, low + len(sums)
    by_entry, by_value = indices.reshape((-1, 1)), values.reshape((-1, 1))
    for r in range(n):
        soon = min(r + _AHEAD, n - 1)
        for t in range(cuts[soon, p], cuts[soon, p + 1] + 15, 16):
            prefetch(by_entry, t)
            prefetch(by_value, t)
        start, stop, y = _u64(cuts[r, p]), _u64(cuts[r, p + 1]), classes[r]
        if start == stop:
            continue
        fine = indices[start] >= low and indices[stop - _u64(1)] < high
        for t in range(start + _u64(1), stop):
            fine &= indices[t] > indices[t - _u64(1)]
        if not fine:
            return True, False
        if packed:
            one, square = np.int64(1) << np.int64(bits * _u64(y)), np.int64(0)
            if squares:
                square = np.int64(1) << np.int64(bits * _u64(n_classes))
            fractions, most = _pack(values[start:stop], one, square, words)
            whole, greatest = fractions == 0, max(largest, np.float64(most))
            room = (rows + 1) * greatest <= sum_limit
            if squares:
                room &= (rows + 1) * greatest * greatest <= square_limit
            if not (whole and room):
                _unpack(table, sums, n_classes, bits)
                packed = whole and added > len(table) and greatest <= sum_limit
                if squares:
                    packed &= greatest * greatest <= square_limit
                rows = added = 0
            if packed:
                largest = greatest
                rows += 1
                added += np.int64(stop - start)
                for t in range(start, stop):
                    table[_u64(indices[t] - low)] += _u64(words[t - start])
                continue
        finite = True
        for t in range(start, stop):
            finite &= np.isfinite(values[t])
        if not finite:
            return False, True
        following = min(r + 1, n - 1)
        for t in range(_u64(cuts[following, p]), _u64(cuts[following, p + 1])):
            prefetch(sums, np.int64(indices[t]) - low)
        if squares:
            for t in range(start, stop):
                c, x = _u64(indices[t] - low), np.float64(values[t])
                sums[c, y] += x
                sums[c, n_classes] += x * x
        else:
            for t in range(start, stop):
                sums[_u64(indices[t] - low), y] += abs(np.float64(values[t]))
    if packed:
        _unpack(table, sums, n_classes, bits)
    return False, False


def add_by_class(indptr, indices, values, classes, n_classes: int, first: int, sums):
    """Add to sums[c - first, y] what the entries of column c have in rows of class y; other columns are left out.

    Scattered additions wait for memory, so the less memory the sums take the better. Counts are therefore added as
    integers, all fields of a column packed into one 64-bit word; words are unpacked before a field can overflow. The
    first value that is no count, or counts so large that words had to be unpacked all the time, end that, and sums are
    added to directly. Threads share columns, not rows: a sum is made by one of them, in the order of the rows.
    """
    n, entries = len(indptr) - 1, int(indptr[-1]) - int(indptr[0])
    pieces = max(1, min(n_threads(), len(sums), max(2, entries // (8 * max(1, n)))))
    edges = first + np.linspace(0, len(sums), pieces + 1).astype(np.int64)
    cuts = np.empty((n, pieces + 1), np.int64)
    over_rows(lambda a, b: _cut(indptr, indices, edges, cuts, a, b), indptr)
    bits = _u64(64 // sums.shape[1] if sums.shape[1] <= _MOST_FIELDS else 0)
    table = np.zeros(len(sums) if bits else 0, _u64)
    longest = int(np.diff(indptr).max(initial=0))

    def add(a, b):
        found = []
        for p in range(a, b):
            span = slice(edges[p] - first, edges[p + 1] - first)
            words = np.empty(longest, np.int64)
            csr = indptr, indices, values, classes
            found.append(_add(*csr, cuts, p, edges[p], n_classes, bits, table[span], words, sums[span]))
        return found

    found = [flags for piece in over_range(add, pieces, entries) for flags in piece]
    unordered, non_finite = (any(flags) for flags in zip(*found))
    inside = int((cuts[:, -1] - cuts[:, 0]).sum())
    outside = inside < entries
    if outside and not unordered:
        unordered = not ordered(indptr, indices)
    return outside, unordered, non_finite


@kernel
def _chi_square(sums, share, out, start, stop):
    for c in range(start, stop):
        total = score = 0.0
        for y in range(sums.shape[1]):
            total += sums[c, y]
        for y in range(sums.shape[1]):
            expected = total * share[y]
            score += (sums[c, y] - expected) ** 2 / expected
        out[c] = score


def chi_square(sums, counts, out) -> None:
    """out[c] = the sum of (observed - expected)**2 / expected over the classes; `counts` are their rows."""
    share = counts / counts.sum()
    over_range(lambda a, b: _chi_square(sums, share, out, a, b), len(out), sums.size)


@kernel
def _f_ratio(sums, counts, out, start, stop):
    n, n_classes = counts.sum(), len(counts)
    weights, ratio = 1.0 / counts, (n - n_classes) / (n_classes - 1)  # divisions take longer than all else
    for c in range(start, stop):
        total = each = 0.0
        for y in range(n_classes):
            total += sums[c, y]
            each += sums[c, y] ** 2 * weights[y]
        between = max(each - total * total / n, 0.0)
        out[c] = between * ratio / max(sums[c, n_classes] - each, 0.0)


def f_ratio(sums, counts, out) -> None:
    """out[c] = the mean square between the classes over the one within them, from sums of values and of squares."""
    over_range(lambda a, b: _f_ratio(sums, counts, out, a, b), len(out), sums.size)
