"""LIBLINEAR on the columns themselves, the dissertation's way: scaled by their maximum, no bias unless asked."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
from scipy import sparse

from reproduction.experiments.recipes.digits import digit_rows
from reproduction.experiments.recipes.synthetic import synthetic_rows

_GRID = (0.001, 0.01, 0.1, 1.0)  # of C


def synthetic_linear(*, seed, device, n, d, density, significant, model, bias=False) -> dict:
    """The error of "svm" (L2-loss) or "lr" (logistic regression), and the "seconds" of learning with the chosen C."""
    train, test = synthetic_rows(n, d, density, significant)
    largest = np.zeros(d, np.float32)
    np.maximum.at(largest, train.indices, np.abs(train.values))
    largest[largest == 0] = 1
    scaled = (_narrow(part.scipy(), largest) for part in (train, test))
    return _outcome(lambda C: _make(model, C, bias, seed), *zip(scaled, (train.labels, test.labels)))


def digits_linear(*, seed, device, data, rows, model) -> dict:
    """The same on digits, whose pixels are from 0 to 1 already."""
    (X, y), (X_test, y_test) = digit_rows(data, rows)
    train, test = (sparse.csr_array(X), y), (sparse.csr_array(X_test), y_test)
    return _outcome(lambda C: _make(model, C, False, seed), train, test)


def _narrow(X: sparse.csr_array, by: np.ndarray) -> sparse.csr_array:
    """Columns divided by numbers; ids and offsets of 32 bits, which is all that LIBLINEAR takes."""
    values = X.data / by[X.indices]
    return sparse.csr_array((values, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def _outcome(make: Callable, train: tuple, test: tuple) -> dict:
    """C is chosen on the last tenth of the training rows, then all of them are learnt."""
    (X, y), (X_test, y_test) = train, test
    cut = len(y) * 9 // 10
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Liblinear failed to converge")  # large C: what it has reached counts
        errors = {C: _error(make(C).fit(X[:cut], y[:cut]), X[cut:], y[cut:]) for C in _GRID}
        C = min(errors, key=errors.get)
        begun = time.perf_counter()
        fitted = make(C).fit(X, y)
        seconds = time.perf_counter() - begun
    return {"error": _error(fitted, X_test, y_test), "valid_error": errors[C], "seconds": seconds, "C": C}


def _make(model: str, C: float, bias: bool, seed: int):
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    if model == "svm":  # LIBLINEAR's own tolerance for the dual problem
        return LinearSVC(C=C, dual=True, tol=0.1, fit_intercept=bias, random_state=seed)
    how = {"solver": "liblinear", "tol": 0.01, "fit_intercept": bias, "random_state": seed}
    return OneVsRestClassifier(LogisticRegression(C=C, **how))


def _error(model, X, y) -> float:
    return 100 * float(np.mean(model.predict(X) != y))
