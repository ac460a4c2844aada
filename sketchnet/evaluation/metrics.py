"""What predictions are worth."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn import metrics as sklearn_metrics

from sketchnet.errors import BadRows
from sketchnet.training.task import Task

_BINS = 15
_MOST_CLASSES = 1000  # of a confusion matrix: with more, it would outgrow everything else


def measure(task: Task, outputs: np.ndarray, targets) -> dict:
    """Figures of merit by name, as plain Python values; a figure that these rows do not define is left out.

    `outputs` are the network's, `targets` are encoded by the task. `calibration` has bins of equal width of the
    probability of the second class, or for more classes of the likeliest one; there, "positive" means right. In
    `confusion`, a row is a true class and a column a predicted one.
    """
    check_outputs(outputs)
    if len(outputs) == 0:
        return {}
    found = {"regression": _regression, "multilabel": _multilabel}.get(task.kind, _classes)(task, outputs, targets)
    return {name: value if isinstance(value, list) else float(value) for name, value in found.items()}


def check_outputs(outputs: np.ndarray, rows_before: int = 0) -> None:
    """Values near the largest number of their type can lead to infinite outputs."""
    bad = np.flatnonzero(~np.isfinite(outputs).all(axis=1))
    if len(bad):
        what = "its values are too large, or the weights are damaged"
        raise BadRows(f"the output for row {rows_before + bad[0]} is not a finite number: {what}")


def _classes(task: Task, outputs: np.ndarray, targets: np.ndarray) -> dict:
    probabilities, predicted = task.probabilities(outputs), task.numbers(outputs)
    every, seen = np.arange(len(task.classes)), np.unique(targets)
    found = {
        "error": np.mean(predicted != targets),
        "log_loss": sklearn_metrics.log_loss(targets, probabilities, labels=every),
    }
    if task.kind == "binary":
        sure, right = probabilities[:, 1], targets == 1
        if len(seen) == 2:
            found["roc_auc"] = sklearn_metrics.roc_auc_score(right, sure)
        if 1 in seen:
            found["pr_auc"] = sklearn_metrics.average_precision_score(right, sure)
    else:
        sure, right = probabilities.max(axis=1), predicted == targets
        if len(seen) == len(every):
            found["roc_auc"] = sklearn_metrics.roc_auc_score(targets, probabilities, multi_class="ovr", labels=every)
    found["calibration_error"], found["calibration"] = _calibration(sure, right)
    if len(every) <= _MOST_CLASSES:
        found["confusion"] = sklearn_metrics.confusion_matrix(targets, predicted, labels=every).tolist()
    return found


def _calibration(probability: np.ndarray, positive: np.ndarray) -> tuple[float, list[dict]]:
    """(expected calibration error, the bins that have rows)."""
    places = np.minimum((probability * _BINS).astype(int), _BINS - 1)
    counts = np.bincount(places, minlength=_BINS)
    filled = counts > 0
    count = counts[filled]
    mean, share = (np.bincount(places, x, _BINS)[filled] / count for x in (probability, positive))
    bins = zip(mean.tolist(), share.tolist(), count.tolist())
    names = ("mean_probability", "share_positive", "count")
    return np.abs(mean - share) @ count / count.sum(), [dict(zip(names, values)) for values in bins]


def _multilabel(task: Task, outputs: np.ndarray, targets: sparse.csr_array) -> dict:
    true = sparse.csr_array(targets).astype(bool)
    true.sum_duplicates()  # a row may name a label twice
    true.eliminate_zeros()
    predicted = sparse.csr_array(outputs > 0)
    wide = outputs.astype(np.float64)
    found = {
        "error": (true != predicted).nnz / outputs.size,
        "subset_error": sklearn_metrics.zero_one_loss(true, predicted),
        # Of the logits, so that a probability that rounds to 0 or 1 has its true loss.
        "log_loss": (np.logaddexp(0, wide).sum() - wide[true.nonzero()].sum()) / outputs.size,
    }
    for average in ("micro", "macro"):  # labels that are neither true nor predicted in any row do not count
        f1 = sklearn_metrics.f1_score(true, predicted, average=average, zero_division=np.nan)
        if not np.isnan(f1):
            found[f"{average}_f1"] = f1
    return found


def _regression(task: Task, outputs: np.ndarray, targets: np.ndarray) -> dict:
    # As they are standardised: squares of what they stand for may be beyond float64.
    true, predicted = targets.astype(np.float64), outputs[:, 0].astype(np.float64)
    found = {
        "rmse": sklearn_metrics.root_mean_squared_error(true, predicted) * task.deviation,
        "mae": sklearn_metrics.mean_absolute_error(true, predicted) * task.deviation,
    }
    if np.ptp(true) > 0:
        found["r2"] = sklearn_metrics.r2_score(true, predicted)
    return found
