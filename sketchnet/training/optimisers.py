"""Optimisers for networks whose first weights belong to millions of columns.

Dense parameters go to torch.optim. Row-sparse gradients (of `LearnableProjection`) are applied by kernels that touch
only the rows of the batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from math import cos, pi, prod, sqrt

import numpy as np
import torch

from sketchnet.errors import InputError
from sketchnet.kernels import backend
from sketchnet.nn import SketchNetwork
from sketchnet.nn.table import TableLayer, copy_table, distinct_gradient, new_table, rows_of
from sketchnet.training.config import TrainingConfig

_WARM_UP = 0.05  # of all steps
_ALL = 1 << 20  # rows brought up to date at a time
# Steps that a row may be late. A row's own step is a number of float32, exact to 2**24, and for each there is a matrix.
_LATEST = 1 << 16


def make_optimiser(network: SketchNetwork, config: TrainingConfig) -> Optimiser:
    return (MomentumSGD if config.optimiser == "sgd" else LazyAdam)(network, config)


class Optimiser(ABC):
    """`schedule` says where in training we are, then `step` applies the gradients that `backward` left."""

    def __init__(self, network: SketchNetwork, config: TrainingConfig):
        self.config = config
        self._layers = {name: layer for name, layer in network.named_modules() if isinstance(layer, TableLayer)}
        tables = {id(layer.weight) for layer in self._layers.values()}
        self.parameters = list(network.parameters())
        dense = [p for p in self.parameters if id(p) not in tables]
        groups = [
            {"params": [p for p in dense if p.ndim > 1], "weight_decay": config.l2},
            {"params": [p for p in dense if p.ndim <= 1], "weight_decay": 0.0},
        ]
        self._dense = self._make_dense(groups)
        for layer in self._layers.values():
            self._lengthen(layer)
        self.steps = 0
        self.shared = False  # whether gradients come from other processes too

    @abstractmethod
    def _make_dense(self, groups: list[dict]) -> torch.optim.Optimizer: ...

    @staticmethod
    @abstractmethod
    def _kept(width: int) -> int:
        """How many numbers are kept behind the `width` weights of a row."""

    @abstractmethod
    def schedule(self, epoch: int, fraction: float | None) -> None:
        """Set rates for a step that comes after `epoch` whole epochs, and `fraction` of training, if it has an end."""

    @abstractmethod
    def _update(self, name: str, rows: np.ndarray, gradient: np.ndarray) -> None: ...

    def _lengthen(self, layer: TableLayer) -> None:
        """Make room behind the weights of each row: all that a step needs of a row lies together."""
        if layer.weight.dtype != torch.float32:
            raise InputError(f"weights of columns are of {layer.weight.dtype}; sketchnet's optimisers take float32")
        layer.catch_up()  # of another optimiser's updates
        weights, width = layer.weight.detach(), prod(layer.weight.shape[1:])
        table = new_table(len(weights), width + self._kept(width))
        layer.weight.data = copy_table(weights, table[:, :width] if weights.ndim > 1 else table[:, 0])

    def _table(self, name: str) -> np.ndarray:
        """A layer's rows: weights, and what is kept behind them."""
        return rows_of(self._layers[name].weight)

    def step(self) -> None:
        self.steps += 1
        self._dense.step()
        for name, layer in self._layers.items():
            if layer.weight.grad is not None:
                found = distinct_gradient(layer.weight)
                rows, gradient = found._indices().numpy()[0], found._values().numpy()
                self._update(name, rows, gradient.reshape(len(rows), prod(layer.weight.shape[1:])))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """`set_to_none` is what torch's optimisers are asked; rows of a gradient cannot be kept as zeros."""
        for parameter in self.parameters:  # torch's optimisers do the same, but take ten times as long
            parameter.grad = None

    def settle(self) -> None:  # noqa: B027 (most optimisers are never late)
        """Bring all weights up to date, where updates are late."""

    def close(self) -> None:
        """Leave the network to others, with all weights up to date and nothing beside them."""
        self.settle()
        for layer in self._layers.values():
            layer.late = None
            layer.weight.data = copy_table(layer.weight.detach(), new_table(*layer.weight.shape))

    def state(self) -> dict[str, torch.Tensor]:
        """All that must be saved, beside the network, to go on as if nothing had happened."""
        tensors = {"steps": torch.tensor(self.steps)}
        for number, state in self._dense.state_dict()["state"].items():
            for key, value in state.items():
                if value is not None:
                    tensors[f"dense.{number}.{key}"] = torch.as_tensor(value)
        tensors |= {f"sparse.{name}": torch.from_numpy(self._table(name)) for name in self._layers}
        return tensors

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        self.steps = int(tensors["steps"])
        state: dict[int, dict] = {}
        for full_name, tensor in tensors.items():
            kind, _, rest = full_name.partition(".")
            if kind == "dense":
                number, _, key = rest.partition(".")
                state.setdefault(int(number), {})[key] = tensor
            elif kind == "sparse":
                self._table(rest)[:] = tensor.numpy()
        self._dense.load_state_dict({**self._dense.state_dict(), "state": state})


