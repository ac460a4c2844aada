"""What an epoch does to a network, step by step. `captured.py` has the same for networks on a CUDA device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from sketchnet import random
from sketchnet.data.batches import iterate_batches
from sketchnet.nn import LearnableProjection, SketchNetwork
from sketchnet.training.config import TrainingConfig
from sketchnet.training.examples import Examples
from sketchnet.training.optimisers import make_optimiser
from sketchnet.training.processes import Processes
from sketchnet.training.rows import TrainingRows
from sketchnet.training.task import Task

_ROWS = 1024  # evaluated at a time


class Steps(ABC):
    """All that the loop asks of a network that learns. Each kind of network, and of device, has its own."""

    n_batches: int  # of an epoch

    @abstractmethod
    def epoch(self, epoch: int, skip: int) -> Iterator[tuple[float, float]]:
        """Do the steps of an epoch from number `skip` on. After each, yields the sum of losses and of weights that have
        become known. A loss that is not finite changes nothing any more.
        """

    def pending(self) -> tuple[float, float]:
        """What was not yielded yet of losses and weights."""
        return 0.0, 0.0

    @abstractmethod
    def evaluate(self, examples: Examples) -> tuple[float, float]:
        """(error, loss) on examples."""

    @abstractmethod
    def state(self) -> dict[str, torch.Tensor]:
        """All that must be saved, beside the network, to go on as if nothing had happened."""

    @abstractmethod
    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        """Go on from there."""

    @abstractmethod
    def close(self) -> None:
        """Leave the network to others."""


class EagerSteps(Steps):
    """Steps one after the other, on the processor, or with the dense layers on another device."""

    def __init__(self, network: Any, config: TrainingConfig, n_rows: int, team: Processes):
        self._network, self._config, self._team = network, config, team
        self._optimiser = make_optimiser(network, config)
        self._optimiser.shared = not team.alone
        self.n_batches = -(-n_rows // config.batch_size)

    @abstractmethod
    def batches(self, epoch: int, skip: int) -> Iterator[tuple[np.ndarray, object]]:
        """(row numbers, batch) in the epoch's order, from batch number `skip` on."""

    @abstractmethod
    def loss(self, rows: np.ndarray, batch, step: int, mine: slice) -> torch.Tensor:
        """What some rows of a batch add to its loss."""

    def epoch(self, epoch: int, skip: int) -> Iterator[tuple[float, float]]:
        config, total = self._config, self._config.epochs * self.n_batches
        self._network.train()
        for number, (rows, batch) in enumerate(self.batches(epoch, skip), start=skip):
            step = epoch * self.n_batches + number
            self._optimiser.schedule(epoch, step / total)
            set_seed(self._network, config.seed, step)
            choose_updates(self._network, config.seed, step, frozen=epoch < config.frozen_epochs)
            n = len(rows)
            loss = self.loss(rows, batch, step, self._team.take(n))
            value = float(self._team.sum(loss.detach().clone()))
            if np.isfinite(value):
                self._optimiser.zero_grad()
                loss.backward()
                self._team.add_gradients(self._optimiser.parameters)
                self._optimiser.step()
            yield value * n, float(n)
        self._optimiser.settle()

    def state(self) -> dict[str, torch.Tensor]:
        return self._optimiser.state()

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        self._optimiser.load_state(tensors)

    def close(self) -> None:
        self._optimiser.close()


class PlainSteps(EagerSteps):
    """Of a network that learns labels."""

    def __init__(
        self,
        network: SketchNetwork,
        task: Task,
        examples: Examples,
        config: TrainingConfig,
        budget: int,
        note: Callable[[dict], None],
        team: Processes,
    ):
        self._rows = TrainingRows(network, examples, config, budget, note)
        super().__init__(network, config, examples.data.n_rows, team)
        self._task, self._examples = task, examples

    def batches(self, epoch: int, skip: int) -> Iterator[tuple[np.ndarray, object]]:
        return self._rows.batches(epoch, skip)

    def loss(self, rows: np.ndarray, batch, step: int, mine: slice) -> torch.Tensor:
        outputs = self._rows.outputs(batch, step, mine)
        return batch_loss(self._task, outputs, self._examples, rows[mine], len(rows))

    def evaluate(self, examples: Examples) -> tuple[float, float]:
        self._network.eval()
        return evaluate(self._network, self._task, examples, self._team)


def evaluate(forward: Callable, task: Task, examples: Examples, team: Processes | None = None) -> tuple[float, float]:
    """(error, loss) of what `forward` makes of examples, averaged by their weights. A team shares the batches."""
    sums, done, team = np.zeros(3), 0, team or Processes()
    with torch.no_grad():
        for number, batch in enumerate(iterate_batches(examples.data, _ROWS, shuffle=False)):
            rows, done = np.arange(done, done + batch.n_rows), done + batch.n_rows
            if number % team.count != team.rank:
                continue
            outputs = forward(batch).cpu()
            targets = task.batch(examples.targets, rows)
            weights = np.ones(len(rows)) if examples.weights is None else examples.weights[rows]
            sums[0] += task.mistakes(outputs, targets).double().numpy() @ weights
            sums[1] += task.losses(outputs, targets).double().numpy() @ weights
            sums[2] += weights.sum()
    sums = team.sum(torch.from_numpy(sums)).numpy()
    return float(sums[0] / sums[2]), float(sums[1] / sums[2])


def batch_loss(task: Task, outputs: torch.Tensor, examples: Examples, rows: np.ndarray, n: int) -> torch.Tensor:
    """The loss of some rows of a batch of n, over n; weights count relative to their mean over all examples."""
    losses = task.losses(outputs, task.batch(examples.targets, rows).to(outputs.device))
    if examples.weights is None:
        return losses.sum() / n
    weights = (examples.weights[rows] / examples.mean_weight).astype(np.float32)
    return (losses * torch.from_numpy(weights).to(outputs.device)).sum() / n


def choose_updates(network: SketchNetwork, seed: int, step: int, *, frozen: bool = False) -> None:
    """Let the batch update the projection with probability `eta`, or not at all while it is `frozen`."""
    layer = network.projection
    if isinstance(layer, LearnableProjection):
        wanted = not frozen and (layer.eta >= 1 or bool(updates_projection(layer.eta, seed, step)[0]))
        if layer.weight.requires_grad != wanted:
            layer.requires_grad_(wanted)


def updates_projection(eta: float, seed: int, steps: int | np.ndarray) -> np.ndarray:
    """Whether each of the steps does."""
    return random.words(seed, random.STREAM_ETA, steps, 0)[:, 0] < eta * 2.0**32


def set_seed(network: SketchNetwork, seed: int, step: int) -> None:
    """Of torch's generator, anew in each step, so that a run can go on in any of them."""
    word = int(random.words(seed, random.STREAM_STEP, step, 0).view(np.uint64)[0, 0] >> np.uint64(1))
    torch.default_generator.manual_seed(word)  # torch.manual_seed takes milliseconds where there is no CUDA
    if network.device.type == "cuda":
        with torch.cuda.device(network.device):
            torch.cuda.manual_seed(word)
