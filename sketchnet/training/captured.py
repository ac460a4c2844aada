"""Training steps on a CUDA device. Rows lie on the card, sparse or projected; a step is captured once as a graph and
replayed, because launching its kernels one by one takes longer than running them.

Matrix products are in bfloat16, from copies that the optimiser writes of the weights in float32. All that changes from
step to step, row numbers, rates and keys of the dropout, is written for a whole epoch at a time into tensors from which
the step reads its own part.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from math import sqrt

import numpy as np
import torch
from torch import nn

from sketchnet import random
from sketchnet.data.batches import epoch_order, iterate_batches
from sketchnet.data.csr import CsrBatch
from sketchnet.kernels import backend
from sketchnet.kernels.registry import gpu_missing
from sketchnet.nn import SketchNetwork
from sketchnet.nn.dropout import Dropout
from sketchnet.nn.table import TableLayer, new_table
from sketchnet.normalisation import Moments
from sketchnet.training.config import TrainingConfig
from sketchnet.training.examples import Examples
from sketchnet.training.optimisers import LazyAdam, MomentumSGD
from sketchnet.training.rows import timed
from sketchnet.training.steps import PlainSteps, evaluate
from sketchnet.training.task import Task

_ROWS = 1 << 16  # brought to the card at a time
_SHARE = 0.5  # of the card's free memory that rows may take
_REPORT = 64  # steps between two looks at the loss: each waits for the card


def make_steps(network: SketchNetwork, task: Task, examples: Examples, config: TrainingConfig, budget: int, note):
    """Captured steps where they are possible, else plain ones."""
    kind = CapturedSteps if can_capture(network, task, examples, config) else PlainSteps
    return kind(network, task, examples, config, budget, note)


def can_capture(network: SketchNetwork, task: Task, examples: Examples, config: TrainingConfig) -> bool:
    """Whether the network is on a card that all its rows fit on, and is of a kind that this module knows."""
    settings, data = network.config, examples.data
    if network.device.type != "cuda" or gpu_missing() or task.kind == "multilabel":
        return False
    if settings.learn:
        known = settings.scheme == "count_sketch" and settings.eta == 1 and config.optimiser == "adamw"
    else:
        known = not settings.wide and settings.feature_dropout == 0
    return known and _size(settings, data) <= _SHARE * torch.cuda.mem_get_info(network.device)[0]


def _size(settings, data) -> float:
    if settings.learn:
        ids = 4 if settings.width < 2**31 else 8
        return data.n_entries * (4 + ids) + 8 * data.n_rows
    return data.n_rows * settings.n_components * 4


class CapturedSteps:
    """The same face as `PlainSteps`, and checkpoints that either can go on from."""

    def __init__(self, network: SketchNetwork, task: Task, examples: Examples, config: TrainingConfig, budget, note):
        self._network, self._task, self._config, self._device = network, task, config, network.device
        self._data, n = examples.data, examples.data.n_rows
        self._batch = min(config.batch_size, n)
        self._pool, self._orders = ThreadPoolExecutor(1), {}  # orders of rows are made an epoch ahead
        self._order_ahead(0)
        self.n_batches, self._steps = -(-n // config.batch_size), 0
        with torch.cuda.device(self._device):
            self._targets = task.batch(examples.targets, np.arange(n)).to(self._device)
            self._weights = None
            if examples.weights is not None:
                self._weights = self._tensor((examples.weights / examples.mean_weight).astype(np.float32))
            self._order = torch.zeros(n, dtype=torch.int64, device=self._device)
            self._rates = torch.zeros(self.n_batches, _RATES, device=self._device)
            self._keys = torch.zeros(self.n_batches, 2, dtype=torch.int64, device=self._device)
            self._at = torch.zeros((), dtype=torch.int64, device=self._device)
            self._sums = torch.zeros(2, dtype=torch.float64, device=self._device)
            self._layers = {name: layer for name, layer in network.named_modules() if isinstance(layer, TableLayer)}
            self._tables = {name: _Table(layer, self._device) for name, layer in self._layers.items()}
            self._bias_to_cuda()
            self._csr = self._rows = None
            if network.config.learn:
                self._csr = self._bring(examples.data)
            else:
                with timed("project", note):
                    self._project()
            kind = _Adam if config.optimiser == "adamw" else _Momentum
            self._optimiser = kind(network, config, self._tables)
            self._graph = self._capture()

    def _bias_to_cuda(self) -> None:
        if self._network.config.learn:
            bias = self._network.projection.bias
            bias.data = bias.data.to(self._device)

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)

    # -- rows

    def _upload(self, batch: CsrBatch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Checked CSR arrays on the card; offsets count from zero."""
        batch = self._network.columns(batch)
        ids = np.int32 if self._network.config.width < 2**31 else np.int64
        arrays = (batch.indptr - batch.indptr[0]).astype(np.int64), batch.indices.astype(ids), batch.values
        return tuple(self._tensor(array.astype(np.float32) if array is batch.values else array) for array in arrays)

    def _bring(self, data) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """All rows on the card."""
        parts = [self._upload(batch) for batch in iterate_batches(data, _ROWS, shuffle=False)]
        ends = np.cumsum([0, *(len(indices) for _, indices, _ in parts)])
        offsets = [indptr[:-1] + int(end) for (indptr, _, _), end in zip(parts, ends)]
        offsets.append(torch.tensor([int(ends[-1])], device=self._device))
        return (
            torch.cat(offsets),
            torch.cat([ids for _, ids, _ in parts]),
            torch.cat([values for _, _, values in parts]),
        )

    def _project(self) -> None:
        """All rows projected, and their moments taken."""
        from sketchnet.projection.on_device import project_on_device

        network, n = self._network, self._data.n_rows
        self._rows, done = torch.empty(n, network.config.n_components, device=self._device), 0
        for batch in iterate_batches(self._data, _ROWS, shuffle=False):
            columns = network.columns(batch)
            project_on_device(network.projection.operator, columns, out=self._rows[done : done + batch.n_rows])
            done += batch.n_rows
        if network.config.normalise in ("standard", "max_abs"):
            mean, squares, largest = (x.cpu().numpy() for x in backend("gpu").moments(self._rows))
            network.set_moments(Moments.of(n, mean, squares, largest))

    # -- a step

    def _capture(self) -> torch.cuda.CUDAGraph:
        """The step of a whole batch as a graph. Trying it first lets kernels compile and optimisers make room; what it
        changed is put back.
        """
        before = {name: tensor.clone() for name, tensor in self._network.state_dict().items()}
        self._network.train()
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
        self._network.load_state_dict(before)
        self._optimiser.forget()
        self._sums.zero_()
        return graph

    def _step(self, size: int) -> None:
        """Of the batch that `_at` points to, which has `size` rows."""
        at = self._at.view(1)
        first = self._at * self._config.batch_size
        rows = self._order.index_select(0, first + torch.arange(size, device=self._device))
        keys, rates = self._keys.index_select(0, at).view(-1), self._rates.index_select(0, at).view(-1)
        self._optimiser.zero_grad()
        outputs = self._outputs(rows, self._csr, keys)
        losses = self._task.losses(outputs.float(), self._targets.index_select(0, rows))
        if self._weights is not None:
            losses = losses * self._weights.index_select(0, rows)
        loss = losses.mean()
        loss.backward()
        self._optimiser.step(rates)
        for table in self._tables.values():
            table.step(rows, self._csr, rates)
        self._sums += torch.stack([loss.detach().double() * size, torch.full((), size, device=self._device).double()])
        self._at += 1

    def _outputs(self, rows: torch.Tensor, csr, keys: torch.Tensor | None) -> torch.Tensor:
        """Of rows of CSR arrays, or of the projected rows; without keys nothing is dropped."""
        network, settings = self._network, self._network.config
        rate = settings.feature_dropout if keys is not None else 0.0
        if settings.learn:
            table = self._tables["projection"]
            projected = _Sketch.apply(
                network.projection.bias, table, network.projection.operator, rows, csr, keys, rate
            )
        else:
            projected = self._rows.index_select(0, rows)
        outputs = self._dense_layers(projected, keys)
        if network.wide is not None:
            outputs = outputs.float() + _Product.apply(_anchor(outputs), self._tables["wide"], rows, csr, keys, rate)
        return outputs

    def _dense_layers(self, x: torch.Tensor, keys: torch.Tensor | None) -> torch.Tensor:
        network = self._network
        if network.config.normalise == "batch":
            x = network.norm(x)
        elif network.config.normalise != "none":
            x = (x - network.shift) * network.scale
        layers, number = list(network.layers), 0
        while layers:
            layer = layers.pop(0)
            if isinstance(layer, nn.ReLU) and layers and isinstance(layers[0], Dropout):
                dropout, number = layers.pop(0), number + 1
                x = _ReluDropout.apply(x, keys, number, dropout.p) if keys is not None else layer(x)
            elif isinstance(layer, nn.Linear) and keys is not None:
                x = nn.functional.linear(x.bfloat16(), *self._optimiser.copies(layer))
            else:
                x = layer(x)
        return x

    # -- the face

    def epoch(self, epoch: int, skip: int) -> Iterator[tuple[float, float]]:
        self._network.train()
        self._prepare(epoch, skip)
        n, size = self._data.n_rows, self._config.batch_size
        with torch.cuda.device(self._device):
            for number in range(skip, self.n_batches):
                rows = min(size, n - number * size)
                if rows == self._batch:
                    self._graph.replay()
                else:
                    self._step(rows)
                self._steps += 1
                wanted = number % _REPORT == _REPORT - 1 or number == self.n_batches - 1
                yield self.pending() if wanted else (0.0, 0.0)

    def _prepare(self, epoch: int, skip: int) -> None:
        """Write the epoch's order, rates and keys."""
        config, first = self._config, epoch * self.n_batches
        self._order_ahead(epoch)
        self._order.copy_(torch.from_numpy(self._orders.pop(epoch).result()))
        if epoch + 1 < config.epochs:
            self._order_ahead(epoch + 1)
        words = random.words(config.seed, random.STREAM_FEATURE_DROPOUT, first + np.arange(self.n_batches), 0)
        keys = words.view(np.uint64)
        keys[:, 0] |= np.uint64(1)
        self._keys.copy_(torch.from_numpy(keys.view(np.int64)))
        total = config.epochs * self.n_batches
        rates = [self._optimiser.rates(epoch, first + number, total) for number in range(self.n_batches)]
        self._rates.copy_(torch.tensor(rates))
        self._at.fill_(skip)

    def _order_ahead(self, epoch: int) -> None:
        def order():
            return np.concatenate(list(epoch_order(self._data, self._config.batch_size, seed=seed, epoch=epoch)))

        seed = self._config.seed
        if epoch not in self._orders:
            self._orders[epoch] = self._pool.submit(order)

    def pending(self) -> tuple[float, float]:
        loss, weight = self._sums.tolist()
        self._sums.zero_()
        return loss, weight

    def evaluate(self, examples: Examples) -> tuple[float, float]:
        self._network.eval()
        with torch.cuda.device(self._device):
            return evaluate(self._forward, self._task, examples)

    def _forward(self, batch: CsrBatch) -> torch.Tensor:
        if self._network.config.learn:
            rows = torch.arange(batch.n_rows, device=self._device)
            return self._outputs(rows, self._upload(batch), None)
        from sketchnet.projection.on_device import project_on_device

        operator = self._network.projection.operator
        return self._dense_layers(project_on_device(operator, self._network.columns(batch), device=self._device), None)

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
        self._pool.shutdown()
        for layer in self._layers.values():
            layer.weight.data = new_table(*layer.weight.shape).copy_(layer.weight.detach())
        if self._network.config.learn:
            self._network.projection.bias.data = self._network.projection.bias.data.cpu()
        self._graph = self._tables = self._optimiser = self._rows = self._csr = None


