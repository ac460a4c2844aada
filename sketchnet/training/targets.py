"""Numbers to be learnt, less their mean and over their deviation, whatever their size.

All is computed of the numbers over a power of two that is about as large as they are, which is exact: so no sum, square
or difference leaves the range of float64.
"""

from __future__ import annotations

import math

import numpy as np

from sketchnet.errors import InputError

_FARTHEST = 1e15  # deviations from the mean, whose squares can be added up in float32


def as_numbers(labels) -> np.ndarray:
    """Return the labels in float64."""
    labels = np.asarray(labels)
    if labels.dtype.kind in "mM":  # which NumPy would count in units of some kind
        raise InputError(f"labels have dtype {labels.dtype}; a regression learns numbers: give y.astype(float)")
    numbers = labels.astype(np.float64)
    check_finite_labels(numbers)
    return numbers


def mean_and_deviation(numbers: np.ndarray) -> tuple[float, float]:
    """Return both; of numbers that are all the same, their size stands for the deviation."""
    first = float(numbers[0])
    if (numbers == first).all():
        return first, abs(first) or 1.0
    exponent = _exponent(np.abs(numbers).max())
    scaled = np.ldexp(numbers, -exponent)
    mean, deviation = (math.ldexp(x, exponent) for x in (float(scaled.mean()), float(scaled.std())))
    return mean, max(deviation, math.ulp(0.0))


def standardise(numbers: np.ndarray, mean: float, deviation: float) -> np.ndarray:
    """Return the numbers in deviations from the mean, in float32."""
    exponent = _exponent(max(abs(mean), deviation))
    with np.errstate(over="ignore"):
        distances = np.ldexp(numbers, -exponent) - math.ldexp(mean, -exponent)
        distances /= math.ldexp(deviation, -exponent)
    far = np.flatnonzero(np.abs(distances) > _FARTHEST)
    if len(far):
        raise InputError(
            f"label {numbers[far[0]]:g} of row {far[0]} is more than {_FARTHEST:g} deviations ({deviation:g}) from the "
            f"mean of those that were learnt, {mean:g}"
        )
    return distances.astype(np.float32)


def restore(distances: np.ndarray, mean: float, deviation: float) -> np.ndarray:
    """Return the numbers of which these are standardised; those beyond float64 as the largest that it has."""
    exponent, most = _exponent(max(abs(mean), deviation)), np.finfo(np.float64).max
    scaled = distances.astype(np.float64) * math.ldexp(deviation, -exponent) + math.ldexp(mean, -exponent)
    with np.errstate(over="ignore"):
        return np.clip(np.ldexp(scaled, exponent), -most, most)


def check_finite_labels(labels: np.ndarray) -> None:
    """Raise if a label is NaN or infinite, saying where."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise InputError(f"label {labels[row]} of row {row} is not a finite number")


def _exponent(size: float) -> int:
    """Return the power of two just above a positive number."""
    return math.frexp(size)[1]
