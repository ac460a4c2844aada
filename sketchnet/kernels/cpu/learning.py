"""The learnable layer: forward, backward, and updates that touch only the rows of weights that a batch used.

A batch numbers its distinct columns. Column u has the weights starts[u] to starts[u + 1] of a compact list (the one
weight u where `starts` is None), each leading to the output `codes`, or ~code where that is negative. Sums run in
stored order, on one thread where rows would share a sum, so results do not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import inlined, kernel, prefetch
from sketchnet.kernels.cpu.draw import hash64
from sketchnet.kernels.cpu.threads import over_range, over_rows

_u64 = np.uint64
_AHEAD = 32  # rows that are asked for before they are needed
_SPREAD = _u64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: multiplies ids apart


@inlined
def _slot(column, mask):
    slot = _u64(column) * _SPREAD
    return (slot ^ (slot >> _u64(32))) & mask


@kernel
def _number(indices, table, columns, local):
    """Fill `columns` and `local`; `table`, of a power of two rows (~id, number), is zero. Returns how many columns."""
    mask, n = _u64(len(table) - 1), 0
    for t in range(len(indices)):
        if t + _AHEAD < len(indices):
            prefetch(table, np.int64(_slot(indices[t + _AHEAD], mask)))
        key, slot = ~np.int64(indices[t]), _slot(indices[t], mask)
        while table[slot, 0] != 0 and table[slot, 0] != key:
            slot = (slot + _u64(1)) & mask
        if table[slot, 0] == 0:
            table[slot, 0], table[slot, 1] = key, n
            columns[n] = ~key
            n += 1
        local[t] = table[slot, 1]
    return n


def number_columns(indices):
    """(columns, local): the distinct column ids as they first occur, and each entry's position among them."""
    n = len(indices)
    number = np.int32 if n < 2**31 else np.int64
    columns, local = np.empty(n, np.int64), np.empty(n, number)
    table = np.zeros((4 << (n - 1).bit_length(), 2), np.promote_types(indices.dtype, number))
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


@inlined
def _output(code):
    return code ^ (code >> 31)  # ~code where it is negative


@kernel
def _scatter(indptr, local, values, starts, codes, weights, bias, out, start, stop):
    number = out.dtype.type
    for r in range(start, stop):
        row = out[r]
        for j in range(out.shape[1]):
            row[j] = bias[j]
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            u, value = local[t], number(values[t])
            if starts is None:
                row[_output(codes[u])] += value * number(weights[u])
            else:
                for s in range(starts[u], starts[u + 1]):
                    row[_output(codes[s])] += value * number(weights[s])


def scatter_forward(indptr, local, values, starts, codes, weights, bias, out) -> None:
    """out[r, codes[s]] = bias plus sums of value * weights[s] over the weights s of each entry's column."""
    over_rows(lambda a, b: _scatter(indptr, local, values, starts, codes, weights, bias, out, a, b), indptr)


@kernel
def _scatter_backward(indptr, local, values, starts, codes, gradient, out):
    for r in range(len(indptr) - 1):
        row = gradient[r]
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            u, value = local[t], out.dtype.type(values[t])
            if starts is None:
                out[u] += value * row[_output(codes[u])]
            else:
                for s in range(starts[u], starts[u + 1]):
                    out[s] += value * row[_output(codes[s])]


def scatter_backward(indptr, local, values, starts, codes, gradient):
    """Gradient of the compact weights."""
    out = np.zeros(len(codes), gradient.dtype)
    _scatter_backward(indptr, local, values, starts, codes, gradient, out)
    return out


@kernel
def _scatter_values(indptr, local, starts, codes, weights, gradient, out, start, stop):
    number = out.dtype.type
    for r in range(start, stop):
        row = gradient[r]
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            u, total = local[t], number(0)
            if starts is None:
                total = number(weights[u]) * row[_output(codes[u])]
            else:
                for s in range(starts[u], starts[u + 1]):
                    total += number(weights[s]) * row[_output(codes[s])]
            out[t] = total


def scatter_values(indptr, local, starts, codes, weights, gradient):
    """Gradient of the entries' values."""
    out = np.empty(len(local), gradient.dtype)
    over_rows(lambda a, b: _scatter_values(indptr, local, starts, codes, weights, gradient, out, a, b), indptr)
    return out


@kernel
def _multiply_table(indptr, indices, values, table, out, start, stop):
    number = out.dtype.type
    for r in range(start, stop):
        row = out[r]
        for j in range(out.shape[1]):
            row[j] = 0
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            value, weights = number(values[t]), table[indices[t]]
            for j in range(out.shape[1]):
                row[j] += value * number(weights[j])


