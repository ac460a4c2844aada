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
_LOW = 16  # strides below this defeat vector instructions; few frequencies are better summed over them one by one
_LOW_SIGNS = np.array([[1 - 2 * (bin(i & f).count("1") & 1) for i in range(_LOW)] for f in range(_LOW)], np.float32)


@inlined
def diagonal_sign(i, multiplier, offset):
    return 1 - 2 * np.int8(sign_bit_of(hash64(_u64(i), multiplier, offset)))


@kernel
def _transform(x, h):
    """Unnormalised transform in place from stride h on, two strides a pass: half the textbook's trips through memory.

    With h = 1 it is whole. With h = _LOW it leaves the bits below to `pick`.
    """
    n = x.shape[0]
    if h == 1 and n >= 4:  # a stride that the compiler knows: it vectorises this pass by shuffling
        for i in range(0, n, 4):
            a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
            s, t, u, v = a + b, a - b, c + d, c - d
            x[i], x[i + 1], x[i + 2], x[i + 3] = s + u, t + v, s - u, t - v
        h = 4
    while 4 * h <= n:
        for i in range(0, n, 4 * h):
            p, q, r, w = x[i : i + h], x[i + h : i + 2 * h], x[i + 2 * h : i + 3 * h], x[i + 3 * h : i + 4 * h]
            for j in range(h):
                s, t, u, v = p[j] + q[j], p[j] - q[j], r[j] + w[j], r[j] - w[j]
                p[j], q[j], r[j], w[j] = s + u, t + v, s - u, t - v
        h *= 4
    if 2 * h <= n:
        for j in range(h):
            a, b = x[j], x[j + h]
            x[j], x[j + h] = a + b, a - b


@kernel
def _pick(x, h, f_ptr, f_at, f_value, scale, row):
    """row[j] = scale * sum of f_value * transform at column j's frequencies, x being transformed from stride h on."""
    number = row.dtype.type
    for j in range(row.shape[0]):
        total = number(0)
        for q in range(f_ptr[j], f_ptr[j + 1]):
            f = np.int64(f_at[q])
            if h == 1:
                total += number(f_value[q]) * x[f]
            else:
                low, base = f % _LOW, f // _LOW * _LOW
                part = number(0)
                for i in range(_LOW):
                    part += number(_LOW_SIGNS[low, i]) * x[base + i]
                total += number(f_value[q]) * part
        row[j] = total * number(scale)


@kernel
def _sparse_rows(csr, m, o, size, parity_limit, few, f_ptr, f_at, f_value, scale, out, column, start, stop):
    indptr, indices, values = csr
    number = out.dtype.type
    k = f_ptr.shape[0] - 1
    longest = _TILE
    for j in range(k):
        longest = max(longest, f_ptr[j + 1] - f_ptr[j])
    sums = np.empty(longest, out.dtype)
    whole, h = np.empty(0, out.dtype), _LOW if few else 1
    for r in range(start, stop):
        row = out[r, column : column + k]
        first, last = indptr[r] - indptr[0], indptr[r + 1] - indptr[0]
        if last - first > parity_limit:
            if whole.shape[0] == 0:
                whole = np.empty(np.int64(size), out.dtype)
            whole[:] = 0
            for t in range(first, last):
                whole[indices[t]] += number(values[t]) * number(diagonal_sign(indices[t], m, o))
            _transform(whole, h)
            _pick(whole, h, f_ptr, f_at, f_value, scale, row)
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


@kernel
def _dense_rows(x, diagonal, size, few, f_ptr, f_at, f_value, scale, out, column, start, stop):
    number = out.dtype.type
    whole, h = np.empty(size, out.dtype), _LOW if few else 1
    d, k = x.shape[1], f_ptr.shape[0] - 1
    for r in range(start, stop):
        for i in range(d):
            whole[i] = number(x[r, i]) * diagonal[i]
        whole[d:] = 0
        _transform(whole, h)
        _pick(whole, h, f_ptr, f_at, f_value, scale, out[r, column : column + k])


@kernel
def _diagonal(m, o, diagonal, start, stop):
    for i in range(start, stop):
        diagonal[i] = diagonal_sign(i, m, o)


def hadamard_sparse(
    indptr, indices, values, key, size, parity_limit, few, f_ptr, f_at, f_value, scale, out, columns, threads=None
) -> None:
    """out[:, columns] = scale * sums over each column's frequencies of f_value * (csr @ D @ H)[:, frequency].

    Rows with more than `parity_limit` non-zeros go through the fast transform, the others through bit parity. `few`
    frequencies in all (not just in these columns) let the transform stop early. At most `threads` run: each takes room
    for a transform.
    """
    csr, picks = (indptr, indices, values), (f_ptr, f_at, f_value)
    limits = np.uint64(size), np.int64(parity_limit), few
    over_rows(
        lambda a, b: _sparse_rows(csr, *key, *limits, *picks, scale, out, columns.start, a, b),
        indptr,
        len(f_at) // 8 + 1,
        threads,
    )


def hadamard_dense(x, key, size, few, f_ptr, f_at, f_value, scale, out, columns, threads=None) -> None:
    """The same for dense rows, by the fast transform."""
    diagonal, picks = np.empty(x.shape[1], out.dtype), (f_ptr, f_at, f_value)
    over_range(lambda a, b: _diagonal(*key, diagonal, a, b), len(diagonal), len(diagonal))
    over_range(
        lambda a, b: _dense_rows(x, diagonal, size, few, *picks, scale, out, columns.start, a, b),
        len(x),
        len(x) * size,
        threads,
    )


def fwht(x: np.ndarray) -> None:
    """Unnormalised Walsh-Hadamard transform of each row, in place; the width is a power of two."""

    def rows(start, stop):
        for r in range(start, stop):
            _transform(x[r], 1)

    over_range(rows, len(x), x.size)
