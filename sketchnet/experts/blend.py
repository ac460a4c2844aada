"""Join the answers of several models: non-negative weights of their logits, and a constant for each output."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

_PRIOR = 1e-5  # times the squared weights of logits of size one: equals share a weight
_CONSTANT = 0.3  # as large as constants usually are: with many classes, few rows say little of each


@dataclass(frozen=True)
class Blend:
    """answer = sum of weight * logits + constants"""

    weights: np.ndarray  # one a model
    constants: np.ndarray  # one an output
    loss: float  # mean, on the rows that it was fitted on

    def apply(self, logits: list[np.ndarray]) -> np.ndarray:
        return sum(weight * part for weight, part in zip(self.weights, logits)) + self.constants


def fit_blend(kind: str, logits: list[np.ndarray], targets, row_weights: np.ndarray | None = None) -> Blend:
    """Return the blend with the least loss on these rows: log loss, or the squared error for kind "regression"."""
    targets, shares = _dense(kind, targets, logits[0].shape[1]), _shares(len(logits[0]), row_weights)
    sizes = np.array([_size(part) for part in logits])
    parts = np.stack([part / size for part, size in zip(logits, sizes)]).astype(np.float64)
    n_models, n_outputs = len(parts), parts.shape[2]
    prior = np.full(n_models + n_outputs, _PRIOR)
    prior[n_models:] = shares @ shares / (2 * _CONSTANT**2)  # of rows that weigh alike, one over their number

    def objective(values: np.ndarray) -> tuple[float, np.ndarray]:
        weights, constants = values[:n_models], values[n_models:]
        loss, slopes = _loss(kind, np.tensordot(weights, parts, 1) + constants, targets, shares)
        slope = np.r_[np.tensordot(parts, slopes, ([1, 2], [0, 1])), slopes.sum(axis=0)]
        return loss + prior @ values**2, slope + 2 * prior * values

    start = np.r_[np.full(n_models, 1 / n_models), np.zeros(n_outputs)]
    bounds = [(0, None)] * n_models + [(None, None)] * n_outputs
    values = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    loss, _ = _loss(kind, np.tensordot(values[:n_models], parts, 1) + values[n_models:], targets, shares)
    return Blend(values[:n_models] / sizes, values[n_models:], loss)


def _size(logits: np.ndarray) -> float:
    """Return the deviation of some logits; infinity where they are all the same, so that they get no weight."""
    deviation, largest = float(logits.std(dtype=np.float64)), float(np.abs(logits).max(initial=0))
    return deviation if deviation > 1e-6 * largest else np.inf


def row_losses(kind: str, answers: np.ndarray, targets) -> np.ndarray:
    """Return the loss of each row: of class probabilities the log loss, of several labels their mean log loss, of
    numbers the squared error.
    """
    targets, answers = _dense(kind, targets, answers.shape[1]), answers.astype(np.float64)
    if kind == "multiclass":
        peaks = answers.max(axis=1, keepdims=True)
        sums = np.log(np.exp(answers - peaks).sum(axis=1)) + peaks[:, 0]
        return sums - (answers * targets).sum(axis=1)
    if kind == "regression":
        return (answers - targets)[:, 0] ** 2
    return (np.logaddexp(0, answers) - targets * answers).mean(axis=1)


def _loss(kind: str, answers: np.ndarray, targets: np.ndarray, shares: np.ndarray) -> tuple[float, np.ndarray]:
    """(weighted mean loss, its slope by each answer)"""
    if kind == "multiclass":
        odds = np.exp(answers - answers.max(axis=1, keepdims=True))
        expected = odds / odds.sum(axis=1, keepdims=True)
    elif kind == "regression":
        expected = answers
    else:
        expected = 1 / (1 + np.exp(-np.clip(answers, -500, 500)))
    scale = {"multiclass": 1, "regression": 2}.get(kind, 1 / answers.shape[1])
    return shares @ row_losses(kind, answers, targets), scale * shares[:, None] * (expected - targets)


def _dense(kind: str, targets, n_outputs: int) -> np.ndarray:
    """Return a number for each row and output: 0 or 1, or for "regression" the target."""
    if isinstance(targets, np.ndarray) and targets.ndim == 2:
        return targets
    if sparse.issparse(targets):
        return targets.toarray().astype(np.float64)
    targets = np.asarray(targets)
    if kind == "multiclass":
        return (targets[:, None] == np.arange(n_outputs)).astype(np.float64)
    return targets[:, None].astype(np.float64)


def _shares(n: int, row_weights: np.ndarray | None) -> np.ndarray:
    return np.full(n, 1 / n) if row_weights is None else row_weights / row_weights.sum()
