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


@kernel
def _sweep(indptr, indices, values, signs, softness, norms, order, size, ceiling, state, alpha, weights):
    """One sweep over the rows order[:size]; returns (rows left, largest and smallest projected slope)."""
    top, bottom, at, x = -np.inf, np.inf, 0, state[0]
    last = len(weights) - 1
    while at < size:
        x ^= x << np.uint64(13)  # xorshift: Marsaglia (2003)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
        other = at + int(((x >> np.uint64(32)) * np.uint64(size - at)) >> np.uint64(32))
        i = order[other]
        order[other], order[at] = order[at], i
        margin = np.float64(weights[last])
        for t in range(indptr[i], indptr[i + 1]):
            margin += np.float64(weights[indices[t]] * values[t])
        old = alpha[i]
        slope = signs[i] * margin - 1 + softness[i] * old
        if old == 0 and slope > ceiling:  # it will hardly come back: left out until the others agree
            size -= 1
            order[at], order[size] = order[size], i
            continue
        projected = min(slope, 0.0) if old == 0 else slope
        top, bottom = max(top, projected), min(bottom, projected)
        if projected != 0:
            alpha[i] = max(old - slope / (norms[i] + softness[i]), 0.0)
            step = np.float32((alpha[i] - old) * signs[i])
            if step != 0:
                weights[last] += step
                for t in range(indptr[i], indptr[i + 1]):
                    weights[indices[t]] += step * values[t]
        at += 1
    state[0] = x
    return size, top, bottom


def descend_dual(indptr, indices, values, signs, costs, norms, alpha, weights, tolerance, sweeps, seed) -> int:
    """Minimise with the squared hinge loss to a spread of projected slopes of `tolerance`; returns the sweeps it took.

    Hsieh et al., "A dual coordinate descent method for large-scale linear SVM", ICML 2008, with their shrinking.
    `weights` (float32) must be the sum of alpha_i * sign_i * x_i, which the last call leaves; `norms` are the squared
    norms of the rows, the bias's 1 included. Rows of cost 0 stay at alpha 0.
    """
    order = np.flatnonzero(costs > 0)
    softness = 1 / (2 * np.where(costs > 0, costs, np.inf))
    rows = (indptr, indices, values, signs, softness, norms)
    state = np.array([2 * seed + 1], np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    size, ceiling = len(order), np.inf
    for sweep in range(1, sweeps + 1):
        size, top, bottom = _sweep(*rows, order, size, ceiling, state, alpha, weights)
        if top - bottom > tolerance:
            ceiling = top if top > 0 else np.inf
        elif size == len(order):
            return sweep
        else:
            size, ceiling = len(order), np.inf
    return sweeps


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