# -- sparse layers


class _Table:
    """The weights of a layer's columns on the card, with gradient and moments."""

    def __init__(self, layer: TableLayer, device: torch.device):
        layer.weight.data = layer.weight.data.to(device)
        self.weight = layer.weight.detach()
        self.gradient = torch.zeros_like(self.weight)
        self._moments = torch.zeros_like(self.weight), torch.zeros_like(self.weight)
        self.offset = None  # of its rates among those of a step; set by the optimiser

    def step(self, rows, csr, rates: torch.Tensor) -> None:
        mine = rates[self.offset : self.offset + 3]
        how = mine, LazyAdam._row_betas, LazyAdam._epsilon
        backend("gpu").adam_rows(rows, csr, self.gradient, self.weight, self._moments, *how)

    def forget(self) -> None:
        for tensor in (self.gradient, *self._moments):
            tensor.zero_()

    def all(self) -> torch.Tensor:
        """Weights and moments in rows, as `LazyAdam` keeps them."""
        return torch.cat([tensor.view(len(tensor), -1) for tensor in (self.weight, *self._moments)], dim=1)

    def load(self, rows: torch.Tensor) -> None:
        parts = rows.to(self.weight.device).chunk(3, dim=1)
        for tensor, part in zip((self.weight, *self._moments), parts):
            tensor.copy_(part.reshape(tensor.shape))


