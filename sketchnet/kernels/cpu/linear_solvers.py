"""Solvers of L2-regularised linear models: coordinate descent in the dual, Newton's method in the primal.

Both minimise |w|^2 / 2 + sum_i cost_i * loss(target_i, w . x_i + b), where the bias b is the last of the weights and
regularised like the others. The dual one costs a pass over the rows a sweep, whatever the number of columns, and needs
few sweeps where rows are no more than columns; Newton's wants vectors over the columns, and far fewer passes where rows
are many.
"""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import inlined, kernel

SQUARED_HINGE, LOGISTIC, SQUARED = range(3)  # losses; the first two take targets of -1 and 1
_EXACT, _INEXACT = 1e-14, 1e-2  # squared residual of a Newton step's equations, as a share of the first
_CURVATURE_STEPS, _HALVINGS = 1000, 40
_LEFT = 0.1  # share of the promised fall that a step may leave, the conditioning of its equations allowed for
_ARMIJO = 0.01  # share of the promised fall that a step must keep


@inlined
def _scalar_product(indptr, indices, values, i, weights):
    """x_i . w of the only output, in four sums, which do not wait for each other"""
    begin, end = indptr[i], indptr[i + 1]
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for t in range(begin, end - 3, 4):
        a += np.float64(weights[indices[t], 0] * values[t])
        b += np.float64(weights[indices[t + 1], 0] * values[t + 1])
        c += np.float64(weights[indices[t + 2], 0] * values[t + 2])
        d += np.float64(weights[indices[t + 3], 0] * values[t + 3])
    for t in range(end - (end - begin) % 4, end):
        a += np.float64(weights[indices[t], 0] * values[t])
    return (a + b) + (c + d)


@kernel
def _sweep(indptr, indices, values, own, norms, signs, costs, order, size, ceilings, state, alpha, weights, tops, sums):
    """One sweep over the rows order[:size], all outputs at once; returns how many rows are left for the next.

    Of each output: `tops`, the largest projected slope, and `sums` of the losses, alpha * margin and the gap. Outputs
    with a ceiling below zero keep no row.
    """
    n_outputs, last, at, x = weights.shape[1], len(weights) - 1, 0, state[0]
    margins, steps = np.empty((2, n_outputs), np.float32)
    tops[:], sums[:] = -np.inf, 0
    while at < size:
        x ^= x << np.uint64(13)  # xorshift: Marsaglia (2003)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
        other = at + int(((x >> np.uint64(32)) * np.uint64(size - at)) >> np.uint64(32))
        i = order[other]
        order[other], order[at] = order[at], i
        margins[:] = weights[last]
        if n_outputs == 1:
            margins[0] += _scalar_product(indptr, indices, values, i, weights)
        else:
            for t in range(indptr[i], indptr[i + 1]):
                value, row = values[t], weights[indices[t]]
                for j in range(n_outputs):
                    margins[j] += value * row[j]
        kept = moved = False
        softness = 1 / (2 * costs[i])
        for j in range(n_outputs):
            old = np.float64(alpha[i, j])
            margin = signs[i, j] * np.float64(margins[j]) + own[i] * old
            slope, miss = margin - 1 + softness * old, max(1 - margin, 0.0)
            loss = costs[i] * miss * miss
            sums[j, 0] += loss
            sums[j, 1] += old * margin
            sums[j, 2] += loss + old * (margin - 1 + softness * old / 2)
            if old > 0 or slope <= ceilings[j]:  # else it will hardly come back: left out until the others agree
                kept |= ceilings[j] >= 0
                tops[j] = max(tops[j], slope if old > 0 else min(slope, 0.0))
            new = np.float32(max(old - slope / (norms[i] + softness), 0.0))
            steps[j] = (new - alpha[i, j]) * signs[i, j]
            moved |= steps[j] != 0
            alpha[i, j] = new
        if moved:
            for j in range(n_outputs):
                weights[last, j] += steps[j]
            if n_outputs == 1:
                for t in range(indptr[i], indptr[i + 1]):
                    weights[indices[t], 0] += steps[0] * values[t]
            else:
                for t in range(indptr[i], indptr[i + 1]):
                    value, row = values[t], weights[indices[t]]
                    for j in range(n_outputs):
                        row[j] += steps[j] * value
        if kept:
            at += 1
        else:
            size -= 1
            order[at], order[size] = order[size], i
    state[0] = x
    return size


