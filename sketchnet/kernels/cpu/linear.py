"""Dual coordinate descent for linear support vector machines, all classes of a row at once."""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import kernel


@kernel
def _pass(indptr, indices, values, numbers, classes, alpha, squares, norms, weights, bias, softness):
    # `squares` is an array or None: numba compiles each case on its own, so plain columns do not pay for the others.
    n_outputs, worst = weights.shape[1], 0.0
    margins, steps = np.empty((2, n_outputs), np.float32)
    for r in range(len(numbers)):
        number = numbers[r]
        begin, end = indptr[r] - indptr[0], indptr[r + 1] - indptr[0]
        for j in range(n_outputs):
            margins[j] = bias[j]
        for t in range(begin, end):
            value, row = np.float32(values[t]), weights[indices[t]]
            for j in range(n_outputs):
                margins[j] += value * row[j]
        moved = False
        for j in range(n_outputs):
            sign = np.float32(1) if classes[number] == j + (n_outputs == 1) else np.float32(-1)
            old = alpha[number, j]
            slope = sign * margins[j] - 1 + softness * old
            curve = norms[number, 0] if squares is None else norms[number, j]
            new = max(old - slope / (curve + softness), np.float32(0))
            steps[j] = (new - old) * sign
            alpha[number, j] = new
            moved |= steps[j] != 0
            worst = max(worst, abs(slope) if old > 0 else -slope)
        if moved:
            for t in range(begin, end):
                value, row = np.float32(values[t]), weights[indices[t]]
                if squares is None:
                    for j in range(n_outputs):
                        row[j] += value * steps[j]
                else:
                    factors = squares[indices[t]]
                    for j in range(n_outputs):
                        row[j] += value * factors[j] * steps[j]
            for j in range(n_outputs):
                bias[j] += steps[j]
    return worst


def dual_descent(indptr, indices, values, numbers, classes, alpha, squares, norms, weights, bias, softness) -> float:
    """One pass over the rows of a batch, whose numbers among all rows are given; returns the worst violation.

    Hsieh et al., "A dual coordinate descent method for large-scale linear SVM", ICML 2008, with the squared hinge loss:
    softness is 1 / 2C. Output j tells class j from the rest; a single output tells class 1 from class 0. A constant
    feature of 1 carries the bias. `squares`, if not None, has a number v for each weight w: the penalty on it is
    w * w / v instead of w * w, as if output j saw the column multiplied by the root of v. `norms` has the squared norm
    of each row, the constant included, for all outputs or with `squares` for each: a step's length hangs on it, and of
    ids that are repeated in a row, entries alone would give it too small.
    """
    arrays = (indptr, indices, values, numbers, classes, alpha, squares, norms, weights, bias)
    return _pass(*arrays, np.float32(softness))
