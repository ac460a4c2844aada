"""Kernels in plain NumPy: slow, short, and the oracle of the tests. Each says what the fast ones must compute."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sketchnet import random
from sketchnet.kernels.reference.retrieval import add_gains, class_gains, set_gains, similarity_keys, sort_rows
from sketchnet.kernels.reference.selection import (
    add_by_class,
    add_transposed,
    chi_square,
    column_gain,
    count_columns,
    f_ratio,
    group_by_column,
    ordered,
)


def draw_normals(seed, stream, rows, first, out):
    """out[r, j] = standard normal of entry (rows[r], first + j); `first` and the width are multiples of four."""
    out[:] = random.normals(random.words(seed, stream, rows, first // 4 + np.arange(out.shape[1] // 4)))


def draw_signs(seed, stream, rows, first, s, out):
    """out[r, j] = +1, -1 or 0 with probabilities 1/2s, 1/2s, 1 - 1/s; `first` and the width are multiples of four."""
    w = random.words(seed, stream, rows, first // 4 + np.arange(out.shape[1] // 4))
    out[:] = np.where(w < 2**32 // (2 * s), 1, np.where(w < 2**32 // s, -1, 0))


def draw_skips(seed, stream, rows, width, thresholds, per_row):
    """Rows of independent signs, as CSR (indptr, codes); a code is the column, or ~column where the sign is -1."""
    base = thresholds.shape[1]
    indptr, codes = [0], []
    for row in rows:
        column = draw = 0
        while True:
            gap, beyond, negative = 0, False, 0
            for level, table in enumerate(thresholds):
                w = [int(x) for x in random.words(seed, stream, row, draw // 2)[0, 2 * (draw % 2) :][:2]]
                word, draw = w[0] | w[1] << 32, draw + 1
                negative = word & 1 if level == 0 else negative
                digit = int(np.searchsorted(table, np.uint64(word >> 1), side="right"))
                beyond, gap = beyond or digit == base, gap * base + digit
            column += gap
            if beyond or column >= width:
                break
            codes.append(~column if negative else column)
            column += 1
        indptr.append(len(codes))
    return np.array(indptr), np.array(codes, np.int64)


def draw_buckets(key, rows, k):
    """Count Sketch's code of each row id: its bucket, or ~bucket where the sign is -1."""
    h = random.hash64(np.asarray(rows).astype(np.uint64), *key)
    bucket = random.bucket_of(h, np.uint64(k)).astype(np.int64)
    return np.where(random.sign_bit_of(h) == 1, ~bucket, bucket)


def draw_states(key, expected):
    """1 with probability expected[i], else 0: by the 24 highest bits of a hash in the first half, else the lowest."""
    half = (len(expected) + 1) // 2
    h = random.hash64(np.arange(half, dtype=np.uint64), *key)
    bits = np.concatenate([h >> np.uint64(40), h[: len(expected) - half] & np.uint64(0xFFFFFF)])
    return (bits / 2.0**24 < expected).astype(expected.dtype)


def multiply_panel(indptr, indices, values, panel, scale, out, columns):
    """out[:, columns] = scale * (csr @ panel), of which the panel's first columns count."""
    width = columns.stop - columns.start
    out[:, columns] = scale * (_csr(indptr, indices, values, len(panel)) @ panel[:, :width].astype(np.float64))


def multiply_sparse(indptr, indices, values, p_indptr, p_codes, scale, out):
    """out = scale * (csr @ P), P given by its sparse rows of signs."""
    signs = np.where(p_codes < 0, -1.0, 1.0)
    columns = np.where(p_codes < 0, ~p_codes, p_codes)
    p = sparse.csr_array((signs, columns, p_indptr), shape=(len(p_indptr) - 1, out.shape[1]))
    out[:] = scale * (_csr(indptr, indices, values, p.shape[0]) @ p).toarray()


def count_sketch(indptr, indices, values, key, out):
    """out = csr @ P for Count Sketch's P."""
    out[:] = 0
    codes = draw_buckets(key, indices, out.shape[1])
    rows = np.repeat(np.arange(len(out)), np.diff(indptr))
    np.add.at(out, (rows, np.where(codes < 0, ~codes, codes)), np.where(codes < 0, -values, values))


