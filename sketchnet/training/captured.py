"""Training steps on a CUDA device. A step is captured once as a graph and replayed: launching its kernels one by one
would take longer than running them.

Matrix products are in bfloat16, from copies that the optimiser writes of the weights in float32. All that changes from
step to step, row numbers, rates and keys of the dropout, is written for a whole epoch at a time into tensors from which
the step reads its own part.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
import torch
from torch import nn

from sketchnet import random
from sketchnet.data.csr import CsrBatch
from sketchnet.kernels.registry import gpu_missing
from sketchnet.nn import NetworkConfig, SketchNetwork
from sketchnet.nn.dropout import Dropout
from sketchnet.nn.table import TableLayer, copy_table, new_table
from sketchnet.training.config import TrainingConfig
from sketchnet.training.examples import Examples
from sketchnet.training.gpu_layers import BatchNormalised, ReluDropout, Sketch, Table
from sketchnet.training.gpu_optimisers import RATES, GpuAdam, GpuMomentum
from sketchnet.training.gpu_rows import make_rows, upload
from sketchnet.training.processes import Processes
from sketchnet.training.steps import PlainSteps, Steps, evaluate, updates_projection
from sketchnet.training.task import Task

_SHARE = 0.8  # of the GPU's free memory that rows and tables may take
_LEAST = 1 << 31  # bytes to spare for rows that come in windows, and for what steps compute
_REPORT = 64  # steps between two looks at the loss: each waits for the GPU


def make_steps(
    network: SketchNetwork, task: Task, examples: Examples, config, budget: int, note, team: Processes
) -> Steps:
    """Captured steps where they are possible, else plain ones."""
    if not team.any(not can_capture(network, task, config)):
        # Others may take the GPU's memory in the meantime. In a team, one process alone could not go another way.
        with suppress(torch.cuda.OutOfMemoryError) if team.alone else nullcontext():
            return CapturedSteps(network, task, examples, config, _room(network), note, team)
    return PlainSteps(network, task, examples, config, budget, note, team)


def can_capture(network: SketchNetwork, task: Task, config: TrainingConfig) -> bool:
    """Whether the network is of a kind that this module knows, on a GPU that it fits on."""
    if network.device.type != "cuda" or gpu_missing(network.device.index) or not is_known(network.config, task, config):
        return False
    torch.cuda.empty_cache()  # what torch keeps for later is free too
    return _room(network) >= _LEAST


def _room(network: SketchNetwork) -> float:
    """Bytes for rows on the GPU, beside tables with gradient and moments, once more while the step is captured, and
    thrice when they are saved.
    """
    settings = network.config
    tables = 0
    if settings.learn:
        tables = 9 * 4 * len(network.projection.weight)
    return _SHARE * torch.cuda.mem_get_info(network.device)[0] - tables


def is_known(settings: NetworkConfig, task: Task, config: TrainingConfig) -> bool:
    """Whether steps of such networks can be captured."""
    if task.kind == "multilabel":
        return False
    if settings.learn:
        # Li's layer takes rows whose ids are those of its weights, but dropout is of columns.
        of_weights = settings.scheme != "count_sketch"
        return config.optimiser == "adamw" and not (of_weights and settings.feature_dropout > 0)
    return settings.feature_dropout == 0


class CapturedSteps(Steps):
    """The steps of `PlainSteps` on a GPU, with checkpoints that either can go on from."""

    _rows: Any  # these four from the start to `close`
    _tables: Any
    _optimiser: Any
    _graph: Any

    def __init__(
        self,
        network: SketchNetwork,
        task: Task,
        examples: Examples,
        config: TrainingConfig,
        room: float,
        note,
        team: Processes,
    ):
        """Rows may take `room` bytes on the GPU."""
        self._network, self._task, self._config, self._device = network, task, config, network.device
        self._team = team
        self._n, self._steps = examples.data.n_rows, 0
        self._layers = {name: layer for name, layer in network.named_modules() if isinstance(layer, TableLayer)}
        self._rows = None
        try:
            with torch.cuda.device(self._device):
                self._fill(examples, room, note)
        except BaseException:
            self.close()  # weights must not stay on the GPU
            raise

    def _fill(self, examples: Examples, room: float, note) -> None:
        """Take all that steps need to the GPU."""
        network = self._network
        self._rows = make_rows(network, examples.data, self._config, room, note)
        self.n_batches, self._batch = self._rows.n_batches, self._rows.batch
        self._targets, self._weights = self._task.batch(examples.targets, np.arange(self._n)).to(self._device), None
        if examples.weights is not None:
            weights = (examples.weights / examples.mean_weight).astype(np.float32)
            self._weights = torch.from_numpy(weights).to(self._device)
        self._rates = torch.zeros(self.n_batches, RATES, device=self._device)
        self._keys = torch.zeros(self.n_batches, 2, dtype=torch.int64, device=self._device)
        self._gates = None  # whether steps update the projection, where not all of them do
        if network.config.learn and (network.config.eta < 1 or self._config.frozen_epochs):
            self._gates = torch.zeros(self.n_batches, 1, device=self._device)
        self._at = torch.zeros((), dtype=torch.int64, device=self._device)
        self._loss, self._seen = torch.zeros((), dtype=torch.float64, device=self._device), 0
        self._tables = {name: Table(layer, self._device) for name, layer in self._layers.items()}
        if network.config.learn:
            network.projection.bias.data = network.projection.bias.data.to(self._device)
        kind = GpuAdam if self._config.optimiser == "adamw" else GpuMomentum
        self._optimiser = kind(network, self._config, self._tables, self.n_batches)
        self._graph = self._capture()

    # -- a step

    def _capture(self) -> torch.cuda.CUDAGraph:
        """The step of a whole batch as a graph. Trying it first lets kernels compile and optimisers make room; what it
        changed is put back.
        """
        before = {name: tensor.clone() for name, tensor in self._network.state_dict().items()}
        self._network.train()
        try:
            with self._team.training(self._network):
                return self._record()
        finally:
            self._network.load_state_dict(before)
            self._optimiser.forget()
            self._loss.zero_()

    def _record(self) -> torch.cuda.CUDAGraph:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self._step(self._batch)
                self._at.zero_()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step(self._batch)
        return graph

    def _step(self, size: int) -> None:
        """Of the batch that `_at` points to, which has `size` rows."""
        at = self._at.view(1)
        rows, places = (x.index_select(0, at).view(-1)[:size] for x in (self._rows.order, self._rows.places))
        mine = self._team.take(size)
        keys, rates = self._keys.index_select(0, at).view(-1), self._rates.index_select(0, at).view(-1)
        self._optimiser.zero_grad()
        gate = None if self._gates is None else self._gates.index_select(0, at).view(-1)
        outputs = self._outputs(places[mine], self._rows.csr, keys, gate)
        losses = self._task.losses(outputs.float(), self._targets[rows[mine]])
        if self._weights is not None:
            losses = losses * self._weights.index_select(0, rows[mine])
        loss = losses.sum() / size
        loss.backward()
        self._team.add_gradients(self._optimiser.leaves)
        for table in self._tables.values():
            self._team.sum(table.gradient)
        self._optimiser.step(rates, gate)
        for table in self._tables.values():
            table.step(places, self._rows.csr, rates)
        self._loss.add_(loss.detach(), alpha=size)
        self._at += 1

    def _outputs(self, rows: torch.Tensor, csr, keys: torch.Tensor | None, gate=None) -> torch.Tensor:
        """Of rows of CSR arrays, or of the projected rows; without keys nothing is dropped."""
        network, settings = self._network, self._network.config
        rate = settings.feature_dropout if keys is not None else 0.0
        if settings.learn:
            layer = network.projection
            x = Sketch.apply(layer.bias, self._tables["projection"], layer.operator, rows, csr, keys, rate, gate)
        else:
            x = self._rows.projected.index_select(0, rows)
        once = not settings.learn and settings.normalise != "batch"  # when they came
        return self._hidden(x if once else self._normalised(x), keys)

    def _normalised(self, x: torch.Tensor) -> torch.Tensor:
        network = self._network
        if network.config.normalise == "batch":
            norm = network.norm
            if norm.training and norm.share is None and len(x) > 1:
                return BatchNormalised.apply(x, norm.weight, norm.bias, norm)
            return norm(x)
        return x if network.config.normalise == "none" else (x - network.shift) * network.scale

    def _hidden(self, x: torch.Tensor, keys: torch.Tensor | None) -> torch.Tensor:
        layers, number = list(self._network.layers), 0
        while layers:
            layer = layers.pop(0)
            if isinstance(layer, nn.ReLU) and layers and isinstance(layers[0], Dropout):
                dropout, number = layers.pop(0), number + 1
                x = ReluDropout.apply(x, keys, number, dropout.p) if keys is not None else layer(x)
            elif isinstance(layer, nn.Linear) and keys is not None:
                x = nn.functional.linear(x.bfloat16(), *self._optimiser.copies(layer))
            else:
                x = layer(x)
        return x

    # -- the face

    def epoch(self, epoch: int, skip: int) -> Iterator[tuple[float, float]]:
        self._network.train()
        self._prepare(epoch, skip)
        with torch.cuda.device(self._device):
            for first, stop in self._rows.windows(epoch, skip):
                for number in range(first, stop):
                    self._advance(min(self._batch, self._n - number * self._batch))
                    wanted = number % _REPORT == _REPORT - 1 or number == self.n_batches - 1
                    yield self.pending() if wanted else (0.0, 0.0)

    def _advance(self, n_rows: int) -> None:
        if n_rows == self._batch:
            self._graph.replay()
        else:
            self._step(n_rows)
        self._steps, self._seen = self._steps + 1, self._seen + n_rows

    def _prepare(self, epoch: int, skip: int) -> None:
        """Write the epoch's rates and keys."""
        config, first = self._config, epoch * self.n_batches
        # Each process has rows of its own, so it drops units and features by numbers of its own.
        numbers, block = first + np.arange(self.n_batches), self._team.rank
        words = random.words(config.seed, random.STREAM_FEATURE_DROPOUT, numbers, block)
        keys = words.view(np.uint64)
        keys[:, 0] |= np.uint64(1)
        self._keys.copy_(torch.from_numpy(keys.view(np.int64)))
        total = config.epochs * self.n_batches
        rates = [self._optimiser.rates(epoch, first + number, total) for number in range(self.n_batches)]
        self._rates.copy_(torch.tensor(rates))
        if self._gates is not None:
            updates = updates_projection(self._network.config.eta, config.seed, numbers)
            updates &= epoch >= config.frozen_epochs
            self._gates.copy_(torch.from_numpy(updates)[:, None])
        self._at.fill_(skip)

    def pending(self) -> tuple[float, float]:
        loss, weight = float(self._team.sum(self._loss)), float(self._seen)
        self._loss.zero_()
        self._seen = 0
        return loss, weight

    def evaluate(self, examples: Examples) -> tuple[float, float]:
        self._network.eval()
        with torch.cuda.device(self._device):
            return evaluate(self._forward, self._task, examples, self._team)

    def _forward(self, batch: CsrBatch) -> torch.Tensor:
        if self._network.config.learn:
            rows = torch.arange(batch.n_rows, device=self._device)
            return self._outputs(rows, upload(self._network, batch), None)
        from sketchnet.projection.on_device import project_on_device

        operator = self._network.projection.operator
        projected = project_on_device(operator, self._network.columns(batch), device=self._device)
        return self._hidden(self._normalised(projected), None)

    def state(self) -> dict[str, torch.Tensor]:
        tensors = {"steps": torch.tensor(self._steps), **self._optimiser.state(self._steps)}
        return tensors | {f"sparse.{name}": table.all() for name, table in self._tables.items()}

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        self._steps = int(tensors["steps"])
        self._optimiser.load_state(tensors)
        for name, table in self._tables.items():
            table.load(tensors[f"sparse.{name}"])

    def close(self) -> None:
        """Bring the weights of columns back to where the others expect them."""
        if self._rows is not None:
            self._rows.close()
        for layer in self._layers.values():
            layer.weight.data = copy_table(layer.weight.detach().cpu(), new_table(*layer.weight.shape))
        if self._network.config.learn:
            self._network.projection.bias.data = self._network.projection.bias.data.cpu()
        self._graph = self._tables = self._optimiser = self._rows = None
