"""Courses of training that begin with RBMs, wherever they were cut off."""

import os
import signal
import time

import pytest

from sketchnet.errors import InputError, Interrupted
from sketchnet.training import checkpoint
from tests.pretraining.courses import (
    COURSES,
    RBMS,
    assert_same_run,
    classifier,
    unsupervised,
)


class Crash(Exception):
    pass


class Cut:
    """At event number `at` (steps and records), a signal, or a crash."""

    def __init__(self, at, crash=False):
        self.at, self.crash, self.seen = at, crash, 0

    def tick(self, *_):
        self.seen += 1
        if self.seen == self.at:
            if self.crash:
                raise Crash
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture(scope="module")
def wholes():
    """Uninterrupted runs, and how many events they have."""
    found = {}
    for name, course in COURSES.items():
        count = Cut(0)
        found[name] = course(tick=count.tick, report=count.tick), count.seen
    return found


@pytest.mark.parametrize("course", COURSES)
def test_cut_off_anywhere_and_continued_equals_uninterrupted(course, wholes, tmp_path):
    """In the first RBM, at the end of its first epoch, in the last RBM, at its end, and in the network's epochs."""
    whole, events = wholes[course]
    rbms = 10 * RBMS[course] + (course == "real")  # steps and records of 2 epochs each; moments come first
    places = [2, 5, rbms - 3, rbms - 1, rbms, rbms + 1, rbms + 4, events - 15, events - 3]
    for place, crash in [*((place, place % 2 == 0) for place in places), (rbms, rbms % 2 == 1)]:
        folder, cut = tmp_path / f"{place}{'crash' if crash else 'signal'}", Cut(place, crash)
        with pytest.raises(Crash if crash else Interrupted):
            COURSES[course](folder=folder, tick=cut.tick, report=cut.tick)
        if place == rbms and crash:
            assert not (folder / checkpoint.CHECKPOINT).exists()
            assert (folder / checkpoint.PRETRAINING).exists()
        again = Cut(0)
        assert_same_run(folder, COURSES[course](folder=folder, tick=again.tick), whole)
        if place > rbms + 10:
            assert again.seen < 24  # nothing was pretrained again, and not all epochs were


@pytest.mark.parametrize("course", ["fixed", "counts"])
def test_cut_off_again_and_again(course, wholes, tmp_path):
    folder, steps = tmp_path / "model", RBMS[course] * 8 + 24
    for _ in range(steps // 6):
        with pytest.raises(Interrupted):
            COURSES[course](folder=folder, tick=Cut(6).tick)
    rest = Cut(0)
    assert_same_run(folder, COURSES[course](folder=folder, tick=rest.tick), wholes[course][0])
    assert rest.seen == steps % 6


@pytest.mark.parametrize("course", ["fixed", "counts"])
def test_finished_runs_are_loaded_and_others_overwritten(course, wholes, tmp_path):
    folder, count = tmp_path / "model", Cut(0)
    COURSES[course](folder=folder)
    assert_same_run(folder, COURSES[course](folder=folder, tick=count.tick), wholes[course][0])
    assert count.seen == 0
    make = {"fixed": classifier, "counts": unsupervised}[course]
    with pytest.raises(InputError, match="has another model, with another (network|training)"):
        make(seed=4)(folder=folder)
    with pytest.raises(Interrupted):  # RBMs of this one are left behind
        make(seed=5)(folder=folder, overwrite=True, tick=Cut(9).tick)
    assert (folder / checkpoint.PRETRAINING).exists()
    assert_same_run(folder, make(seed=4)(folder=folder, overwrite=True), make(seed=4)())


def test_time_before_an_interruption_in_pretraining_counts(tmp_path):
    cut = Cut(5)

    def slow(*_):
        if cut.seen == 3:
            time.sleep(0.5)
        cut.tick()

    with pytest.raises(Interrupted):
        COURSES["counts"](folder=tmp_path / "model", tick=slow)
    model = COURSES["counts"](folder=tmp_path / "model")
    assert model.history[-1]["seconds"] > 0.5