def hadamard_sparse(
    indptr, indices, values, key, size, parity_limit, few, f_ptr, f_at, f_value, scale, out, columns, threads=None
):
    """out[:, columns] = scale * sums over each column's frequencies of f_value * (csr @ D @ H)[:, frequency]."""
    signed = values * (1.0 - 2.0 * random.sign_bit_of(random.hash64(np.asarray(indices).astype(np.uint64), *key)))
    s = sparse.csr_array((f_value.astype(np.float64), np.arange(len(f_at)), f_ptr), shape=(len(f_ptr) - 1, len(f_at)))
    for r in range(len(out)):
        span = slice(indptr[r] - indptr[0], indptr[r + 1] - indptr[0])
        i = np.asarray(indices[span]).astype(np.uint64)[:, None]
        parity = np.bitwise_count(i & f_at.astype(np.uint64)) & 1
        out[r, columns] = scale * (s @ (signed[span] @ (1.0 - 2.0 * parity)))


def hadamard_dense(x, key, size, few, f_ptr, f_at, f_value, scale, out, columns, threads=None):
    """The same for dense rows."""
    csr = sparse.csr_array(x)
    hadamard_sparse(csr.indptr, csr.indices, csr.data, key, size, 0, few, f_ptr, f_at, f_value, scale, out, columns)


def fwht(x):
    """Unnormalised Walsh-Hadamard transform of each row, in place; the width is a power of two."""
    i = np.arange(x.shape[1])
    x[:] = x @ (1.0 - 2.0 * (np.bitwise_count(i[:, None] & i) & 1))


def gather_rows(indptr, indices, values, rows):
    """CSR arrays of the given rows, in the given order."""
    spans = [np.arange(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]) for r in rows]
    entries = np.concatenate([np.empty(0, np.int64), *spans])
    return np.cumsum([0] + [len(span) for span in spans]), indices[entries], values[entries]


def first_bad_id(ids, limit):
    """Position of the first id outside [0, limit); -1 if there is none."""
    return _first((ids < 0) | (ids >= limit))


def first_non_finite(values):
    """Position of the first NaN or infinity in a line of floats; -1 if there is none."""
    return _first(~np.isfinite(values))


def compact_columns(indices, d):
    """(columns, local): the distinct column ids in ascending order, and each entry's position among them."""
    return np.unique(indices, return_inverse=True)


