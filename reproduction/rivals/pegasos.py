"""Pegasos: stochastic gradient descent on the support vector machine's primal problem, with rates 1 / (lambda t)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy import sparse

from reproduction.rivals.columns import FewColumns
from reproduction.rivals.rival import Rival


class Pegasos(Rival):
    name = "Pegasos"
    packages = ("sklearn.linear_model",)
    # lambda is 1 / (strength * rows): strength is the C that LIBLINEAR would have, for rows of norm 1.
    defaults: ClassVar = {"strength": 3.0, "epochs": 20}

    def grid(self, X, y) -> list[dict]:
        return [{"strength": float(s), "epochs": epochs} for epochs in (20, 60) for s in (3, 10, 1, 30, 0.3)]

    def _learn(self, X, y, settings, valid, deadline) -> None:
        from sklearn.linear_model import SGDClassifier

        # Pegasos expects rows of about norm 1, and a bias as a column like others.
        self._scale = 1 / max(1e-30, float(np.sqrt(np.square(X.data, dtype=np.float64).sum() / X.shape[0])))
        self._columns = FewColumns("seen").fit(X, y)
        penalty = 1 / (settings["strength"] * X.shape[0])
        self._model = SGDClassifier(
            loss="hinge", alpha=penalty, learning_rate="invscaling", eta0=1 / penalty, power_t=1.0, fit_intercept=False,
            max_iter=settings["epochs"], tol=None, random_state=self.seed,
        )  # fmt: skip
        self._model.fit(self._prepared(X), y)

    def _decide(self, X) -> np.ndarray:
        return self._model.predict(self._prepared(X))

    def _prepared(self, X) -> sparse.csr_matrix:
        few = self._columns.transform(X)
        few.data *= few.dtype.type(self._scale)
        return sparse.hstack([few, np.ones((few.shape[0], 1), few.dtype)], format="csr")
