"""Which experts a blend is made of: each must make held-back rows better, not by noise alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sketchnet.errors import InputError, TrainingError
from sketchnet.experts.blend import Blend, fit_blend, row_losses
from sketchnet.training.targets import restore
from sketchnet.training.task import Task

_NOISE = 0.5  # standard errors that a gain must exceed, for an expert to be worth its place
_DRAWS = 50  # of rows, to see by how much a score varies
_SCORERS = {  # of scikit-learn, by our names for them
    "error": "accuracy",
    "log_loss": "neg_log_loss",
    "squared_error": "neg_mean_squared_error",
    "roc_auc": "roc_auc",
    "average_precision": "average_precision",
}


@dataclass(frozen=True)
class HeldBack:
    """Rows that experts did not learn from: their encoded targets and weights."""

    task: Task
    targets: Any
    weights: np.ndarray | None

    def blend(self, logits: list[np.ndarray]) -> Blend:
        return fit_blend(self.task.kind, logits, self.targets, self.weights)


def choose_experts(rows: HeldBack, logits: dict[str, np.ndarray], metric) -> tuple[list[str], Blend]:
    """Return the experts to blend, and their blend.

    From the first on, the one is added that helps most, while it helps by more than half a standard error of the gain.
    """
    if not logits:
        raise TrainingError("no expert has finite answers: values of the rows are too large")
    gain_of = _gain_by_loss if metric in ("auto", None) else _gain_by(metric, rows.task.kind)
    names = [next(iter(logits))]
    blend = rows.blend([logits[names[0]]])
    gain_of(rows, *[blend.apply([logits[names[0]]])] * 2)  # which says so if there is no such score
    while True:
        before = blend.apply([logits[name] for name in names])
        best: tuple[float, list[str], Blend] | None = None
        for name in logits:
            if name in names:
                continue
            with_it = [*names, name]
            tried = rows.blend([logits[each] for each in with_it])
            gain, noise = gain_of(rows, before, tried.apply([logits[each] for each in with_it]))
            if gain > _NOISE * noise and (best is None or gain > best[0]):
                best = gain, with_it, tried
        if best is None:
            break
        _, names, blend = best
    kept = [name for name, weight in zip(names, blend.weights) if weight > 0] or names[:1]
    return kept, rows.blend([logits[name] for name in kept])


def _gain_by_loss(rows: HeldBack, before: np.ndarray, after: np.ndarray) -> tuple[float, float]:
    """Return by how much the mean loss falls, and the standard error of that."""
    kind, targets, weights = rows.task.kind, rows.targets, rows.weights
    gains = row_losses(kind, before, targets) - row_losses(kind, after, targets)
    if weights is None:
        return float(gains.mean()), float(gains.std() / len(gains) ** 0.5)
    shares = weights / weights.sum()
    mean = float(shares @ gains)
    return mean, float(np.sqrt(shares**2 @ (gains - mean) ** 2))


def _gain_by(metric, kind: str) -> Callable[[HeldBack, np.ndarray, np.ndarray], tuple[float, float]]:
    scorer = check_metric(metric, kind)

    def gain(rows: HeldBack, before: np.ndarray, after: np.ndarray) -> tuple[float, float]:
        """Return by how much the score rises, and its deviation over draws of the rows."""
        n, gains = len(before), []
        rise = _rise(scorer, metric, rows, before, after, np.arange(n))
        for draw in range(_DRAWS):
            try:
                some = np.random.default_rng(draw).integers(0, n, n)
                gains.append(_rise(scorer, metric, rows, before, after, some))
            except InputError:  # a draw without some class, for which there is no such score
                continue
        return rise, float(np.std(gains)) if gains else np.inf

    return gain


def _rise(scorer, metric, rows: HeldBack, before: np.ndarray, after: np.ndarray, some: np.ndarray) -> float:
    try:
        rise = _score(scorer, rows, after, some) - _score(scorer, rows, before, some)
    except (ValueError, TypeError, AttributeError) as error:
        what = str(error).partition("\n")[0]
        raise InputError(f"metric={metric!r} is not possible for such labels: {what}") from None
    if not np.isfinite(rise):
        raise InputError(f"metric={metric!r} is not possible for such labels: it is not a number")
    return rise


def check_metric(metric, kind: str = "binary"):
    """Return scikit-learn's scorer of that name, or the scorer itself; None for "auto"."""
    from sklearn.metrics import get_scorer

    if metric in ("auto", None):
        return None
    if callable(metric):
        return metric
    try:
        name = "roc_auc_ovr" if metric == "roc_auc" and kind == "multiclass" else _SCORERS.get(metric, metric)
        return get_scorer(name)
    except (ValueError, TypeError):
        ours = ", ".join(_SCORERS)
        raise InputError(
            f"metric={metric!r} is not possible; it is auto, {ours}, or a scorer of scikit-learn or its name"
        ) from None


def _score(scorer, rows: HeldBack, outputs: np.ndarray, some: np.ndarray) -> float:
    targets = rows.targets[some]
    if sparse.issparse(targets):
        targets = targets.toarray().astype(np.int64)
    if rows.task.kind == "regression":
        targets = restore(targets, rows.task.mean, rows.task.deviation)
    return float(scorer(_Answers(rows.task, outputs[some]), np.empty((len(some), 0)), targets))


class _Answers:
    """Answers that are there already, as a scorer asks a model for them."""

    def __init__(self, task: Task, outputs: np.ndarray):
        self._task, self._outputs = task, outputs
        self._estimator_type = "regressor" if task.kind == "regression" else "classifier"
        self.classes_ = np.arange(max(2, task.n_outputs))

    def __sklearn_tags__(self):
        from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags

        numbers = self._estimator_type == "regressor"
        return Tags(
            estimator_type=self._estimator_type,
            target_tags=TargetTags(required=True),
            classifier_tags=None if numbers else ClassifierTags(),
            regressor_tags=RegressorTags() if numbers else None,
        )

    def fit(self):
        return self

    def predict(self, X):
        kind = self._task.kind
        if kind == "regression":
            return self._task.decide(self._outputs)
        return (self._outputs > 0).astype(np.int64) if kind == "multilabel" else self._task.numbers(self._outputs)

    def predict_proba(self, X):
        return self._task.probabilities(self._outputs)

    def decision_function(self, X):
        return self._outputs[:, 0] if self._task.kind == "binary" else self._outputs
