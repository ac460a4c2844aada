"""Networks on rows that other methods than random projection have reduced, and the columns that scores choose."""

from __future__ import annotations

import time

import numpy as np
from scipy import sparse
from sklearn.base import clone

from reproduction.experiments.recipes.digits import digit_parts, digit_rows
from reproduction.experiments.recipes.synthetic import synthetic_parts, synthetic_rows
from reproduction.experiments.recipes.trained import train_and_test
from sketchnet.data import CsrBatch, as_csr, sparse_rows
from sketchnet.estimators import ColumnSelector, SparseSVD

SCORES = ("information_gain", "f_score", "chi2")


class DenseArray:
    """A dense array as a data set for training: pieces of it become sparse rows when they are wanted."""

    def __init__(self, X: np.ndarray):
        self._X = X
        self.n_rows, self.n_columns = X.shape
        self.n_entries = X.size

    def rows(self, span: slice) -> CsrBatch:
        return sparse_rows(self._X[span])

    def __getitem__(self, numbers: np.ndarray) -> CsrBatch:
        return sparse_rows(self._X[numbers])


def synthetic_reduced(*, seed, device, n, d, density, significant, method, n_columns, **settings) -> dict:
    """The error of a network on rows reduced by a score of `SCORES`, or by "pca"."""
    train, test = synthetic_rows(n, d, density, significant)
    reduced, seconds = _reduce(train.scipy(), train.labels, test.scipy(), method, n_columns, seed)
    parts = synthetic_parts(tuple(zip(map(_data_set, reduced), (train.labels, test.labels))))
    return _with_time(train_and_test(parts, settings, seed, device, reduced=True), seconds)


def digits_reduced(*, seed, device, data, rows, method, n_columns, **settings) -> dict:
    """The same for digits. For "pca" pixels get zero mean and unit variance first, since nothing is centred in it."""
    (X, y), (X_test, y_test) = digit_rows(data, rows)
    if method == "pca":
        mean, deviation = X.mean(axis=0), np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
        X, X_test = (X - mean) / deviation, (X_test - mean) / deviation
    (X, X_test), seconds = _reduce(X, y, X_test, method, n_columns, seed)
    parts = digit_parts((X, y), (X_test, y_test))
    return _with_time(train_and_test(parts, settings, seed, device, reduced=True), seconds)


def chosen_pixels(*, seed, device, data, rows, score, n_columns) -> dict:
    """The pixels that a score chooses ("columns"), and how many of them, in %, lie in the middle of the image, in the
    square of so many pixels, how many never vary, and how many the other scores choose too.
    """
    (X, y), _ = digit_rows(data, rows)
    chosen = {name: ColumnSelector(name, n_columns=n_columns).fit(X, y).columns_ for name in SCORES}
    mine, width = chosen[score], round(X.shape[1] ** 0.5)
    side = round(n_columns**0.5)
    first = (width - side) // 2
    row, column = np.divmod(mine, width)
    inside = np.all([(first <= place) & (place < first + side) for place in (row, column)], axis=0)
    shared = set.intersection(*(set(columns.tolist()) for columns in chosen.values()))
    return {
        "columns": mine.tolist(),
        "central": 100 * float(inside.mean()),
        "constant": 100 * float(np.mean(np.ptp(X[:, mine], axis=0) == 0)),
        "shared": 100 * len(shared) / len(mine),
    }


def _reduce(X, y, X_test, method: str, n_columns: int, seed: int) -> tuple[tuple, float]:
    """((training rows, test rows), seconds that the training rows took)."""
    pca = method == "pca"
    reduction = SparseSVD(n_columns, random_state=seed) if pca else ColumnSelector(method, n_columns=n_columns)
    clone(reduction).set_params(**{"n_components" if pca else "n_columns": 1}).fit(X[:100], y[:100])  # compiles
    begun = time.perf_counter()
    reduced = reduction.fit(X, y).transform(X)
    return (reduced, reduction.transform(X_test)), time.perf_counter() - begun


def _data_set(X):
    return as_csr(X, X.shape[1]) if sparse.issparse(X) else DenseArray(X)


def _with_time(found: dict, seconds: float) -> dict:
    """What the network's history does not know: the reduction came before it."""
    total = found["total_seconds"] + seconds
    return found | {"reduce_seconds": seconds, "total_seconds": total, "reduce_share": 100 * seconds / total}
