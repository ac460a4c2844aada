"""Courses: what comes before the epochs of a network, and after them. Here, for networks that learn labels."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sketchnet.memory import parse_memory
from sketchnet.training.captured import make_steps
from sketchnet.training.examples import Examples
from sketchnet.training.model import Model
from sketchnet.training.processes import Processes
from sketchnet.training.rows import scale_input
from sketchnet.training.steps import Steps


def silent(*_) -> None:
    """Report nothing."""


@dataclass
class Progress:
    """How far training has come; together with the weights, all that a checkpoint needs."""

    epoch: int = 0
    step: int = 0  # within the epoch
    loss: float = 0.0  # summed over the epoch so far
    weight: float = 0.0
    best_epoch: int = -1
    best: tuple[float, float] = (float("inf"), float("inf"))  # validation error, then loss
    seconds: float = 0.0
    history: list[dict] = field(default_factory=list)

    @property
    def mean_loss(self) -> float:
        return self.loss / max(self.weight, 1e-300)


@dataclass
class Run:
    """Where a run is kept, whom it tells and asks, and how far it has come."""

    folder: Path | None = None
    memory: str | int | None = None
    report: Callable[[dict], None] = silent
    tick: Callable[[int, int, str], None] = silent
    asked_to_stop: Callable[[], bool] = lambda: False
    team: Processes = field(default_factory=Processes)
    progress: Progress = field(default_factory=Progress)
    loaded: float | None = None  # seconds that reading the rows took, if that is known
    begun: float = field(default_factory=time.perf_counter)  # or would have, had it never been cut off
    resuming: bool = False

    def note(self, record: dict) -> None:
        self.progress.history.append(record)
        self.report(record)

    def aside(self, record: dict) -> None:
        """Note what is done again in a run that goes on, but was noted when it was first done."""
        if not self.resuming:
            self.note(record)


class Course(ABC):
    """What a kind of network does before its epochs, in them, and after them."""

    def check(self, model: Model) -> None:  # noqa: B027 (most take any model)
        """Raise if such a model cannot take this course; before its folder is made."""

    @abstractmethod
    def start(self, model: Model, examples: Examples, valid: Examples | None, run: Run) -> Steps:
        """The steps that epochs consist of."""

    def finish(self, model: Model, examples: Examples) -> dict | None:  # noqa: B027 (most leave it as it is)
        """Change the network of the best epoch for good; return a record of what was done."""


class Supervised(Course):
    """A network learns labels."""

    def start(self, model: Model, examples: Examples, valid: Examples | None, run: Run) -> Steps:
        scale_input(model.network, examples.data, run.aside)
        if not run.resuming:
            self.pretrain(model, examples, valid, run)
            run.team.equalise(model.network)
        how = model.training, parse_memory(run.memory), run.aside, run.team
        return make_steps(model.network, model.task, examples, *how)

    def pretrain(self, model: Model, examples: Examples, valid: Examples | None, run: Run) -> None:
        """Nothing, here."""