def _anchor(like: torch.Tensor) -> torch.Tensor:
    """Something that wants a gradient, so that autograd comes by where gradients are kept elsewhere."""
    return torch.zeros(1, device=like.device, requires_grad=True)


class _Sketch(torch.autograd.Function):
    @staticmethod
    def forward(ctx, bias, table, operator, rows, csr, keys, rate):
        out = torch.empty(len(rows), operator.k, device=bias.device)
        backend("gpu").sketch_forward(rows, csr, keys, rate, operator._key, table.weight, bias, out)
        ctx.kept = table, operator, rows, csr, keys, rate
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        table, operator, rows, csr, keys, rate = ctx.kept
        gradient = gradient.float().contiguous()
        backend("gpu").sketch_backward(rows, csr, keys, rate, operator._key, gradient, table.gradient)
        return gradient.sum(dim=0), None, None, None, None, None, None


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, anchor, table, rows, csr, keys, rate):
        out = torch.empty(len(rows), table.weight.shape[1], device=anchor.device)
        backend("gpu").wide_forward(rows, csr, keys, rate, table.weight, out)
        ctx.kept = table, rows, csr, keys, rate
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        table, rows, csr, keys, rate = ctx.kept
        backend("gpu").wide_backward(rows, csr, keys, rate, gradient.float().contiguous(), table.gradient)
        return None, None, None, None, None, None


