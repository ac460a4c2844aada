"""Random search of a rival's settings, by log loss on held-back rows."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

import numpy as np

from reproduction.rivals import Rival
from reproduction.rivals.search import held_back_rows
from reproduction.scoreboard.arithmetic import row_losses
from reproduction.scoreboard.contestant import Contestant
from reproduction.scoreboard.parts import Part
from reproduction.scoreboard.plan import LEAST_SECONDS, MOST_TRIALS


@dataclass(frozen=True)
class Choice:
    """The settings with the least held-back log loss, as they came out, and how they were found."""

    settings: dict
    calibration: dict | None
    valid_log_loss: float
    trials: int
    search_seconds: float


def draw_settings(rival: type[Rival], seed: int, most: int = MOST_TRIALS) -> list[dict]:
    """What is tried: the usual settings, then others from the rival's space, each once."""
    rng = np.random.default_rng(seed)
    drawn = [dict(rival.defaults)]
    for _ in range(50 * most):  # enough to meet nearly all of a small space
        settings = rival.defaults | {name: values[rng.integers(len(values))] for name, values in rival.space.items()}
        if settings not in drawn and len(drawn) < most:
            drawn.append(settings)
    return drawn


def search(rival: type[Rival], part: Part, n_classes: int, seed: int, budget: float) -> Choice:
    """Try settings for `budget` seconds: the first in any case to its end, later ones for half of the time left."""
    rest, held = split_held_back(part)
    begun, spoilt, best, trials = time.perf_counter(), 0.0, None, 0
    for settings in draw_settings(rival, seed):
        left = budget - (time.perf_counter() - begun - spoilt)
        if trials and left <= 0:
            break
        trials += 1
        contestant = Contestant(rival, seed, n_classes)
        contestant.fit(rest, settings, valid=held, seconds=left / 2 if trials > 1 else max(budget, LEAST_SECONDS))
        loss = float(row_losses(contestant.predict(held).probabilities, held.y).mean())
        spoilt += contestant.rival.conversion
        if best is None or loss < best[0]:
            calibration = contestant.calibration
            best = loss, dict(contestant.rival.settings_), None if calibration is None else asdict(calibration)
    seconds = time.perf_counter() - begun - spoilt
    return Choice(best[1], best[2], best[0], trials, seconds)


def split_held_back(part: Part) -> tuple[Part, Part]:
    """(rows to learn from, rows to choose by)."""
    rest, held = held_back_rows(len(part))
    return part.take(rest), part.take(held)
