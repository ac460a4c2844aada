"""Networks behind random projections on the synthetic data, and its two yardsticks."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from reproduction.experiments.recipes.trained import Parts, train_and_test
from sketchnet.data import CsrBatch, Synthetic
from sketchnet.training import Examples, Task, hold_back

_TASK = Task("binary", (0, 1))
_MEAN, _VARIANCE = 3.0, 2.0  # of a significant non-zero in class 1: N(0, 1) + N(3, 1)


@lru_cache(maxsize=1)  # cells with the same data come one after the other
def synthetic_rows(n: int, d: int, density: float, significant: float) -> tuple[CsrBatch, CsrBatch]:
    """(training rows, test rows), with their labels."""
    data = Synthetic(n, d, density, significant)
    return data.rows(slice(0, data.n_train)), data.rows(slice(data.n_train, n))


def synthetic_parts(rows: tuple) -> Parts:
    """A tenth of the training rows chooses the epoch."""
    learnt, test = (Examples(part, _TASK.encode(labels)) for part, labels in rows)
    return Parts(_TASK, *hold_back(learnt, 0.1, 0), test)


def synthetic_network(*, seed, device, n, d, density, significant, **settings) -> dict:
    """The error of a network; `settings` are those of `NetworkConfig` and `TrainingConfig`."""
    rows = synthetic_rows(n, d, density, significant)
    return train_and_test(synthetic_parts((part, part.labels) for part in rows), settings, seed, device)


def synthetic_norm(*, seed, device, n, d, density, significant) -> dict:
    """The error of calling all rows with a squared norm above a threshold class 1, as suits the training rows best."""
    train, test = synthetic_rows(n, d, density, significant)
    norms, test_norms = (np.bincount(_row_numbers(part), part.values**2, part.n_rows) for part in (train, test))
    order = np.argsort(norms)
    # With the threshold behind the i-th smallest: class 1 among those i, and class 0 among the others, are wrong.
    ones = np.concatenate([[0], np.cumsum(train.labels[order])])
    wrong = ones + (len(order) - ones[-1]) - (np.arange(len(ones)) - ones)
    threshold = np.concatenate([[-np.inf], norms[order]])[wrong.argmin()]
    return {"error": 100 * float(np.mean((test_norms > threshold) != test.labels))}


def synthetic_bayes(*, seed, device, n, d, density, significant) -> dict:
    """The error of who knows how the data is made, and learns from the training rows which columns are significant.

    A column is significant with probability `significant`. Its non-zeros in class 1 are then N(3, 2), otherwise N(0, 1)
    as in class 0; by Bayes' rule they give the probability p that it is. A non-zero of a test row then speaks for class
    1 by the ratio p N(3, 2) / N(0, 1) + 1 - p of its densities. No learner can expect a lower error.
    """
    train, test = synthetic_rows(n, d, density, significant)
    of_one = train.labels[_row_numbers(train)] == 1
    evidence = np.bincount(train.indices[of_one], _log_ratio(train.values[of_one]), d)
    logit = evidence + np.log(significant) - np.log1p(-significant)
    for_one, for_zero = -np.logaddexp(0, -logit), -np.logaddexp(0, logit)  # logarithms of p and 1 - p
    speaks = np.logaddexp(for_one[test.indices] + _log_ratio(test.values), for_zero[test.indices])
    decided = np.bincount(_row_numbers(test), speaks, test.n_rows) > 0
    return {"error": 100 * float(np.mean(decided != test.labels))}


def _log_ratio(values: np.ndarray) -> np.ndarray:
    values = values.astype(np.float64)
    return values**2 / 2 - (values - _MEAN) ** 2 / (2 * _VARIANCE) - np.log(_VARIANCE) / 2


def _row_numbers(rows: CsrBatch) -> np.ndarray:
    return np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
