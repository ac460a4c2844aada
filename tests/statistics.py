"""Sizes and thresholds of the statistical tests, from one stated failure probability.

FAILURE is the chance that a test of a true law fails on a fresh seed, and the chance that it misses the effect it is
sized for. Seeds are fixed, so a test that passes once passes always; the number says how much a failure means.
"""

from math import ceil, sqrt

from scipy import stats

FAILURE = 1e-9
_Z = stats.norm.isf(FAILURE / 2)


def sample_size(variance: float, effect: float) -> int:
    """Draws of a mean with that variance each, so that noise stays below half of `effect` on either side."""
    return ceil(variance * (2 * _Z / effect) ** 2)


def assert_mean(values, expected: float, variance: float) -> None:
    """The mean of independent `values` of known variance is what the law says."""
    n = len(values)
    assert abs(values.mean() - expected) <= _Z * sqrt(variance / n), f"{values.mean()} is not {expected}"


def assert_counts(observed, probabilities) -> None:
    """Counts of categories fit their probabilities, by a chi-square test."""
    total = sum(observed)
    p = stats.chisquare(observed, [total * q for q in probabilities]).pvalue
    assert p > FAILURE, f"chi-square p = {p:.2g} for {observed}"
