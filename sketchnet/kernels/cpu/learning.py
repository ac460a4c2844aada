"""The learnable layer: forward, backward, and updates that touch only the rows of weights that a batch used.

A batch numbers its distinct columns. Column u has the weights starts[u] to starts[u + 1] of a compact list, each
leading to the output `targets`; a table of dense rows (the wide path) needs neither list. Sums run in stored order, on
one thread where rows would share a sum, so results do not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import kernel
from sketchnet.kernels.cpu.draw import hash64
from sketchnet.kernels.cpu.threads import over_range, over_rows

_u64 = np.uint64
_SPREAD = _u64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: multiplies ids apart


@kernel
def _number(indices, table, columns, local):
    """Fill `columns` and `local`; `table`, of a power of two, is -1 everywhere. Returns how many columns there are."""
    mask, n = _u64(len(table) - 1), 0
    for t in range(len(indices)):
        column = np.int64(indices[t])
        slot = _u64(column) * _SPREAD
        slot = (slot ^ (slot >> _u64(32))) & mask
        while table[slot] >= 0 and columns[table[slot]] != column:
            slot = (slot + _u64(1)) & mask
        if table[slot] < 0:
            table[slot] = n
            columns[n] = column
            n += 1
        local[t] = table[slot]
    return n


def number_columns(indices):
    """(columns, local): the distinct column ids as they first occur, and each entry's position among them."""
    n = len(indices)
    columns, local = np.empty(n, np.int64), np.empty(n, np.int32 if n < 2**31 else np.int64)
    table = np.full(1 << max(4, (2 * n - 1).bit_length()), -1, local.dtype)
    return columns[: _number(indices, table, columns, local)], local


@kernel
def _drop(indptr, indices, values, multiplier, offset, keep_below, scale, new_indptr, new_indices, new_values):
    kept = 0
    for r in range(len(indptr) - 1):
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            if hash64(_u64(t), multiplier, offset) < keep_below:
                new_indices[kept] = indices[t]
                new_values[kept] = values[t] * scale
                kept += 1
        new_indptr[r + 1] = kept
    return kept


def drop_entries(indptr, indices, values, rate: float, key):
    """CSR arrays without each entry that its hash drops, with probability `rate`; the others grow by 1 / (1 - rate)."""
    new_indptr, new_indices = np.zeros(len(indptr), np.int64), np.empty_like(indices)
    new_values = np.empty(len(values), np.float64 if values.dtype == np.float64 else np.float32)
    scale = new_values.dtype.type(1 / (1 - rate))
    keep_below = _u64(min(int((1 - rate) * 2.0**64), 2**64 - 1))
    kept = _drop(indptr, indices, values, *key, keep_below, scale, new_indptr, new_indices, new_values)
    return new_indptr, new_indices[:kept], new_values[:kept]


@kernel
def _mask(multiplier, offset, keep_below, scale, out, start, stop):
    for i in range(start, stop):
        out[i] = scale if hash64(_u64(i), multiplier, offset) < keep_below else np.float32(0)


def dropout_mask(n: int, rate: float, key):
    """n numbers, 0 with probability `rate` and else 1 / (1 - rate)."""
    out, keep_below = np.empty(n, np.float32), _u64(min(int((1 - rate) * 2.0**64), 2**64 - 1))
    over_range(lambda a, b: _mask(*key, keep_below, np.float32(1 / (1 - rate)), out, a, b), n, n)
    return out


@kernel
def _scatter(indptr, local, values, starts, targets, weights, bias, out, start, stop):
    number = out.dtype.type
    for r in range(start, stop):
        row = out[r]
        for j in range(out.shape[1]):
            row[j] = bias[j]
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            value = number(values[t])
            for s in range(starts[local[t]], starts[local[t] + 1]):
                row[targets[s]] += value * weights[s]


def scatter_forward(indptr, local, values, starts, targets, weights, bias, out) -> None:
    """out[r, targets[s]] = bias plus sums of value * weights[s] over the weights s of each entry's column."""
    over_rows(lambda a, b: _scatter(indptr, local, values, starts, targets, weights, bias, out, a, b), indptr, 4)


@kernel
def _scatter_backward(indptr, local, values, starts, targets, gradient, out):
    for r in range(len(indptr) - 1):
        row = gradient[r]
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            value = out.dtype.type(values[t])
            for s in range(starts[local[t]], starts[local[t] + 1]):
                out[s] += value * row[targets[s]]


def scatter_backward(indptr, local, values, starts, targets, gradient):
    """Gradient of the compact weights."""
    out = np.zeros(len(targets), gradient.dtype)
    _scatter_backward(indptr, local, values, starts, targets, gradient, out)
    return out


@kernel
def _scatter_values(indptr, local, starts, targets, weights, gradient, out, start, stop):
    for r in range(start, stop):
        row = gradient[r]
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            total = out.dtype.type(0)
            for s in range(starts[local[t]], starts[local[t] + 1]):
                total += weights[s] * row[targets[s]]
            out[t] = total


def scatter_values(indptr, local, starts, targets, weights, gradient):
    """Gradient of the entries' values."""
    out = np.empty(len(local), gradient.dtype)
    over_rows(lambda a, b: _scatter_values(indptr, local, starts, targets, weights, gradient, out, a, b), indptr, 4)
    return out


