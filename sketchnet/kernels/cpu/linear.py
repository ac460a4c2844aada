"""Dual coordinate descent for linear support vector machines, all classes of a row at once."""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import kernel


@kernel
def _pass(indptr, indices, values, numbers, classes, alpha, norms, weights, bias, softness):
    n_outputs, worst = weights.shape[1], 0.0
    margins, steps = np.empty(n_outputs, np.float32), np.empty(n_outputs, np.float32)
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
            new = max(old - slope / (norms[number] + softness), np.float32(0))
            steps[j] = (new - old) * sign
            alpha[number, j] = new
            moved |= steps[j] != 0
            worst = max(worst, abs(slope) if old > 0 else -slope)
        if moved:
            for t in range(begin, end):
                value, row = np.float32(values[t]), weights[indices[t]]
                for j in range(n_outputs):
                    row[j] += value * steps[j]
            for j in range(n_outputs):
                bias[j] += steps[j]
    return worst


def dual_descent(indptr, indices, values, numbers, classes, alpha, norms, weights, bias, softness) -> float:
    """One pass over the rows of a batch, whose numbers among all rows are given; returns the worst violation.

    Hsieh et al., "A dual coordinate descent method for large-scale linear SVM", ICML 2008, with the squared hinge loss:
    softness is 1 / 2C. Output j tells class j from the rest; a single output tells class 1 from class 0. A constant
    feature of 1 carries the bias.
    """
    return _pass(indptr, indices, values, numbers, classes, alpha, norms, weights, bias, np.float32(softness))