class _ReluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, keys, number, rate):
        out = backend("gpu").relu_dropout(x.contiguous(), keys, number, rate)
        ctx.save_for_backward(out)
        ctx.rate = rate
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        (out,) = ctx.saved_tensors
        return backend("gpu").relu_dropout_backward(out, gradient.contiguous(), ctx.rate), None, None, None


# -- optimisers of the dense layers. Rates of a step: three numbers for these, then three for each table.

_RATES = 9


class _Dense:
    """The parameters that do not belong to columns, and copies in bfloat16 of those that products take."""

    def __init__(self, network: SketchNetwork, config: TrainingConfig, tables: dict[str, _Table]):
        self._config, self._tables = config, tables
        held = {id(layer.weight) for layer in network.modules() if isinstance(layer, TableLayer)}
        self._parameters = [p for p in network.parameters() if id(p) not in held]
        self._parameters.sort(key=lambda p: p.ndim <= 1)  # weights, then biases, as `optimisers.Optimiser` has them
        linear = [p for layer in network.layers if isinstance(layer, nn.Linear) for p in (layer.weight, layer.bias)]
        self._copies = {p: p.detach().bfloat16().requires_grad_() for p in linear}

    def copies(self, layer: nn.Linear) -> tuple[torch.Tensor, torch.Tensor]:
        return self._copies[layer.weight], self._copies[layer.bias]

    def zero_grad(self) -> None:
        for tensor in (*self._parameters, *self._copies.values()):
            tensor.grad = None

    def _gradients(self) -> Iterator[tuple]:
        """(parameter, its copy or None, its gradient)."""
        for p in self._parameters:
            copy = self._copies.get(p)
            yield p, copy, (p if copy is None else copy).grad

    def refresh(self) -> None:
        """Make the copies anew, when the weights were changed from outside."""
        with torch.no_grad():
            for p, copy in self._copies.items():
                copy.copy_(p)