@kernel
def _wide(indptr, indices, values, table, out, start, stop):
    number = out.dtype.type
    for r in range(start, stop):
        row = out[r]
        for j in range(out.shape[1]):
            row[j] = 0
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            value, weights = number(values[t]), table[indices[t]]
            for j in range(out.shape[1]):
                row[j] += value * weights[j]


def wide_forward(indptr, indices, values, table, out) -> None:
    """out = csr @ table."""
    over_rows(lambda a, b: _wide(indptr, indices, values, table, out, a, b), indptr, 4 + table.shape[1] // 8)


@kernel
def _wide_backward(indptr, local, values, gradient, out):
    for r in range(len(indptr) - 1):
        row = gradient[r]
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            value, sums = out.dtype.type(values[t]), out[local[t]]
            for j in range(out.shape[1]):
                sums[j] += value * row[j]


def wide_backward(indptr, local, values, n_columns: int, gradient):
    """Gradient of the rows of the table that the batch used, in its own numbering."""
    out = np.zeros((n_columns, gradient.shape[1]), gradient.dtype)
    _wide_backward(indptr, local, values, gradient, out)
    return out


@kernel
def _wide_values(indptr, indices, table, gradient, out, start, stop):
    for r in range(start, stop):
        row = gradient[r]
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            total, weights = out.dtype.type(0), table[indices[t]]
            for j in range(gradient.shape[1]):
                total += weights[j] * row[j]
            out[t] = total


def wide_values(indptr, indices, table, gradient):
    """Gradient of the entries' values."""
    out = np.empty(len(indices), gradient.dtype)
    over_rows(lambda a, b: _wide_values(indptr, indices, table, gradient, out, a, b), indptr, 4)
    return out


@kernel
def _gather(table, rows, out, start, stop):
    for i in range(start, stop):
        out[i] = table[rows[i]]


def gather(table, rows):
    """table[rows] of a line of numbers, in threads."""
    out = np.empty(len(rows), table.dtype)
    over_range(lambda a, b: _gather(table, rows, out, a, b), len(rows), len(rows))
    return out


# What optimisers keep for a row of weights stands in one row too, so that an update misses the cache twice, not thrice.


@kernel
def _momentum_wait(weights, state, rows, now, powers, start, stop):
    width = weights.shape[1]
    for i in range(start, stop):
        r = rows[i]
        waited = now - np.int64(state[r, width])
        if waited > 0:
            a, b, c, d = powers[waited, 0], powers[waited, 1], powers[waited, 2], powers[waited, 3]
            for j in range(width):
                w, v = np.float64(weights[r, j]), np.float64(state[r, j])
                weights[r, j] = a * w + b * v
                state[r, j] = c * w + d * v
            state[r, width] = now


def momentum_wait(weights, state, rows, now: int, powers) -> None:
    """Bring rows to step `now`: (w, v) times the power of the step's matrix for the steps without a gradient.

    A row of `state` has the velocities and then the step that the row is at.
    """
    work = 2 * weights.shape[1] * len(rows)
    over_range(lambda a, b: _momentum_wait(weights, state, rows, now, powers, a, b), len(rows), work)


@kernel
def _momentum_step(weights, state, rows, gradient, now, rate, momentum, l2, start, stop):
    number, width = weights.dtype.type, weights.shape[1]
    rate, momentum, l2 = number(rate), number(momentum), number(l2)
    for i in range(start, stop):
        r = rows[i]
        for j in range(width):
            v = momentum * state[r, j] + gradient[i, j] + l2 * weights[r, j]
            state[r, j] = v
            weights[r, j] -= rate * v
        state[r, width] = now


def momentum_step(weights, state, rows, gradient, now: int, rate, momentum, l2) -> None:
    """v = momentum * v + gradient + l2 * w; w -= rate * v, for the given rows, which are then at step `now`."""
    over_range(
        lambda a, b: _momentum_step(weights, state, rows, gradient, now, rate, momentum, l2, a, b),
        len(rows),
        4 * gradient.size,
    )


@kernel
def _adam_step(weights, state, rows, gradient, rate, beta1, beta2, epsilon, correction, decay, start, stop):
    number, width = weights.dtype.type, weights.shape[1]
    one, rate, beta1, beta2, epsilon = number(1), number(rate), number(beta1), number(beta2), number(epsilon)
    correction, keep = number(correction), number(1 - decay)
    for i in range(start, stop):
        r = rows[i]
        for j in range(width):
            g = gradient[i, j]
            m = beta1 * state[r, j] + (one - beta1) * g
            v = beta2 * state[r, width + j] + (one - beta2) * g * g
            state[r, j], state[r, width + j] = m, v
            weights[r, j] = keep * weights[r, j] - rate * m / (np.sqrt(v) * correction + epsilon)


def adam_step(weights, state, rows, gradient, rate, beta1, beta2, epsilon, correction, decay) -> None:
    """Adam for the given rows alone; `correction` is 1 / sqrt(1 - beta2**step), `decay` what the weights lose.

    A row of `state` has the first moments and then the second.
    """
    over_range(
        lambda a, b: _adam_step(weights, state, rows, gradient, rate, beta1, beta2, epsilon, correction, decay, a, b),
        len(rows),
        4 * gradient.size,
    )


@kernel
def _max_abs(indices, values, out):
    for t in range(len(indices)):
        out[indices[t]] = max(out[indices[t]], abs(np.float64(values[t])))


def max_abs(indices, values, out) -> None:
    """out[c] = the larger of itself and the absolute values in column c."""
    _max_abs(indices, values, out)