def descend_dual(indptr, indices, values, own, norms, signs, costs, alpha, weights, gap, sweeps, seed) -> np.ndarray:
    """Minimise with the squared hinge loss, several outputs at once, to a relative gap; returns that of each output.

    Hsieh et al., "A dual coordinate descent method for large-scale linear SVM", ICML 2008, with their shrinking, but
    stopped by the gap between primal and dual objective, which a sweep adds up as it goes: row by row the loss and its
    conjugate at -alpha, and what lies between them, each before the row's step. `weights` (float32, a column an output)
    must be the sum of alpha_i * sign_i * x_i (alpha: float32, a column an output), which the last call leaves; `own`
    and `norms` are those of `linear_rows.SharedColumns`. Rows of cost 0 stay at alpha 0.
    """
    order = np.flatnonzero(costs > 0)
    n_outputs = weights.shape[1]
    ceilings, tops, sums = np.full(n_outputs, np.inf), np.empty(n_outputs), np.empty((n_outputs, 3))
    state = np.array([2 * seed + 1], np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    size = len(order)
    for sweep in range(sweeps):
        if sweep == sweeps - 1:  # so that the gap is that of all rows
            size, ceilings = len(order), np.full(n_outputs, np.inf)
        whole = size == len(order)
        rows = indptr, indices, values, own, norms, signs, costs
        size = _sweep(*rows, order, size, ceilings, state, alpha, weights, tops, sums)
        ready = sums[:, 2] <= gap * (sums[:, 0] + sums[:, 1] / 2)
        if whole and ready.all():
            break
        ceilings = np.where(ready, -1.0, np.where(tops > 0, tops, np.inf))
        if ready.all() or size == 0:
            size, ceilings = len(order), np.full(n_outputs, np.inf)
    return sums[:, 2] / (sums[:, 0] + sums[:, 1] / 2)


def stretch(own, costs, alpha, weights) -> None:
    """Scale each output's alpha and weights to the largest dual objective: where other costs begin well."""
    softness = 1 / (2 * np.where(costs > 0, costs, np.inf))
    for output in range(weights.shape[1]):
        column = alpha[:, output].astype(np.float64)
        size = np.square(weights[:, output], dtype=np.float64).sum() + (softness + own) @ np.square(column)
        if size > 0:
            alpha[:, output] *= np.float32(column.sum() / size)
            weights[:, output] *= np.float32(column.sum() / size)


@inlined
def _loss(loss, target, margin):
    if loss == SQUARED_HINGE:
        miss = max(1 - target * margin, 0.0)
        return miss * miss
    if loss == LOGISTIC:
        z = target * margin
        return np.log1p(np.exp(-abs(z))) + max(-z, 0.0)
    return 0.5 * (margin - target) ** 2


@kernel
def _slopes(loss, margins, targets, costs, slopes, curves):
    """First and second derivatives of each row's loss; returns the sum of the losses."""
    total = 0.0
    for i in range(len(margins)):
        total += costs[i] * _loss(loss, targets[i], margins[i])
        if loss == SQUARED_HINGE:
            miss = max(1 - targets[i] * margins[i], 0.0)
            slopes[i], curves[i] = -2 * costs[i] * targets[i] * miss, 2 * costs[i] * (miss > 0)
        elif loss == LOGISTIC:
            z = targets[i] * margins[i]
            e = np.exp(-abs(z))
            p = (e if z > 0 else 1.0) / (1 + e)
            slopes[i], curves[i] = -costs[i] * targets[i] * p, costs[i] * p * (1 - p)
        else:
            slopes[i], curves[i] = costs[i] * (margins[i] - targets[i]), costs[i]
    return total


@kernel
def _losses_along(loss, margins, direction, length, targets, costs):
    total = 0.0
    for i in range(len(margins)):
        total += costs[i] * _loss(loss, targets[i], margins[i] + length * direction[i])
    return total


@kernel
def _multiply(indptr, indices, values, weights, out):
    """out = X w + b"""
    last = len(weights) - 1
    for i in range(len(out)):
        z = weights[last]
        for t in range(indptr[i], indptr[i + 1]):
            z += weights[indices[t]] * values[t]
        out[i] = z


@kernel
def _add_transposed(indptr, indices, values, pulls, power, out):
    """out += (X ** power)' pulls, where power is 1 or 2"""
    last = len(out) - 1
    for i in range(len(pulls)):
        if pulls[i] != 0:
            out[last] += pulls[i]
            for t in range(indptr[i], indptr[i + 1]):
                value = np.float64(values[t])
                out[indices[t]] += pulls[i] * (value if power == 1 else value * value)


@kernel
def _add_curvature(indptr, indices, values, curves, direction, out):
    """out += X' diag(curves) X direction"""
    last = len(out) - 1
    for i in range(len(curves)):
        if curves[i] != 0:
            z = direction[last]
            for t in range(indptr[i], indptr[i + 1]):
                z += direction[indices[t]] * values[t]
            z *= curves[i]
            out[last] += z
            for t in range(indptr[i], indptr[i + 1]):
                out[indices[t]] += z * values[t]


@kernel
def _newton_step(indptr, indices, values, curves, gradient, diagonal, residual):
    """Solve (1 + X' diag(curves) X) step = -gradient by preconditioned conjugate gradients."""
    step, rest = np.zeros_like(gradient), -gradient
    scaled = rest / diagonal
    direction, size = scaled.copy(), rest @ scaled
    enough = residual * size
    for _ in range(_CURVATURE_STEPS):
        if size <= enough:
            break
        image = direction.copy()
        _add_curvature(indptr, indices, values, curves, direction, image)
        length = size / (direction @ image)
        step += length * direction
        rest -= length * image
        scaled = rest / diagonal
        before, size = size, rest @ scaled
        direction = scaled + (size / before) * direction
    return step


def descend_newton(indptr, indices, values, targets, costs, loss, weights, gap, steps) -> tuple[int, float]:
    """Minimise by Newton's method, in `weights` (float64); returns (steps taken, relative gap).

    The gap, a share of the objective, is what the last step must have left: its equations are solved to a tenth, so
    at most a tenth of the fall that their quadratic model promised, and by how much the objective fell otherwise than
    promised. A step is a few passes over the rows; its length is found on the margins alone.
    """
    rows = (indptr, indices, values)
    margins, slopes, curves, along = np.empty((4, len(targets)))
    _multiply(*rows, weights, margins)
    left = np.inf
    for step in range(1, steps + 1):
        objective = _slopes(loss, margins, targets, costs, slopes, curves) + weights @ weights / 2
        gradient, diagonal = weights.copy(), np.ones_like(weights)
        _add_transposed(*rows, slopes, 1, gradient)
        _add_transposed(*rows, curves, 2, diagonal)
        direction = _newton_step(*rows, curves, gradient, diagonal, _EXACT if loss == SQUARED else _INEXACT)
        fall, length = -(gradient @ direction), 1.0
        if fall <= 0:  # at the minimum, to rounding
            return step, 0.0
        _multiply(*rows, direction, along)
        for _ in range(_HALVINGS):
            changed = weights + length * direction
            reached = _losses_along(loss, margins, along, length, targets, costs) + changed @ changed / 2
            if reached <= objective - _ARMIJO * length * fall:
                break
            length /= 2
        weights[:] = changed
        margins += length * along
        left = (_LEFT * fall / 2 + abs(fall / 2 - (objective - reached))) / max(objective, np.finfo(float).tiny)
        if left <= gap and length == 1:
            return step, left
    return steps, left