class _Adam(_Dense):
    def __init__(self, network: SketchNetwork, config: TrainingConfig, tables: dict[str, _Table]):
        super().__init__(network, config, tables)
        self._moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in self._parameters]
        for number, table in enumerate(tables.values(), start=1):
            table.offset = 3 * number

    @torch.no_grad()
    def step(self, rates: torch.Tensor) -> None:
        for (p, copy, gradient), moments in zip(self._gradients(), self._moments):
            how = moments, rates, LazyAdam._betas, LazyAdam._epsilon, p.ndim > 1
            backend("gpu").adam_all(p, copy, gradient.contiguous(), *how)

    def rates(self, epoch: int, step: int, total: int) -> list[float]:
        config, factor = self._config, LazyAdam.factor(step / total)
        given = [(config.rate, LazyAdam._betas)]
        for name in self._tables:
            rate = config.wide_rate if name == "wide" else config.sparse_rate
            given.append((1.0 if rate is None else rate, LazyAdam._row_betas))
        found = []
        for rate, (beta1, beta2) in given:
            first, second = 1 - beta1 ** (step + 1), sqrt(1 - beta2 ** (step + 1))
            found += [rate * factor / first, 1 / second, rate * factor * config.l2]
        return found + [0.0] * (_RATES - len(found))

    def forget(self) -> None:
        self.refresh()
        for pair in self._moments:
            for tensor in pair:
                tensor.zero_()
        for table in self._tables.values():
            table.forget()

    def state(self, steps: int) -> dict[str, torch.Tensor]:
        """Under the names that torch's AdamW has for them."""
        tensors = {}
        for n, (first, second) in enumerate(self._moments):
            own = {"step": torch.tensor(float(steps)), "exp_avg": first, "exp_avg_sq": second}
            tensors |= {f"dense.{n}.{key}": value for key, value in own.items()}
        return tensors

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        self.refresh()
        for n, (first, second) in enumerate(self._moments):
            first.copy_(tensors[f"dense.{n}.exp_avg"])
            second.copy_(tensors[f"dense.{n}.exp_avg_sq"])


class _Momentum(_Dense):
    """v = momentum * v + gradient + l2 * w; w -= rate * v."""

    def __init__(self, network: SketchNetwork, config: TrainingConfig, tables: dict[str, _Table]):
        super().__init__(network, config, tables)
        self._velocities = [torch.zeros_like(p) for p in self._parameters]

    @torch.no_grad()
    def step(self, rates: torch.Tensor) -> None:
        for (p, copy, gradient), v in zip(self._gradients(), self._velocities):
            v.mul_(rates[1]).add_(gradient)
            if self._config.l2 and p.ndim > 1:
                v.add_(p, alpha=self._config.l2)
            p.addcmul_(v, rates[0], value=-1)
            if copy is not None:
                copy.copy_(p)

    def rates(self, epoch: int, step: int, total: int) -> list[float]:
        return [*MomentumSGD.rates(self._config, epoch), *[0.0] * (_RATES - 2)]

    def forget(self) -> None:
        self.refresh()
        for v in self._velocities:
            v.zero_()

    def state(self, steps: int) -> dict[str, torch.Tensor]:
        tensors = {f"dense.{n}.momentum_buffer": v for n, v in enumerate(self._velocities)}
        return tensors | {"epoch": torch.tensor(-1)}

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        self.refresh()
        for n, v in enumerate(self._velocities):
            v.copy_(tensors[f"dense.{n}.momentum_buffer"])
