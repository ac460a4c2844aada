"""scikit-learn's `MLPClassifier`, on as many columns as its dense first layer can take."""

from __future__ import annotations

from copy import deepcopy
from typing import ClassVar

import numpy as np

from reproduction.rivals.columns import FewColumns
from reproduction.rivals.epochs import best_epoch
from reproduction.rivals.rival import Rival


class Perceptron(Rival):
    name = "MLPClassifier"
    packages = ("sklearn.feature_selection", "sklearn.neural_network")
    defaults: ClassVar = {"columns": "chi2", "width": 20_000, "hidden": 100, "rate": 1e-3, "l2": 1e-4, "epochs": 30}

    def grid(self, X, y) -> list[dict]:
        grid = [{}, {"columns": "hashed", "width": 2**15}, {"rate": 3e-3}, {"l2": 1e-2}, {"hidden": 300}]
        return [*grid, {"width": 50_000}, {"width": 5000, "hidden": 300}]

    def _learn(self, X, y, settings, valid, deadline) -> None:
        from sklearn.neural_network import MLPClassifier

        self._columns = FewColumns(settings["columns"], settings["width"], self.seed).fit(X, y)
        few = self._columns.transform(X)
        # Entries of rows of norm 1 are small, and rates of Adam are made for inputs of about 1.
        self._scale = few.dtype.type(1 / max(1e-30, np.sqrt(np.square(few.data, dtype=np.float64).mean())))
        few.data *= self._scale
        # From a mere seed each partial_fit would begin anew, and every epoch have the same batches in the same order.
        numbers = np.random.RandomState(self.seed)
        self._model = MLPClassifier(
            (settings["hidden"],), alpha=settings["l2"], learning_rate_init=settings["rate"], random_state=numbers
        )
        classes = np.arange(len(self.classes_))
        held = None if valid is None else self._scaled(valid[0])
        kept = {}
        chosen = best_epoch(
            settings["epochs"],
            lambda: self._model.partial_fit(few, y, classes=classes),
            None if valid is None else lambda: np.count_nonzero(self._model.predict(held) != valid[1]),
            lambda: kept.update(coefs_=deepcopy(self._model.coefs_), intercepts_=deepcopy(self._model.intercepts_)),
            deadline,
        )
        vars(self._model).update(kept)
        settings["epochs"] = chosen

    def _decide(self, X) -> np.ndarray:
        return self._model.predict(self._scaled(X))

    def _scaled(self, X):
        few = self._columns.transform(X)
        few.data *= self._scale
        return few
