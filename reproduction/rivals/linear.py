"""LIBLINEAR, through scikit-learn: support vector machine and logistic regression, each with an L2 or an L1 penalty.

With the L1 penalty the machine is the problem that newGLMNET solves. A bias is learnt as one more column.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import ClassVar

import numpy as np

from reproduction.rivals.columns import FewColumns
from reproduction.rivals.rival import Rival


class Liblinear(Rival):
    # `strength` is C times the mean squared norm of the rows, so that scaling the data changes nothing.
    defaults: ClassVar = {"strength": 3.0}
    strengths = (3, 1, 10, 0.3, 30, 0.1, 100)
    space: ClassVar = {"strength": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)}
    packages = ("sklearn.linear_model", "sklearn.multiclass", "sklearn.svm")
    takes_several_labels = True

    def grid(self, X, y) -> list[dict]:
        return [{"strength": float(strength)} for strength in self.strengths]

    def _learn(self, X, y, settings, valid, deadline) -> None:
        size = max(float(np.square(X.data, dtype=np.float64).sum()) / X.shape[0], 1e-30)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Liblinear failed to converge")  # large C: what it has reached counts
            # Its vectors are as long as the rows are wide; columns that no row has would only cost.
            self._columns = FewColumns("seen").fit(X, y)
            self._model = self._make(settings["strength"] / size).fit(self._columns.transform(X), y)

    @abstractmethod
    def _make(self, C: float): ...


class LinearSvm(Liblinear):
    name = "LIBLINEAR"
    gives = "margins"
    options: ClassVar = {}

    def _make(self, C):
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.svm import LinearSVC

        model = LinearSVC(C=C, random_state=self.seed, **self.options)
        return OneVsRestClassifier(model) if self.several_labels_ else model

    def _outputs(self, X):
        margins = self._model.decision_function(self._columns.transform(X))
        return margins.reshape(len(margins), -1)


class L1Svm(LinearSvm):
    name = "newGLMNET"
    strengths = (1, 3, 0.3, 10, 30)
    defaults: ClassVar = {"strength": 1.0}
    options: ClassVar = {"penalty": "l1", "dual": False, "max_iter": 100}


class LogisticRegression(Liblinear):
    name = "logistic regression"
    strengths = (30, 10, 100, 300, 3, 1000)
    defaults: ClassVar = {"strength": 30.0}
    space: ClassVar = {"strength": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)}

    def _make(self, C):
        from sklearn.linear_model import LogisticRegression as Model
        from sklearn.multiclass import OneVsRestClassifier

        model = Model(solver="liblinear", C=C, random_state=self.seed)
        return OneVsRestClassifier(model.set_params(**self._options(model)))

    def _outputs(self, X):
        return self._model.predict_proba(self._columns.transform(X))

    def _options(self, model) -> dict:
        return {}


class SparseLogisticRegression(LogisticRegression):
    name = "logistic regression, L1"
    strengths = (10, 30, 3, 100, 300)
    defaults: ClassVar = {"strength": 10.0}

    def _options(self, model):
        # scikit-learn 1.8 gave the penalty another name.
        return {"max_iter": 100} | ({"penalty": "l1"} if model.penalty == "l2" else {"l1_ratio": 1.0})
