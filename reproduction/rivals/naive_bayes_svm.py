"""NB-SVM (Wang and Manning, 2012): columns weighed by naive Bayes' log ratios, then LIBLINEAR, a class at a time."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from scipy import sparse

from reproduction.rivals.columns import FewColumns
from reproduction.rivals.rival import Rival


class NaiveBayesSvm(Rival):
    """Ratios are of the rows that have a column, as in the paper, which counts words once; values are kept. `share` of
    a weight is its own, the rest the mean size of all; scale and bias of what that gives are learnt from the same rows.
    """

    name = "NB-SVM"
    gives = "margins"
    takes_several_labels = True
    packages = ("sklearn.svm",)
    defaults: ClassVar = {"strength": 3.0, "share": 0.25, "prior": 1.0}
    space: ClassVar = {
        "strength": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0), "share": (0.25, 0.5, 0.75, 1.0),
        "prior": (0.1, 1.0),
    }  # fmt: skip

    def _learn(self, X, y, settings, valid, deadline) -> None:
        self._columns = FewColumns("seen").fit(X, y)
        few = sparse.csr_array(self._columns.transform(X))
        if self.several_labels_:
            targets = y.T
        else:
            targets = [y == number for number in range(len(self.classes_))]
        targets = targets[1:] if not self.several_labels_ and len(self.classes_) == 2 else targets
        machines = [self._machine(few, np.asarray(target, bool), settings) for target in targets]
        self._weights = np.column_stack([weights for weights, _ in machines])
        self._biases = np.array([bias for _, bias in machines])

    def _machine(self, X, positive: np.ndarray, settings: dict) -> tuple[np.ndarray, float]:
        from sklearn.svm import LinearSVC

        ratios = log_ratios(X, positive, settings["prior"]).astype(X.dtype)
        weighed = sparse.csr_array((X.data * ratios[X.indices], X.indices, X.indptr), shape=X.shape)
        size = max(float(np.square(weighed.data, dtype=np.float64).sum()) / X.shape[0], 1e-30)
        model = LinearSVC(C=settings["strength"] / size, random_state=self.seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Liblinear failed to converge")  # large C: what it has reached counts
            model.fit(weighed, positive)
        weights = model.coef_.ravel()
        mixed = (1 - settings["share"]) * np.abs(weights).mean() + settings["share"] * weights
        margins = weighed @ mixed
        unit = 1 / max(float(margins.std()), 1e-30)
        line = LinearSVC(random_state=self.seed, dual=False).fit(margins[:, None] * unit, positive)
        return ratios * mixed * (float(line.coef_[0, 0]) * unit), float(line.intercept_[0])

    def _outputs(self, X):
        return self._columns.transform(X) @ self._weights + self._biases


def log_ratios(X, positive: np.ndarray, prior: float) -> np.ndarray:
    """By column the log of how much likelier it is in positive rows, with `prior` rows more that have it."""
    has = sparse.csr_array(((X.data != 0).astype(np.float64), X.indices, X.indptr), shape=X.shape)
    inside, outside = (prior + has[rows].sum(axis=0) for rows in (positive, ~positive))
    return np.log((inside / inside.sum()) / (outside / outside.sum()))
