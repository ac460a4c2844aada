"""Errors and losses by row, and paired bootstrap intervals of their differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DRAWS = 1000
LEAST_PROBABILITY = 1e-7  # so much every class has at least, of whoever: predictions are kept in 32 bits
_CHUNK = 50  # draws at a time


def row_errors(decisions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """1 for a wrong row; for several labels the share of wrong ones."""
    wrong = decisions != labels
    return wrong.mean(axis=1) if wrong.ndim == 2 else wrong.astype(np.float64)


def row_losses(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """By row the log loss; for several labels their mean."""
    chances = np.clip(probabilities.astype(np.float64), LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    if labels.ndim == 2:
        return -np.log(np.where(labels == 1, chances, 1 - chances)).mean(axis=1)
    return -np.log(chances[np.arange(len(labels)), labels])


def auc_draws(scores: np.ndarray, labels: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The area under the ROC curve, for each row of `counts`, which says how often every row of the set occurs."""
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])  # of equal scores, which are half right
    positive = labels[order] == 1
    areas = np.empty(len(counts))
    for at, drawn in enumerate(counts):
        drawn = drawn[order].astype(np.float64)
        above, below = (np.add.reduceat(np.where(rows, drawn, 0.0), starts) for rows in (positive, ~positive))
        pairs = above.sum() * below.sum()
        areas[at] = above @ (np.cumsum(below) - below / 2) / pairs if pairs else np.nan
    return areas


def auc(scores: np.ndarray, labels: np.ndarray) -> float:
    return float(auc_draws(scores, labels, np.ones((1, len(labels)), np.uint8))[0])


def bootstrap_counts(n: int, draws: int = DRAWS, seed: int = 0) -> np.ndarray:
    """How often each of n rows occurs in a sample of n, drawn with replacement; a row of counts a draw."""
    rng = np.random.default_rng(seed)
    return np.stack([np.bincount(rng.integers(0, n, n), minlength=n).astype(np.uint8) for _ in range(draws)])


def mean_draws(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The mean of the values in each draw."""
    parts = [counts[i : i + _CHUNK].astype(np.float64) @ values for i in range(0, len(counts), _CHUNK)]
    return np.concatenate(parts) / len(values)


@dataclass(frozen=True)
class Difference:
    """Of the default and a rival, with its 95 % interval; `better` says which sign is good for the default."""

    value: float
    low: float
    high: float
    better: int  # -1 where less is better, 1 where more is

    @property
    def verdict(self) -> int:
        """1 if the default is significantly better, -1 if it is significantly worse, else 0."""
        if self.low <= 0 <= self.high:
            return 0
        return self.better if self.low > 0 else -self.better


@dataclass(frozen=True)
class Predictions:
    """Of one run: what it decided, and how likely it took each class, or label, to be."""

    decisions: np.ndarray
    probabilities: np.ndarray
    labels: np.ndarray

    @property
    def has_auc(self) -> bool:
        return self.labels.ndim == 1 and self.probabilities.shape[1] == 2

    def figures(self) -> dict[str, float]:
        found = {
            "error": 100 * float(row_errors(self.decisions, self.labels).mean()),
            "log_loss": float(row_losses(self.probabilities, self.labels).mean()),
        }
        return found | ({"auc": auc(self.probabilities[:, 1], self.labels)} if self.has_auc else {})


def differences(ours: list[Predictions], theirs: list[Predictions], counts: np.ndarray) -> dict[str, Difference]:
    """By figure the default's mean over its runs less the rival's, both on the same drawn rows."""
    found = {}
    for name, rows in (("error", _errors), ("log_loss", _losses)):
        values = _mean(ours, rows) - _mean(theirs, rows)
        found[name] = _difference(float(values.mean()), mean_draws(values, counts), -1)
    if ours[0].has_auc:
        means = [float(np.mean([run.figures()["auc"] for run in runs])) for runs in (ours, theirs)]
        draws = [np.mean([_areas(run, counts) for run in runs], axis=0) for runs in (ours, theirs)]
        found["auc"] = _difference(means[0] - means[1], draws[0] - draws[1], 1)
    return found


def _errors(run: Predictions) -> np.ndarray:
    return 100 * row_errors(run.decisions, run.labels)


def _losses(run: Predictions) -> np.ndarray:
    return row_losses(run.probabilities, run.labels)


def _areas(run: Predictions, counts: np.ndarray) -> np.ndarray:
    return auc_draws(run.probabilities[:, 1], run.labels, counts)


def _mean(runs: list[Predictions], rows) -> np.ndarray:
    return np.mean([rows(run) for run in runs], axis=0)


def _difference(value: float, draws: np.ndarray, better: int) -> Difference:
    low, high = np.nanquantile(draws, [0.025, 0.975])
    return Difference(value, float(low), float(high), better)
