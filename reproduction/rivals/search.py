"""Settings of a rival, chosen on the same held-back rows and in the same time for everybody."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from reproduction.rivals.rival import Rival
from sketchnet import random


@dataclass(frozen=True)
class Choice:
    """The settings with the fewest wrong held-back rows, and how they were found."""

    settings: dict
    valid_error: float  # in percent
    trials: int
    seconds: float


def held_back_rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """(row numbers to learn from, a random tenth to choose by), each ascending: those that `SketchClassifier` takes."""
    order = random.shuffled(n, 0, random.STREAM_VALID)
    return np.sort(order[n // 10 :]), np.sort(order[: n // 10])


def choose_settings(rival: Rival, X, y, budget: float) -> Choice:
    """Try the rival's grid, in its order, for `budget` seconds; the first settings are tried in any case.

    Each trial may take half of the time that is left, which those keep to that learn in rounds: many hasty trials would
    find nothing. Of settings with the same error the first ones win: grids begin with the most promising.
    """
    rest, held = held_back_rows(X.shape[0])
    X_rest, y_rest, X_held, y_held = X[rest], y[rest], X[held], y[held]
    begun, spoilt = time.perf_counter(), rival.conversion
    grid = rival.grid(X_rest, y_rest)
    best, trials = None, 0
    for settings in grid:
        left = budget - (time.perf_counter() - begun) + (rival.conversion - spoilt)
        if trials and left <= 0:
            break
        rival.fit(X_rest, y_rest, settings, valid=(X_held, y_held), seconds=max(0.0, left) / 2)
        error = 100 * float(np.mean(rival.predict(X_held) != y_held))
        trials += 1
        if best is None or error < best[0]:
            best = (error, dict(rival.settings_))
    seconds = time.perf_counter() - begun - (rival.conversion - spoilt)
    return Choice(best[1], best[0], trials, seconds)
