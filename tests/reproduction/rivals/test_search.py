"""Settings are chosen on held-back rows only, in the time that everybody has."""

import time
from typing import ClassVar

import numpy as np
import pytest

from reproduction.rivals.rival import Rival
from reproduction.rivals.search import choose_settings, held_back_rows
from sketchnet.data.csr import as_csr
from sketchnet.training.examples import Examples, hold_back
from tests.reproduction.rivals.separable import separable


class Memory(Rival):
    """Knows the rows it has seen by heart, and gives others the class of its setting; sleeps a while."""

    name = "memory"
    defaults: ClassVar = {"guess": 0, "sleep": 0.0}
    options = ({"guess": 0}, {"guess": 1})

    def grid(self, X, y):
        return list(self.options)

    def _learn(self, X, y, settings, valid, deadline):
        time.sleep(settings["sleep"])
        self.known = {tuple(X[[row]].indices.tolist()): label for row, label in enumerate(y)}
        self.valid, self.trials = valid, [*getattr(self, "trials", []), settings["guess"]]

    def _decide(self, X):
        guess = self.settings_["guess"]
        return np.array([self.known.get(tuple(X[[row]].indices.tolist()), guess) for row in range(X.shape[0])])


def test_held_back_rows_are_those_of_the_estimators():
    X, _ = separable(400, 2, seed=0)
    rest, held = held_back_rows(400)
    kept, back = hold_back(Examples(as_csr(X, X.shape[1]), np.arange(400)), 0.1, seed=0)
    assert np.array_equal(rest, kept.targets)
    assert np.array_equal(held, back.targets)


def test_chosen_by_rows_that_were_not_learnt():
    """Most rows are of class 0, those held back of class 1: only who looks at the latter chooses the guess 1."""
    X, _ = separable(300, 2, seed=0)
    y = np.zeros(300, np.int64)
    rest, held = held_back_rows(300)
    y[held] = 1
    y[rest[:3]] = 1
    found = choose_settings(Memory(), X, y, budget=60)
    assert found.settings["guess"] == 1
    assert found.valid_error == 0
    assert found.trials == 2
    y[held], y[rest] = 0, 1
    y[rest[:3]] = 0
    found = choose_settings(Memory(), X, y, budget=60)
    assert found.settings["guess"] == 0


def test_of_equals_the_first_counts():
    class Same(Memory):
        options = ({"guess": 1}, {"guess": 0})

    X, y = separable(300, 2, seed=0)
    y[held_back_rows(300)[1]] = np.arange(30) % 2
    assert choose_settings(Same(), X, y, budget=60).settings["guess"] == 1


def test_no_trial_begins_after_the_budget():
    class Slow(Memory):
        options = ({"sleep": 0.3}, {"sleep": 0.3}, {"sleep": 0.3})

    X, y = separable(300, 2, seed=0)
    assert choose_settings(Slow(), X, y, budget=0.2).trials == 1
    found = choose_settings(Slow(), X, y, budget=60)
    assert found.trials == 3
    assert found.seconds == pytest.approx(0.9, abs=0.8)
