"""sketchnet itself: the default settings, and the dissertation's networks on fixed projections."""

from __future__ import annotations

import time
from math import isinf
from typing import ClassVar

import numpy as np

from reproduction.rivals.rival import Rival, known_rows

_WARM_UP = 400  # rows: enough for some to be held back, so that the blend is compiled too


class Sketch(Rival):
    """The default: it chooses rates, epoch and blend on the tenth of the rows that everybody holds back."""

    name = "sketchnet"
    defaults: ClassVar = {"epochs": "auto"}

    def load(self) -> None:
        from sketchnet import SketchClassifier  # noqa: F401

    def warm_up(self, X, y) -> None:
        rows = np.arange(min(_WARM_UP, X.shape[0])) * max(1, X.shape[0] // _WARM_UP)
        type(self)(seed=self.seed, device=self.device).fit(X[rows], y[rows], {"epochs": 1})

    def _learn(self, X, y, settings, valid, deadline) -> None:
        from sketchnet import SketchClassifier

        seconds = None if isinf(deadline) else max(1.0, deadline - time.perf_counter())
        self._model = SketchClassifier(random_state=self.seed, device=self.device, seconds=seconds, **settings)
        self._model.fit(X, y, valid=None if valid is None else known_rows(valid))

    def _decide(self, X) -> np.ndarray:
        return self._model.predict(X)


class OnFixedProjection(Sketch):
    """A fixed projection to 1000 columns and two hidden layers, the epoch chosen on held-back rows."""

    scheme = ""
    defaults: ClassVar = {"hidden": (1000, 1000), "dropout": 0.5, "epochs": 20, "batch_size": 128}

    def grid(self, X, y) -> list[dict]:
        return [{}, {"dropout": 0.2}, {"dropout": 0.7}]

    def _learn(self, X, y, settings, valid, deadline) -> None:
        fixed = {"scheme": self.scheme, "n_components": 1000, "learn_projection": False}
        super()._learn(X, y, settings | fixed, valid, deadline)


def _on_projection(label: str, key: str) -> type[OnFixedProjection]:
    class OnProjection(OnFixedProjection):
        name, scheme = label, key

    return OnProjection


_SCHEMES = {
    "gaussian": "Gaussian RP",
    "achlioptas": "Achlioptas' RP",
    "li": "Li's RP",
    "srht": "SRHT RP",
    "count_sketch": "Count Sketch RP",
}
ON_PROJECTIONS = {scheme: _on_projection(label, scheme) for scheme, label in _SCHEMES.items()}
