"""Optimisers whose steps can be captured: rates are read from the GPU, copies of the weights are written in bfloat16.

Rates of a step are three numbers for the dense layers, three for the weights of columns and three for the bias of a
projection.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import torch
from torch import nn

from sketchnet.kernels import backend
from sketchnet.nn import SketchNetwork
from sketchnet.nn.table import TableLayer
from sketchnet.training.config import TrainingConfig
from sketchnet.training.gpu_layers import Table
from sketchnet.training.optimisers import LazyAdam, MomentumSGD

RATES = 9
_OF_BIAS = 6
_SHORT = 1 << 16  # numbers: starting a kernel takes longer than working through them


class _Dense:
    """The parameters that do not belong to columns, and copies in bfloat16 of those that products take."""

    def __init__(self, network: SketchNetwork, config: TrainingConfig, tables: dict[str, Table], n_batches: int):
        self._config, self._tables = config, tables
        self._frozen = config.frozen_epochs * n_batches  # steps
        held = {id(layer.weight) for layer in network.modules() if isinstance(layer, TableLayer)}
        self._parameters = [p for p in network.parameters() if id(p) not in held]
        self._parameters.sort(key=lambda p: p.ndim <= 1)  # weights, then biases, as `optimisers.Optimiser` has them
        linear = [p for layer in network.layers if isinstance(layer, nn.Linear) for p in (layer.weight, layer.bias)]
        self._copies = {p: p.detach().bfloat16().requires_grad_() for p in linear}

    def copies(self, layer: nn.Linear) -> tuple[torch.Tensor, torch.Tensor]:
        return self._copies[layer.weight], self._copies[layer.bias]

    @property
    def leaves(self) -> list[torch.Tensor]:
        """What gradients are left at."""
        return [self._copies.get(p, p) for p in self._parameters]

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


class GpuAdam(_Dense):
    def __init__(self, network: SketchNetwork, config: TrainingConfig, tables: dict[str, Table], n_batches: int):
        super().__init__(network, config, tables, n_batches)
        self._moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in self._parameters]
        for number, table in enumerate(tables.values(), start=1):
            table.offset = 3 * number
        self._gated = network.projection.bias if network.config.learn else None
        self._side = torch.cuda.Stream(network.device)  # for short ones, beside the others

    @torch.no_grad()
    def step(self, rates: torch.Tensor, gate: torch.Tensor | None = None) -> None:
        """Where `gate` is 0, the bias of the projection and its moments stay. (Corrections of its moments count steps
        that `eta` leaves out; torch's AdamW, on the processor, does not count them.)
        """
        here = torch.cuda.current_stream()
        self._side.wait_stream(here)
        for (p, copy, gradient), moments in zip(self._gradients(), self._moments):
            with torch.cuda.stream(self._side if p.numel() < _SHORT else here):
                gated: list = [p, *moments] if gate is not None and p is self._gated else []
                before = [tensor.clone() for tensor in gated]
                mine = rates[_OF_BIAS:] if self._frozen and p is self._gated else rates
                how = moments, mine, LazyAdam.betas, LazyAdam.epsilon, p.ndim > 1
                backend("gpu").adam_all(p, copy, gradient.contiguous(), *how)
                for tensor, old in zip(gated, before):
                    assert gate is not None
                    tensor.copy_(torch.where(gate > 0, tensor, old))
        here.wait_stream(self._side)

    def rates(self, epoch: int, step: int, total: int) -> list[float]:
        config, factor = self._config, LazyAdam.factor(step / total)

        def three(rate: float, betas: tuple[float, float], steps: int) -> list[float]:
            first, second = 1 - betas[0] ** (steps + 1), sqrt(1 - betas[1] ** (steps + 1))
            return [rate * factor / first, 1 / second, rate * factor * config.l2]

        found = three(config.rate, LazyAdam.betas, step)
        for _ in self._tables:
            found += three(config.row_rate, LazyAdam.row_betas, step)
        found += [0.0] * (_OF_BIAS - len(found))
        return found + three(config.rate, LazyAdam.betas, self._since(step))

    def _since(self, steps: int) -> int:
        """Of so many steps, those since the projection is no longer frozen."""
        return max(0, steps - self._frozen)

    def forget(self) -> None:
        self.refresh()
        for pair in self._moments:
            for tensor in pair:
                tensor.zero_()
        for table in self._tables.values():
            table.forget()

    def state(self, steps: int) -> dict[str, torch.Tensor]:
        """Under the names that torch's AdamW has for them."""
        tensors: dict[str, torch.Tensor] = {}
        for n, (p, (first, second)) in enumerate(zip(self._parameters, self._moments)):
            taken = self._since(steps) if p is self._gated else steps
            own = {"step": torch.tensor(float(taken)), "exp_avg": first, "exp_avg_sq": second}
            tensors |= {f"dense.{n}.{key}": value for key, value in own.items()}
        return tensors

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        self.refresh()
        for n, (first, second) in enumerate(self._moments):
            if f"dense.{n}.step" in tensors:  # torch's AdamW has nothing of a bias that was never updated
                first.copy_(tensors[f"dense.{n}.exp_avg"])
                second.copy_(tensors[f"dense.{n}.exp_avg_sq"])


class GpuMomentum(_Dense):
    """v = momentum * v + gradient + l2 * w; w -= rate * v."""

    def __init__(self, network: SketchNetwork, config: TrainingConfig, tables: dict[str, Table], n_batches: int):
        super().__init__(network, config, tables, n_batches)
        self._velocities, self._epoch = [torch.zeros_like(p) for p in self._parameters], 0

    @torch.no_grad()
    def step(self, rates: torch.Tensor, gate: None = None) -> None:
        for (p, copy, gradient), v in zip(self._gradients(), self._velocities):
            v.mul_(rates[1]).add_(gradient)
            if self._config.l2 and p.ndim > 1:
                v.add_(p, alpha=self._config.l2)
            p.addcmul_(v, rates[0], value=-1)
            if copy is not None:
                copy.copy_(p)

    def rates(self, epoch: int, step: int, total: int) -> list[float]:
        self._epoch = epoch
        return [*MomentumSGD.rates(self._config, epoch), *[0.0] * (RATES - 2)]

    def forget(self) -> None:
        self.refresh()
        for v in self._velocities:
            v.zero_()

    def state(self, steps: int) -> dict[str, torch.Tensor]:
        tensors = {f"dense.{n}.momentum_buffer": v for n, v in enumerate(self._velocities)}
        return tensors | {"epoch": torch.tensor(self._epoch)}

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        self.refresh()
        for n, v in enumerate(self._velocities):
            v.copy_(tensors[f"dense.{n}.momentum_buffer"])