def number_columns(indices):
    """(columns, local): the distinct column ids as they first occur, and each entry's position among them."""
    columns, first, local = np.unique(indices, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return columns[order].astype(np.int64), np.argsort(order)[local]


def drop_entries(indptr, indices, values, rate, key):
    """CSR arrays without each entry that its hash drops, with probability `rate`; the others grow by 1 / (1 - rate)."""
    kept = random.hash64(np.arange(len(indices), dtype=np.uint64), *key) < min(int((1 - rate) * 2.0**64), 2**64 - 1)
    counts = np.concatenate([[0], np.cumsum(kept)])
    dtype = np.float64 if values.dtype == np.float64 else np.float32
    return counts[indptr - indptr[0]], indices[kept], (values[kept] * dtype(1 / (1 - rate))).astype(dtype)


def dropout_mask(n, rate, key):
    """n numbers, 0 with probability `rate` and else 1 / (1 - rate)."""
    kept = random.hash64(np.arange(n, dtype=np.uint64), *key) < min(int((1 - rate) * 2.0**64), 2**64 - 1)
    return np.where(kept, np.float32(1 / (1 - rate)), np.float32(0))


def scatter_forward(indptr, local, values, starts, codes, weights, bias, out):
    """out[r, codes[s]] = bias plus sums of value * weights[s] over the weights s of each entry's column.

    A column u has the weights starts[u] to starts[u + 1], or the weight u where `starts` is None. A negative code
    stands for the output ~code.
    """
    pattern = _pattern(starts, codes, weights, out.shape[1])
    out[:] = bias + (_csr(indptr, local, values, pattern.shape[0]) @ pattern).toarray()


def scatter_backward(indptr, local, values, starts, codes, gradient):
    """Gradient of the compact weights."""
    starts = np.arange(len(codes) + 1) if starts is None else starts
    sums = _csr(indptr, local, values, len(starts) - 1).T @ gradient.astype(np.float64)
    return sums[_owners(starts), np.where(codes < 0, ~codes, codes)].astype(gradient.dtype)


def scatter_values(indptr, local, starts, codes, weights, gradient):
    """Gradient of the entries' values."""
    sums = gradient.astype(np.float64) @ _pattern(starts, codes, weights, gradient.shape[1]).T
    return sums[_owners(indptr - indptr[0]), local].astype(gradient.dtype)


def multiply_table(indptr, indices, values, table, out):
    """out = csr @ table."""
    out[:] = _csr(indptr, indices, values, len(table)) @ table.astype(np.float64)


def multiply_transposed(indptr, indices, values, n_columns, factors):
    """csr.T @ factors, with a row for each of `n_columns`."""
    return (_csr(indptr, indices, values, n_columns).T @ factors.astype(np.float64)).astype(factors.dtype)


def gather(table, rows, width):
    """The first `width` numbers of the given rows."""
    return table[rows, :width]


def momentum_read(table, rows, now, powers):
    """The weights of rows that are brought to step `now`: (w, v) times the power of the step's matrix for the steps
    without a gradient. A row has weights, velocities and the step that it is at.
    """
    a, b, c, d = powers[now - table[rows, -1].astype(np.int64)].T[:, :, None]
    w, v = np.split(table[rows, :-1].astype(np.float64), 2, axis=1)
    table[rows] = np.hstack([a * w + b * v, c * w + d * v, np.full((len(rows), 1), now)])
    return table[rows, : w.shape[1]]


def momentum_step(table, rows, gradient, now, rate, momentum, l2):
    """v = momentum * v + gradient + l2 * w; w -= rate * v, for the given rows, which are then at step `now`."""
    w, v = np.split(table[rows, :-1], 2, axis=1)
    v = momentum * v + gradient + l2 * w
    table[rows] = np.hstack([w - rate * v, v, np.full((len(rows), 1), now)])


def adam_step(table, rows, gradient, rate, beta1, beta2, epsilon, correction, decay):
    """Adam for the given rows alone; `correction` is 1 / sqrt(1 - beta2**step), `decay` what the weights lose.

    A row has weights, first moments and second moments.
    """
    w, first, second = np.split(table[rows], 3, axis=1)
    first = beta1 * first + (1 - beta1) * gradient
    second = beta2 * second + (1 - beta2) * gradient**2
    table[rows] = np.hstack([(1 - decay) * w - rate * first / (np.sqrt(second) * correction + epsilon), first, second])


def column_sums(rows, about):
    """(sums of x - about, sums of its squares, largest |x|) of each column, in float64."""
    off = rows.astype(np.float64) - about
    return off.sum(axis=0), np.square(off).sum(axis=0), np.abs(rows.astype(np.float64)).max(axis=0, initial=0)


def max_abs(indices, values, out):
    """out[c] = the larger of itself and the absolute values in column c."""
    np.maximum.at(out, indices, np.abs(values.astype(np.float64)).astype(out.dtype))


def _owners(starts):
    """The row that each entry belongs to."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def _pattern(starts, codes, weights, k):
    starts = np.arange(len(codes) + 1) if starts is None else starts
    outputs = np.where(codes < 0, ~codes, codes)
    return sparse.csr_array((weights.astype(np.float64), outputs, starts), shape=(len(starts) - 1, k))


def _csr(indptr, indices, values, d):
    return sparse.csr_array((np.asarray(values, np.float64), indices, indptr - indptr[0]), shape=(len(indptr) - 1, d))


def _first(bad):
    where = np.flatnonzero(bad)
    return int(where[0]) if len(where) else -1
