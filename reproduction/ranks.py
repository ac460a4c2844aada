"""Is one kind of run better than another? Ranks of one number a seed, and what so many seeds can show at all."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from scipy import stats

from sketchnet.checks import check_real
from sketchnet.errors import InputError

_MOST_EXACT = 100  # runs of both sides together whose exact law is worked out


@dataclass(frozen=True)
class Comparison:
    """Errors of n_ours runs against those of n_reference others.

    `u` counts the pairs in which ours is the larger, ties half: 0 if all of ours are smaller. `p` is the chance of so
    small a u if both came from one law, `p_larger` that of so large a one. `effect` is the share of pairs in which
    ours is smaller, ties half: 1/2 if there is no difference. `least_p` is the smallest p that these sizes can reach.
    """

    n_ours: int
    n_reference: int
    median_ours: float
    median_reference: float
    u: float
    p: float
    p_larger: float
    effect: float
    least_p: float


def compare(ours, reference) -> Comparison:
    """One-sided rank-sum test of Wilcoxon, Mann and Whitney: are our errors smaller than the reference's?

    Takes one number for each independent run. P-values are exact, given the ties that there are, for up to 100 runs
    together; beyond that they are the normal approximation.
    """
    ours, reference = _sample("ours", ours), _sample("reference", reference)
    n, m = len(ours), len(reference)
    u = float((ours[:, None] > reference).sum() + 0.5 * (ours[:, None] == reference).sum())
    p, p_larger = _exact(ours, reference) if n + m <= _MOST_EXACT else _normal(ours, reference)
    medians = float(np.median(ours)), float(np.median(reference))
    return Comparison(n, m, *medians, u, p, p_larger, 1 - u / (n * m), 1 / comb(n + m, n))


def verdict(comparison: Comparison, level: float = 0.05) -> str:
    """What the data supports, as a sentence."""
    c, level = comparison, check_real("level", level, below=1.0)
    medians = f"median {c.median_ours:.4g} against {c.median_reference:.4g}"
    pairs = f"the smaller in {100 * c.effect:.0f} % of pairs"
    if c.p < level:
        return f"Errors are smaller than the reference's: {medians}, {pairs}, p = {c.p:.2g}."
    if c.p_larger < level:
        return f"Errors are larger than the reference's: {medians}, {pairs}, p = {c.p_larger:.2g} for larger."
    if c.least_p >= level:
        return (
            f"Nothing can be said: with {c.n_ours} and {c.n_reference} seeds the smallest p is {c.least_p:.2g}, "
            f"which is not below {level:g} ({medians})."
        )
    return f"No difference is shown: {medians}, {pairs}, p = {c.p:.2g} for smaller, {c.p_larger:.2g} for larger."


def _sample(name: str, values) -> np.ndarray:
    values = np.asarray(values, np.float64)
    if values.ndim != 1 or len(values) == 0 or np.isnan(values).any():
        raise InputError(f"{name} has shape {values.shape}; it must be a list of numbers, one a seed, none of them NaN")
    return values


def _exact(ours: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """P(sum of n ranks <= ours) and P(... >= ours), if every choice of n of all the ranks is as likely.

    scipy's exact law knows no ties, and errors on a test set are multiples of one over its size, so ties occur.
    """
    n, ranks = len(ours), stats.rankdata(np.concatenate([ours, reference]))
    twice = np.rint(2 * ranks).astype(np.int64)  # ranks of ties are halves
    chance = np.zeros((n + 1, int(twice.sum()) + 1))  # of having chosen so many, with so large a sum
    chance[0, 0] = 1
    for seen, rank in enumerate(twice):
        take = np.maximum(n - np.arange(n + 1), 0) / (len(twice) - seen)  # Given how many are still to be chosen
        taken = chance * take[:, None]
        chance -= taken
        chance[1:, rank:] += taken[:-1, : taken.shape[1] - rank]
    total = int(twice[:n].sum())
    return min(1.0, float(chance[n, : total + 1].sum())), min(1.0, float(chance[n, total:].sum()))


def _normal(ours: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    less, greater = (
        float(stats.mannwhitneyu(ours, reference, alternative=side, method="asymptotic").pvalue)
        for side in ("less", "greater")
    )
    return less, greater
