"""A rival with probabilities, whatever it gives itself, and the default behind the same few methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from reproduction.rivals.rival import Rival, decisions
from reproduction.scoreboard.arithmetic import LEAST_PROBABILITY, Predictions, row_losses
from reproduction.scoreboard.parts import Part


@dataclass(frozen=True)
class Calibration:
    """Margins to probabilities: the logistic function of slope · margin + bias; for more classes softmax of slope ·
    margin.
    """

    slope: float = 1.0
    bias: float = 0.0

    def apply(self, margins: np.ndarray, several_labels: bool) -> np.ndarray:
        if several_labels:
            return _logistic(self.slope * margins + self.bias)
        if margins.shape[1] == 1:
            positive = _logistic(self.slope * margins[:, 0] + self.bias)
            return np.column_stack([1 - positive, positive])
        scaled = self.slope * (margins - margins.max(axis=1, keepdims=True))
        chances = np.exp(scaled)
        return chances / chances.sum(axis=1, keepdims=True)


def calibrate(margins: np.ndarray, labels: np.ndarray) -> Calibration:
    """The calibration with the least log loss on these rows."""
    several = labels.ndim == 2
    shifts = several or margins.shape[1] == 1
    unit = 1 / max(float(margins.std()), 1e-12)

    def make(numbers: np.ndarray) -> Calibration:
        return Calibration(float(unit * np.exp(np.clip(numbers[0], -20, 20))), float(numbers[1]) if shifts else 0.0)

    def loss(numbers: np.ndarray) -> float:
        return float(row_losses(make(numbers).apply(margins, several), labels).mean())

    return make(minimize(loss, np.zeros(2 if shifts else 1), method="Nelder-Mead").x)


class Contestant:
    """A rival on parts of a set. Labels that all or no training rows have are not learnt, but counted.

    `calibration` of margins comes from the rows of `valid`, or from an earlier fit.
    """

    def __init__(self, rival: type[Rival], seed: int, n_classes: int):
        self.rival = rival(seed=seed)
        self.n_classes = n_classes
        self.calibration: Calibration | None = None

    def fit(
        self, part: Part, settings: dict | None, *, valid: Part | None = None, seconds: float | None = None
    ) -> Self:
        y = part.y
        several = y.ndim == 2
        self._learnt = np.flatnonzero(y.any(axis=0) & ~y.all(axis=0)) if several else None
        self._shares = (y.sum(axis=0) + 1) / (len(y) + 2) if several else None
        self.rival.labels = self._learnt.tolist() if several else None
        held = None if valid is None else (valid.view(self.rival.view), self._targets(valid.y))
        self.rival.fit(part.view(self.rival.view), self._targets(y), settings, valid=held, seconds=seconds)
        if valid is not None and self.rival.gives == "margins":
            known = np.arange(len(valid)) if several else np.flatnonzero(np.isin(valid.y, self.rival.classes_))
            rows = valid.take(known)
            labels = self._targets(rows.y) if several else np.searchsorted(self.rival.classes_, rows.y)
            self.calibration = calibrate(self.rival.outputs(rows.view(self.rival.view)), labels)
        return self

    def predict(self, part: Part) -> Predictions:
        outputs = self.rival.outputs(part.view(self.rival.view))
        several = self._learnt is not None
        decided = decisions(outputs, self.rival.gives, several)
        if self.rival.gives == "margins":
            outputs = (self.calibration or Calibration()).apply(outputs, several)
        if not several:
            chances = np.full((len(part), self.n_classes), LEAST_PROBABILITY)
            chances[:, self.rival.classes_] = outputs
            return Predictions(self.rival.classes_[decided], chances.astype(np.float32), part.y)
        chances = np.tile(self._shares, (len(part), 1))
        every = (chances > 0.5).astype(np.uint8)
        chances[:, self._learnt], every[:, self._learnt] = outputs, decided
        return Predictions(every, chances.astype(np.float32), part.y)

    def _targets(self, y: np.ndarray) -> np.ndarray:
        return y if self._learnt is None else y[:, self._learnt]


class Default:
    """`SketchClassifier()`, with nothing but a seed."""

    def __init__(self, seed: int):
        self.seed = seed

    def warm_up(self, part: Part) -> None:
        """Compile what it needs, which is no part of its time."""
        rows = np.arange(min(400, len(part)))
        few = part.take(rows)
        seen = few.y.any(axis=0) & ~few.y.all(axis=0) if few.y.ndim == 2 else None
        Default(self.seed).fit(few if seen is None else Part(few.X, few.y[:, seen]))

    def fit(self, part: Part) -> Self:
        from sketchnet import SketchClassifier

        y = sparse.csr_array(part.y) if part.y.ndim == 2 else part.y
        self._model = SketchClassifier(random_state=self.seed).fit(part.X, y)
        return self

    def predict(self, part: Part) -> Predictions:
        """One pass, for the probabilities, decides too."""
        chances = np.asarray(self._model.predict_proba(part.X))
        several = part.y.ndim == 2
        decided = (chances > 0.5).astype(np.uint8) if several else self._model.classes_[chances.argmax(axis=1)]
        return Predictions(decided, chances.astype(np.float32), part.y)


def _logistic(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(values, -500, 500)))