class LazyAdam(Optimiser):
    """AdamW; for tables of weights its lazy form: rows that a batch does not use keep weights and moments."""

    betas, epsilon = (0.9, 0.999), 1e-8
    # A row that is used for the first time, late in training, moves by rate * (1 - beta1) / sqrt(1 - beta2): once.
    row_betas = (0.9, 0.99)
    _factor = 1.0  # of the rates, until `schedule` has another

    def _make_dense(self, groups):
        return torch.optim.AdamW(groups, lr=self.config.rate, betas=self.betas, eps=self.epsilon, fused=True)

    @staticmethod
    def _kept(width):
        return 2 * width

    @staticmethod
    def factor(fraction: float) -> float:
        """Of the rates, after a fraction of training."""
        rising, falling = fraction / _WARM_UP, (1 + cos(pi * (fraction - _WARM_UP) / (1 - _WARM_UP))) / 2
        return rising if fraction < _WARM_UP else falling

    def schedule(self, epoch, fraction):
        factor = 1.0 if fraction is None else self.factor(fraction)
        for group in self._dense.param_groups:
            group["lr"] = self.config.rate * factor
        self._factor = factor

    def _update(self, name, rows, gradient):
        (beta1, beta2), rate = self.row_betas, self.config.row_rate * self._factor
        first_correction = 1 / (1 - beta1**self.steps)
        second_correction = 1 / sqrt(1 - beta2**self.steps)
        backend().adam_step(
            self._table(name), rows, gradient, rate * first_correction, beta1, beta2, self.epsilon,
            second_correction, rate * self.config.l2,
        )  # fmt: skip


class MomentumSGD(Optimiser):
    """v = momentum * v + gradient + l2 * w; w -= rate * v, for every weight at every step.

    A row that no batch uses for some steps has a gradient of zero in them, so (w, v) is multiplied by the same 2 x 2
    matrix each time. Its powers are kept, and a row is brought up to date when it is read. Rates change between epochs
    only; then, and after `_LATEST` steps, all rows are brought up to date. Steps in which `eta` leaves the projection
    alone do not count for it.
    """

    def __init__(self, network, config):
        super().__init__(network, config)
        self._now = dict.fromkeys(self._layers, 0)
        self._powers = {name: np.eye(2).reshape(1, 4) for name in self._layers}
        self._epoch = -1
        for name, layer in self._layers.items():
            layer.late = partial(self._read, name)
        self._set_rates(0)

    def _make_dense(self, groups):
        return _Momentum(groups)

    @staticmethod
    def _kept(width):
        return width + 1

    def schedule(self, epoch, fraction):
        if epoch == self._epoch:
            return
        self.settle()
        self._set_rates(epoch)

    @staticmethod
    def rates(config: TrainingConfig, epoch: int) -> tuple[float, float]:
        """(rate, momentum) after so many epochs."""
        low, high = config.momentum
        return config.rate * config.decay**epoch, low + (high - low) * min(1.0, 2 * epoch / config.epochs)

    def _set_rates(self, epoch: int) -> None:
        config, self._epoch = self.config, epoch
        self._rate, self._momentum = self.rates(config, epoch)
        for group in self._dense.param_groups:
            group["lr"], group["momentum"] = self._rate, self._momentum
        momentum, l2 = self._momentum, config.l2
        self._matrices = {}
        for name in self._layers:
            rate = self._rate * self.config.row_rate
            self._matrices[name] = np.array([[1 - rate * l2, -rate * momentum], [l2, momentum]])

    def state(self):
        # Late rows are saved as late as they are: bringing them up to date here would round where others do not.
        late = {f"late.{name}": torch.tensor(now) for name, now in self._now.items()}
        return {**super().state(), **late, "epoch": torch.tensor(self._epoch)}

    def load_state(self, tensors):
        super().load_state(tensors)
        self._now = {name: int(tensors[f"late.{name}"]) for name in self._now}
        self._set_rates(int(tensors["epoch"]))

    def settle(self):
        for name, layer in self._layers.items():
            if self._now[name] == 0:
                continue
            for start in range(0, len(layer.weight), _ALL):
                self._read(name, np.arange(start, min(len(layer.weight), start + _ALL)))
            self._table(name)[:, -1] = 0
            self._now[name], self._powers[name] = 0, np.eye(2).reshape(1, 4)

    def _read(self, name: str, rows: np.ndarray) -> np.ndarray:
        now, powers = self._now[name], self._powers[name]
        if len(powers) <= now:
            self._powers[name] = powers = _more_powers(powers, self._matrices[name], now)
        return backend().momentum_read(self._table(name), rows, now, powers)

    def _update(self, name, rows, gradient):
        if self.shared:
            self._read(name, rows)  # those that other processes have in their shares were not read here
        if self._now[name] >= _LATEST:
            self.settle()
        self._now[name] += 1
        backend().momentum_step(
            self._table(name), rows, gradient, self._now[name],
            self._rate * self.config.row_rate, self._momentum, self.config.l2,
        )  # fmt: skip


class _Momentum:
    """What torch.optim.SGD does, with its face, in a tenth of its time for a few small tensors."""

    def __init__(self, groups: list[dict]):
        self.param_groups = groups
        self._velocities = {p: torch.zeros_like(p) for group in groups for p in group["params"]}

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    v = self._velocities[p].mul_(group["momentum"]).add_(p.grad)
                    if group["weight_decay"]:
                        v.add_(p, alpha=group["weight_decay"])
                    p.add_(v, alpha=-group["lr"])

    def state_dict(self) -> dict:
        return {"state": {n: {"momentum_buffer": v} for n, v in enumerate(self._velocities.values())}}

    def load_state_dict(self, content: dict) -> None:
        for n, velocity in enumerate(self._velocities.values()):
            velocity.copy_(content["state"][n]["momentum_buffer"])


def _more_powers(powers: np.ndarray, matrix: np.ndarray, now: int) -> np.ndarray:
    """Row m is matrix**m; at least `now` + 1 rows, and some ahead."""
    more = [powers[-1].reshape(2, 2)]
    for _ in range(now + 256 - len(powers)):
        more.append(matrix @ more[-1])
    return np.concatenate([powers, np.array(more[1:]).reshape(-1, 4)])
