"""Scores of columns: sums by class, information gain; and products for the SVD."""

from __future__ import annotations

import itertools

import numpy as np

from sketchnet.kernels.cpu.compile import inlined, kernel
from sketchnet.kernels.cpu.threads import n_threads, over_range, over_rows

_u64 = np.uint64
_SPREAD = _u64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: multiplies keys apart


_CHAIN = 1024  # entries of a link, a power of two
_CACHE = 1 << 20  # bytes of sums that stay in a core's own cache
_MOST_GROUPS = 64  # of columns: more would be too many places to write to in turn


@kernel
def _split(indptr, indices, values, classes, n_classes, first, n_columns, shift, keys, copies, ends, following, rows):
    """Copy the entries of rows[0] to rows[1] into a chain of links for each group of 2**shift columns, with the places
    of their sums. Group g begins with link g and ends before place ends[g]; following[l] is the link after link l.
    """
    outside = unordered = bad = False
    used, link = _u64(len(ends)), _u64(_CHAIN)
    for g in range(len(ends)):
        ends[g] = _u64(g) * link
    for r in range(rows[0], rows[1]):
        y, t, stop = _u64(classes[r]), _u64(indptr[r] - indptr[0]), _u64(indptr[r + 1] - indptr[0])
        for u in range(t, stop):
            bad |= not np.isfinite(values[u])
        for u in range(t + _u64(1), stop):
            unordered |= indices[u] <= indices[u - _u64(1)]
        if bad or unordered:
            break
        while t < stop and indices[t] < first:
            t, outside = t + _u64(1), True
        while t < stop and indices[stop - _u64(1)] >= first + n_columns:
            stop, outside = stop - _u64(1), True
        for u in range(t, stop):
            column = _u64(indices[u] - first)
            group = column >> shift
            place = ends[group]
            keys[place], copies[place] = column * n_classes + y, values[u]
            place += _u64(1)
            if place & (link - _u64(1)) == _u64(0):
                following[place // link - _u64(1)] = used
                place = used * link
                used += _u64(1)
            ends[group] = place
    return outside, unordered, bad


@kernel
def _add_up(keys, copies, ends, following, sums, start, stop):
    flat = sums.reshape(-1)
    for group in range(start, stop):
        link, last = _u64(group), ends[group] // _u64(_CHAIN)
        while True:
            low = link * _u64(_CHAIN)
            high = ends[group] if link == last else low + _u64(_CHAIN)
            if sums.shape[2] == 1:
                for t in range(low, high):
                    flat[_u64(keys[t])] += abs(np.float64(copies[t]))
            else:
                for t in range(low, high):
                    place, x = _u64(2) * _u64(keys[t]), np.float64(copies[t])
                    total, squares = flat[place] + x, flat[place + _u64(1)] + x * x
                    flat[place], flat[place + _u64(1)] = total, squares
            if link == last:
                break
            link = _u64(following[link])


def add_by_class(indptr, indices, values, classes, first: int, sums):
    """Add to sums[c - first, y] what the entries of column c have in rows of class y; other columns are left out.

    Ten million scattered additions to sums that lie in memory take longer than copying the entries into groups of
    columns whose sums fit into a core's cache. Groups are also what threads share: a sum is made by one of them, in the
    order of the rows, so it does not depend on their number.
    """
    n_columns, n_classes, _ = sums.shape
    n, entries = len(indptr) - 1, int(indptr[-1]) - int(indptr[0])
    per_group = max(1, min(_CACHE * n_columns // sums.nbytes, n_columns // (4 * n_threads())))
    shift = max(per_group.bit_length() - 1, ((n_columns - 1) // _MOST_GROUPS).bit_length())
    n_groups = (n_columns - 1 >> shift) + 1
    edges = np.searchsorted(indptr, int(indptr[0]) + np.linspace(0, entries, n_threads() + 1).astype(indptr.dtype))
    edges[0], edges[-1] = 0, n
    pieces = []
    for a, b in zip(edges[:-1], edges[1:]):
        links = (int(indptr[b]) - int(indptr[a])) // _CHAIN + n_groups + 1
        copies = np.empty(links * _CHAIN, np.uint32), np.empty(links * _CHAIN, values.dtype)
        pieces.append((*copies, np.empty(n_groups, _u64), np.empty(links, np.uint32), (int(a), int(b))))
    csr, where = (indptr, indices, values, classes, _u64(n_classes)), (np.int64(first), n_columns, _u64(shift))
    found = over_range(lambda a, b: [_split(*csr, *where, *piece) for piece in pieces[a:b]], len(pieces), entries)
    outside, unordered, non_finite = (any(flags) for flags in zip(*itertools.chain(*found)))
    if not (unordered or non_finite):
        over_range(lambda a, b: [_add_up(*piece[:-1], sums, a, b) for piece in pieces], n_groups, entries)
    return outside, unordered, non_finite


@kernel
def _ordered(indptr, indices, start, stop):
    good = True
    for r in range(start, stop):
        for t in range(indptr[r] - indptr[0] + 1, indptr[r + 1] - indptr[0]):
            good &= indices[t] > indices[t - 1]
    return good


def ordered(indptr, indices) -> bool:
    """Whether the ids of each row ascend, none repeated."""
    return all(over_rows(lambda a, b: _ordered(indptr, indices, a, b), indptr))


@kernel
def _chi_square(sums, share, out, start, stop):
    for c in range(start, stop):
        total = score = 0.0
        for y in range(sums.shape[1]):
            total += sums[c, y, 0]
        for y in range(sums.shape[1]):
            expected = total * share[y]
            score += (sums[c, y, 0] - expected) ** 2 / expected
        out[c] = score


def chi_square(sums, counts, out) -> None:
    """out[c] = the sum of (observed - expected)**2 / expected over the classes; `counts` are their rows."""
    share = counts / counts.sum()
    over_range(lambda a, b: _chi_square(sums, share, out, a, b), len(out), sums.size)


@kernel
def _f_ratio(sums, counts, out, start, stop):
    n, n_classes = counts.sum(), sums.shape[1]
    for c in range(start, stop):
        total = squares = each = 0.0
        for y in range(n_classes):
            total += sums[c, y, 0]
            squares += sums[c, y, 1]
            each += sums[c, y, 0] ** 2 / counts[y]
        between = max(each - total * total / n, 0.0) / (n_classes - 1)
        out[c] = between / (max(squares - each, 0.0) / (n - n_classes))


def f_ratio(sums, counts, out) -> None:
    """out[c] = the mean square between the classes over the one within them, from sums of values and of squares."""
    over_range(lambda a, b: _f_ratio(sums, counts, out, a, b), len(out), sums.size)


@kernel
def _count(indices, lengths):
    for t in range(len(indices)):
        lengths[indices[t]] += 1


def count_columns(indices, lengths) -> None:
    """lengths[c] += how often column c occurs."""
    _count(indices, lengths)


@kernel
def _group(indptr, indices, values, classes, first, free, out_values, out_classes):
    for r in range(len(indptr) - 1):
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            c = np.int64(indices[t]) - first
            if 0 <= c < len(free):
                place = free[c]
                out_values[place], out_classes[place] = values[t], classes[r]
                free[c] = place + 1


def group_by_column(indptr, indices, values, classes, first: int, free, out_values, out_classes) -> None:
    """Write each entry's value and the class of its row to place free[c - first], which then moves on by one."""
    _group(indptr, indices, values, classes, first, free, out_values, out_classes)


@inlined
def _slot_of(bits, y, mask):
    slot = (_u64(bits) + _u64(y + 1) * _u64(0xD1B54A32D192ED03)) * _SPREAD
    return np.int64((slot ^ (slot >> _u64(32))) & mask)


@inlined
def _n_log_n(n):
    return n * np.log(np.float64(n)) if n > 1 else 0.0


@kernel
def _gain(offsets, bits, classes, counts, out, start, stop):
    longest = 1
    for c in range(start, stop):
        longest = max(longest, offsets[c + 1] - offsets[c])
    size = 4
    while size < 4 * longest:
        size *= 2
    keys, owners, tally = np.empty(size, bits.dtype), np.empty(size, np.int32), np.zeros(size, np.int64)
    zeros = np.empty(len(counts), np.int64)
    n, of_classes = np.int64(0), 0.0
    for y in range(len(counts)):
        n += counts[y]
        of_classes += _n_log_n(counts[y])
    for c in range(start, stop):
        size, length = 4, offsets[c + 1] - offsets[c]
        while size < 4 * length:
            size *= 2
        mask = _u64(size - 1)
        for y in range(len(counts)):
            zeros[y] = counts[y]
        n_zeros = n
        for t in range(offsets[c], offsets[c + 1]):
            if bits[t] == 0:
                continue
            zeros[classes[t]] -= 1
            n_zeros -= 1
            # The value, and the value together with the class, are counted in one table: class -1 is the value's own.
            for y in (np.int64(-1), np.int64(classes[t])):
                slot = _slot_of(bits[t], y, mask)
                while tally[slot] and not (keys[slot] == bits[t] and owners[slot] == y):
                    slot = np.int64(_u64(slot + 1) & mask)
                keys[slot], owners[slot] = bits[t], y
                tally[slot] += 1
        joint, of_values = 0.0, _n_log_n(n_zeros)
        for y in range(len(counts)):
            joint += _n_log_n(zeros[y])
        for slot in range(size):
            if tally[slot]:
                if owners[slot] < 0:
                    of_values += _n_log_n(tally[slot])
                else:
                    joint += _n_log_n(tally[slot])
                tally[slot] = 0
        out[c] = max(0.0, (joint - of_values - of_classes + _n_log_n(n)) / n)


def column_gain(offsets, values, classes, counts, out) -> None:
    """out[c] = mutual information of the class and the value of column c, whose non-zeros are offsets[c] to
    offsets[c + 1] of the values; all other rows are zero.
    """
    # Values are compared by their bits; minus zero becomes zero first.
    bits = (values + values.dtype.type(0)).view(f"u{values.dtype.itemsize}") if len(values) else values.view(np.uint8)
    over_rows(lambda a, b: _gain(offsets, bits, classes, counts, out, a, b), offsets, 16)


@kernel
def _add_transposed(indptr, indices, values, rows, out, start, stop):
    number = out.dtype.type
    for r in range(len(rows)):
        row = rows[r, start:stop]
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            value, sums = number(values[t]), out[indices[t], start:stop]
            for j in range(len(row)):
                sums[j] += value * row[j]


def add_transposed(indptr, indices, values, rows, out) -> None:
    """out += transpose of csr @ rows."""
    # Threads share columns of `rows`: each sum is made by one of them, in the order of the rows.
    work = len(indices) * rows.shape[1]
    over_range(lambda a, b: _add_transposed(indptr, indices, values, rows, out, a, b), rows.shape[1], work)
