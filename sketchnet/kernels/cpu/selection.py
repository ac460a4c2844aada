"""Information gain of columns, and products for the SVD."""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import inlined, kernel
from sketchnet.kernels.cpu.threads import n_threads, over_range, over_rows

_u64 = np.uint64
_SPREAD = _u64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: multiplies keys apart


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
def count_columns(indices, lengths):
    """lengths[c] += how often column c occurs."""
    for t in range(len(indices)):
        lengths[indices[t]] += 1


@kernel
def group_by_column(indptr, indices, values, classes, first, free, out_values, out_classes):
    """Write each entry's value and the class of its row to place free[c - first], which then moves on by one."""
    for r in range(len(indptr) - 1):
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            c = np.int64(indices[t]) - first
            if 0 <= c < len(free):
                place = free[c]
                out_values[place], out_classes[place] = values[t], classes[r]
                free[c] = place + 1


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
    # Threads share columns of `rows`: each sum is made by one of them, in the order of the rows. As few shares as
    # threads, of whole cache lines: each share has to fetch the rows of `out` for itself.
    width, work = rows.shape[1], len(indices) * rows.shape[1]
    lines = -(-width * out.itemsize // 64)
    edges = np.linspace(0, lines, min(n_threads(), lines) + 1).astype(np.int64) * (64 // out.itemsize)
    edges[-1] = width

    def add(a, b):
        _add_transposed(indptr, indices, values, rows, out, edges[a], edges[b])

    over_range(add, len(edges) - 1, work)