def multiply_table(indptr, indices, values, table, out) -> None:
    """out = csr @ table."""
    over_rows(lambda a, b: _multiply_table(indptr, indices, values, table, out, a, b), indptr, 4 + table.shape[1] // 8)


@kernel
def _multiply_transposed(indptr, indices, values, factors, out):
    for r in range(len(indptr) - 1):
        row = factors[r]
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            value, sums = out.dtype.type(values[t]), out[indices[t]]
            for j in range(out.shape[1]):
                sums[j] += value * row[j]


def multiply_transposed(indptr, indices, values, n_columns: int, factors):
    """csr.T @ factors, with a row for each of `n_columns`."""
    out = np.zeros((n_columns, factors.shape[1]), factors.dtype)
    _multiply_transposed(indptr, indices, values, factors, out)
    return out


# A row of a table holds the weights and, behind them, what the optimiser keeps for them: one miss of the cache finds
# all. Rows lie far apart, so each is asked for some time before it is needed.


@kernel
def _gather(table, rows, out, start, stop):
    for i in range(start, stop):
        if i + _AHEAD < stop:
            prefetch(table, rows[i + _AHEAD])
        for j in range(out.shape[1]):
            out[i, j] = table[_u64(rows[i]), j]


def gather(table, rows, width: int):
    """The first `width` numbers of the given rows."""
    out = np.empty((len(rows), width), table.dtype)
    over_range(lambda a, b: _gather(table, rows, out, a, b), len(rows), out.size)
    return out


@inlined
def _wait(table, r, j, width, powers, waited):
    w, v = np.float64(table[r, j]), np.float64(table[r, width + j])
    table[r, j] = powers[waited, 0] * w + powers[waited, 1] * v
    table[r, width + j] = powers[waited, 2] * w + powers[waited, 3] * v


@kernel
def _momentum_read(table, rows, now, powers, out, start, stop):
    width = out.shape[1]
    for i in range(start, stop):
        if i + _AHEAD < stop:
            prefetch(table, rows[i + _AHEAD])
        r = _u64(rows[i])  # unsigned: nobody asks whether it counts from the end
        waited = now - np.int64(table[r, 2 * width])
        if width == 1:  # a loop over one weight costs as much as the miss of the cache
            if waited > 0:
                _wait(table, r, 0, 1, powers, waited)
                table[r, 2] = now
            out[i, 0] = table[r, 0]
        else:
            if waited > 0:
                for j in range(width):
                    _wait(table, r, j, width, powers, waited)
                table[r, 2 * width] = now
            for j in range(width):
                out[i, j] = table[r, j]


def momentum_read(table, rows, now: int, powers):
    """The weights of rows that are brought to step `now`: (w, v) times the power of the step's matrix for the steps
    without a gradient. A row has weights, velocities and the step that it is at.
    """
    out = np.empty((len(rows), table.shape[1] // 2), table.dtype)
    over_range(lambda a, b: _momentum_read(table, rows, now, powers, out, a, b), len(rows), out.size)
    return out


@inlined
def _move(table, r, j, width, g, rate, momentum, l2):
    v = momentum * table[r, width + j] + g + l2 * table[r, j]
    table[r, width + j] = v
    table[r, j] -= rate * v


@kernel
def _momentum_step(table, rows, gradient, now, rate, momentum, l2, start, stop):
    number, width = table.dtype.type, gradient.shape[1]
    rate, momentum, l2 = number(rate), number(momentum), number(l2)
    for i in range(start, stop):
        if i + _AHEAD < stop:
            prefetch(table, rows[i + _AHEAD])
        r = _u64(rows[i])
        if width == 1:
            _move(table, r, 0, 1, gradient[i, 0], rate, momentum, l2)
        else:
            for j in range(width):
                _move(table, r, j, width, gradient[i, j], rate, momentum, l2)
        table[r, 2 * width] = now


def momentum_step(table, rows, gradient, now: int, rate, momentum, l2) -> None:
    """v = momentum * v + gradient + l2 * w; w -= rate * v, for the given rows, which are then at step `now`."""
    size = gradient.size
    over_range(lambda a, b: _momentum_step(table, rows, gradient, now, rate, momentum, l2, a, b), len(rows), size)


@kernel
def _adam_step(table, rows, gradient, rate, beta1, beta2, epsilon, correction, decay, start, stop):
    number, width = table.dtype.type, gradient.shape[1]
    one, rate, beta1, beta2, epsilon = number(1), number(rate), number(beta1), number(beta2), number(epsilon)
    correction, keep = number(correction), number(1 - decay)
    for i in range(start, stop):
        if i + _AHEAD < stop:
            prefetch(table, rows[i + _AHEAD])
        r = _u64(rows[i])
        for j in range(width):
            g = gradient[i, j]
            m = beta1 * table[r, width + j] + (one - beta1) * g
            v = beta2 * table[r, 2 * width + j] + (one - beta2) * g * g
            table[r, width + j], table[r, 2 * width + j] = m, v
            table[r, j] = keep * table[r, j] - rate * m / (np.sqrt(v) * correction + epsilon)


def adam_step(table, rows, gradient, rate, beta1, beta2, epsilon, correction, decay) -> None:
    """Adam for the given rows alone; `correction` is 1 / sqrt(1 - beta2**step), `decay` what the weights lose.

    A row has weights, first moments and second moments.
    """
    over_range(
        lambda a, b: _adam_step(table, rows, gradient, rate, beta1, beta2, epsilon, correction, decay, a, b),
        len(rows),
        4 * gradient.size,
    )


@kernel
def max_abs(indices, values, out):
    """out[c] = the larger of itself and the absolute values in column c."""
    for t in range(len(indices)):
        out[indices[t]] = max(out[indices[t]], abs(np.float64(values[t])))
