"""Layers of a network whose sparse rows lie on a CUDA device, for autograd: the kernels of `kernels.gpu.learning`."""

from __future__ import annotations

from typing import Any

import torch

from sketchnet.kernels import backend
from sketchnet.nn import LearnableProjection
from sketchnet.training.optimisers import LazyAdam


class Table:
    """The weights of a layer's columns on the GPU, with gradient and moments."""

    offset: Any
    outputs: Any

    def __init__(self, layer: Any, device: torch.device):
        # Where the scheme's hash does not say it: the output that each weight leads to.
        looked_up = isinstance(layer, LearnableProjection) and not layer.one_each
        self.outputs = torch.from_numpy(layer.outputs()).to(device) if looked_up else None
        layer.weight.data = layer.weight.data.to(device)
        self.weight = layer.weight.detach()
        self.gradient = torch.zeros_like(self.weight)
        self._moments = torch.zeros_like(self.weight), torch.zeros_like(self.weight)
        self.offset = None  # of its rates among those of a step; set by the optimiser

    def step(self, rows, csr, rates: torch.Tensor) -> None:
        mine = rates[self.offset : self.offset + 3]
        how = mine, LazyAdam.row_betas, LazyAdam.epsilon
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


class Sketch(torch.autograd.Function):
    @staticmethod
    def forward(ctx, bias, table, operator, rows, csr, keys, rate, gate):
        """`gate`, where there is one, is 0 in steps that leave the layer's weights alone, else 1."""
        out = torch.empty(len(rows), operator.k, device=bias.device)
        where = operator.key if table.outputs is None else table.outputs
        backend("gpu").sketch_forward(rows, csr, keys, rate, where, table.weight, bias, out)
        ctx.kept = table, where, rows, csr, keys, rate, gate
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        table, where, rows, csr, keys, rate, gate = ctx.kept
        gradient = gradient.float().contiguous()
        if gate is not None:
            gradient = gradient * gate
        backend("gpu").sketch_backward(rows, csr, keys, rate, where, gradient, table.gradient)
        return gradient.sum(dim=0), None, None, None, None, None, None, None


class BatchNormalised(torch.autograd.Function):
    """What `nn.BatchNorm` does in training, in bfloat16. It does not count batches, which nobody asks for."""

    @staticmethod
    def forward(ctx, x, weight, bias, norm):
        running = norm.running_mean, norm.running_var
        out, saved = backend("gpu").batch_norm(x, weight, bias, *running, norm.momentum, norm.eps, torch.bfloat16)
        ctx.save_for_backward(x, weight, saved)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        return *backend("gpu").batch_norm_backward(gradient.contiguous(), *ctx.saved_tensors), None


class ReluDropout(torch.autograd.Function):
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
