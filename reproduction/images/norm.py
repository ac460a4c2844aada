"""Batch normalisation, rectifier and the sum of a residual block at once on a GPU, for autograd."""

from __future__ import annotations

import torch
from torch import nn

from reproduction.images.resnet import norm_and_relu
from sketchnet.kernels import gpu_missing


def can_fuse() -> bool:
    """Whether the kernels can run here."""
    return gpu_missing() is None


def fused_norm_and_relu(
    norm: nn.BatchNorm2d, x: torch.Tensor, gate: torch.Tensor | None = None, shortcut: torch.Tensor | None = None
) -> torch.Tensor:
    """As `resnet.norm_and_relu`, which also does what the kernels do not know: other modes and widths.

    It does not count batches, which only batch normalisation without a momentum would ask for.
    """
    if not norm.training or not _kernels().takes_channels(x.shape[1]):
        return norm_and_relu(norm, x, gate, shortcut)
    return _NormRelu.apply(x, norm.weight, norm.bias, shortcut, gate, norm)


def _kernels():
    """On first use: they need Triton."""
    from reproduction.images import norm_kernels

    return norm_kernels


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous(memory_format=torch.channels_last)


class _NormRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, shortcut, gate, norm):
        x, shortcut = _channels_last(x), None if shortcut is None else _channels_last(shortcut)
        running = norm.running_mean, norm.running_var
        out, saved = _kernels().norm_relu(x, weight, bias, *running, gate, shortcut, norm.momentum, norm.eps)
        ctx.save_for_backward(x, out, saved, weight, gate)
        ctx.added = shortcut is not None
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        x, out, saved, weight, gate = ctx.saved_tensors
        found = _kernels().norm_relu_backward(_channels_last(gradient), x, out, saved, weight, gate, ctx.added)
        return *found, None, None
