"""LIBLINEAR, through scikit-learn: support vector machine and logistic regression, each with an L2 or an L1 penalty.

With the L1 penalty the machine is the problem that newGLMNET solves. A bias is learnt as one more column.
"""

from __future__ import annotations

import inspect
import warnings
from abc import abstractmethod
from typing import ClassVar

import numpy as np

from reproduction.rivals.columns import FewColumns
from reproduction.rivals.rival import Rival

_STRENGTHS = (3, 1, 10, 0.3, 30, 0.1, 100)


class Liblinear(Rival):
    # `strength` is C times the mean squared norm of the rows, so that scaling the data changes nothing.
    defaults: ClassVar = {"strength": 3.0}
    strengths = _STRENGTHS

    def grid(self, X, y) -> list[dict]:
        return [{"strength": float(strength)} for strength in self.strengths]

    def load(self) -> None:
        import sklearn.linear_model
        import sklearn.multiclass
        import sklearn.svm  # noqa: F401

    def _learn(self, X, y, settings, valid, deadline) -> None:
        size = max(float(np.square(X.data, dtype=np.float64).sum()) / X.shape[0], 1e-30)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Liblinear failed to converge")  # large C: what it has reached counts
            # Its vectors are as long as the rows are wide; columns that no row has would only cost.
            self._columns = FewColumns("seen").fit(X, y)
            self._model = self._make(settings["strength"] / size, self.seed).fit(self._columns.transform(X), y)

    def _decide(self, X) -> np.ndarray:
        return self._model.predict(self._columns.transform(X))

    @abstractmethod
    def _make(self, C: float, seed: int): ...


class LinearSvm(Liblinear):
    name = "LIBLINEAR"

    def _make(self, C, seed):
        from sklearn.svm import LinearSVC

        return LinearSVC(C=C, random_state=seed)


class L1Svm(Liblinear):
    name = "newGLMNET"
    strengths = (1, 3, 0.3, 10, 30)
    defaults: ClassVar = {"strength": 1.0}

    def _make(self, C, seed):
        from sklearn.svm import LinearSVC

        return LinearSVC(C=C, penalty="l1", dual=False, max_iter=100, random_state=seed)


class LogisticRegression(Liblinear):
    name = "logistic regression"
    strengths = (30, 10, 100, 300, 3, 1000)
    defaults: ClassVar = {"strength": 30.0}

    def _make(self, C, seed):
        return _one_a_class(C=C, random_state=seed)


class SparseLogisticRegression(Liblinear):
    name = "logistic regression, L1"
    strengths = (10, 30, 3, 100, 300)
    defaults: ClassVar = {"strength": 10.0}

    def _make(self, C, seed):
        from sklearn.linear_model import LogisticRegression as Model

        # scikit-learn 1.8 gave the penalty another name.
        old = inspect.signature(Model).parameters["penalty"].default == "l2"
        return _one_a_class(C=C, max_iter=100, random_state=seed, **{"penalty": "l1"} if old else {"l1_ratio": 1.0})


def _one_a_class(**settings):
    from sklearn.linear_model import LogisticRegression as Model
    from sklearn.multiclass import OneVsRestClassifier

    return OneVsRestClassifier(Model(solver="liblinear", **settings))
