"""The Walsh-Hadamard transform of signed rows, whole (fast transform) or at chosen frequencies (bit parity).

H[i, f] = (-1)**popcount(i & f) for size = 2**m, unnormalised. A sparse row with z non-zeros costs z operations per
frequency by parity, whatever the size; the fast transform costs size * log2(size) for all frequencies at once.
"""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import inlined, kernel, popcount
from sketchnet.kernels.cpu.draw import hash64, sign_bit_of
from sketchnet.kernels.cpu.threads import over_range, over_rows

_u64 = np.uint64
_TILE = 4096  # frequencies whose partial sums stay in the first-level cache


@inlined
def diagonal_sign(i, multiplier, offset):
    return 1 - 2 * np.int8(sign_bit_of(hash64(_u64(i), multiplier, offset)))


@kernel()
def _transform(x):
    """Unnormalised transform in place, two levels a pass: half the trips through memory of the textbook loop."""
    n = x.shape[0]
    h = 1
    if n >= 4:  # the first pass alone has a stride that the compiler must know to vectorise it
        for i in range(0, n, 4):
            a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
            x[i], x[i + 1], x[i + 2], x[i + 3] = (a + b) + (c + d), (a - b) + (c - d), (a + b) - (c + d), (a - b) - (c - d)
        h = 4
    while 4 * h <= n:
        for i in range(0, n, 4 * h):
            p, q, r, s = x[i : i + h], x[i + h : i + 2 * h], x[i + 2 * h : i + 3 * h], x[i + 3 * h : i + 4 * h]
            for j in range(h):
                a, b, c, d = p[j], q[j], r[j], s[j]
                p[j], q[j], r[j], s[j] = (a + b) + (c + d), (a - b) + (c - d), (a + b) - (c + d), (a - b) - (c - d)
        h *= 4
    if 2 * h <= n:
        for j in range(h):
            a, b = x[j], x[j + h]
            x[j], x[j + h] = a + b, a - b


@inlined
def pick(x, f_ptr, f_at, f_value, scale, row):
    """row[j] = scale * sum of f_value * x[f_at] over column j's frequencies."""
    number = row.dtype.type
    for j in range(row.shape[0]):
        total = number(0)
        for q in range(f_ptr[j], f_ptr[j + 1]):
            total += number(f_value[q]) * x[f_at[q]]
        row[j] = total * number(scale)


@kernel()
def _sparse_rows(indptr, indices, values, m, o, size, parity_limit, f_ptr, f_at, f_value, scale, out, first_column, start, stop):
    number = out.dtype.type
    k = f_ptr.shape[0] - 1
    longest = _TILE
    for j in range(k):
        longest = max(longest, f_ptr[j + 1] - f_ptr[j])
    sums = np.empty(longest, out.dtype)
    whole = np.empty(0, out.dtype)
    for r in range(start, stop):
        row = out[r, first_column : first_column + k]
        first, last = indptr[r] - indptr[0], indptr[r + 1] - indptr[0]
        if last - first > parity_limit:
            if whole.shape[0] == 0:
                whole = np.empty(size, out.dtype)
            whole[:] = 0
            for t in range(first, last):
                whole[indices[t]] += number(values[t]) * number(diagonal_sign(indices[t], m, o))
            _transform(whole)
            pick(whole, f_ptr, f_at, f_value, scale, row)
            continue
        j0 = 0
        while j0 < k:
            j1 = j0 + 1
            while j1 < k and f_ptr[j1 + 1] - f_ptr[j0] <= longest:
                j1 += 1
            frequencies = f_at[f_ptr[j0] : f_ptr[j1]]
            n = frequencies.shape[0]
            for q in range(n):
                sums[q] = 0
            for t in range(first, last):
                value = number(values[t]) * number(diagonal_sign(indices[t], m, o))
                i = f_at.dtype.type(indices[t])
                for q in range(n):
                    odd = popcount(f_at.dtype.type(i & frequencies[q])) & f_at.dtype.type(1)
                    sums[q] += -value if odd else value
            for j in range(j0, j1):
                total = number(0)
                for q in range(f_ptr[j] - f_ptr[j0], f_ptr[j + 1] - f_ptr[j0]):
                    total += number(f_value[f_ptr[j0] + q]) * sums[q]
                row[j] = total * number(scale)
            j0 = j1


@kernel()
def _dense_rows(x, diagonal, size, f_ptr, f_at, f_value, scale, out, first_column, start, stop):
    number = out.dtype.type
    whole = np.empty(size, out.dtype)
    d, k = x.shape[1], f_ptr.shape[0] - 1
    for r in range(start, stop):
        for i in range(d):
            whole[i] = number(x[r, i]) * diagonal[i]
        whole[d:] = 0
        _transform(whole)
        pick(whole, f_ptr, f_at, f_value, scale, out[r, first_column : first_column + k])


@kernel()
def _diagonal(m, o, diagonal, start, stop):
    for i in range(start, stop):
        diagonal[i] = diagonal_sign(i, m, o)


def hadamard_sparse(indptr, indices, values, key, size, parity_limit, f_ptr, f_at, f_value, scale, out, columns) -> None:
    """out[:, columns] = scale * sums over each column's frequencies of f_value * (csr @ D @ H)[:, frequency].

    Rows with more than `parity_limit` non-zeros go through the fast transform, the others through bit parity.
    """
    over_rows(
        lambda a, b: _sparse_rows(
            indptr, indices, values, *key, size, parity_limit, f_ptr, f_at, f_value, scale, out, columns.start, a, b
        ),
        indptr,
        len(f_at) // 8 + 1,
    )


def hadamard_dense(x, key, size, f_ptr, f_at, f_value, scale, out, columns) -> None:
    """The same for dense rows, by the fast transform."""
    diagonal = np.empty(x.shape[1], out.dtype)
    over_range(lambda a, b: _diagonal(*key, diagonal, a, b), len(diagonal), len(diagonal))
    over_range(
        lambda a, b: _dense_rows(x, diagonal, size, f_ptr, f_at, f_value, scale, out, columns.start, a, b), len(x), len(x) * size
    )


def fwht(x: np.ndarray) -> None:
    """Unnormalised Walsh-Hadamard transform of each row, in place; the width is a power of two."""

    def rows(start, stop):
        for r in range(start, stop):
            _transform(x[r])

    over_range(rows, len(x), x.size)
