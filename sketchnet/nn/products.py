"""Dense products on the processor, by the one of torch's two libraries that uses its vector units.

torch leaves products in float32 to MKL, which runs AVX2 code on processors that Intel did not make, even where they
have AVX-512. oneDNN, which torch carries for convolutions, writes its code for the vector units that it finds: there
it is twice as fast (`benchmarks/dense.py`).
"""

from __future__ import annotations

import math
import platform
from functools import cache
from pathlib import Path

import torch
from torch import nn

_WORTH = 2**22  # multiplications: fewer take less time than oneDNN needs to begin
_NARROWEST = 16  # of rows and columns: it has no good code for single ones, and for some none


def affine(x: torch.Tensor, matrix: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """x @ matrix + bias, without gradients."""
    if _onednn_is_faster(x, matrix):
        return _by_onednn(x, matrix, bias)
    return x @ matrix if bias is None else torch.addmm(bias, x, matrix)


def add_product(out: torch.Tensor, a: torch.Tensor, b: torch.Tensor, beta: float, alpha: float) -> torch.Tensor:
    """out = beta * out + alpha * (a @ b), in place, without gradients."""
    if _onednn_is_faster(a, b):
        return (out.mul_(beta) if beta != 1 else out).add_(_by_onednn(a, b), alpha=alpha)
    return out.addmm_(a, b, beta=beta, alpha=alpha)


class Linear(nn.Linear):
    """An `nn.Linear` that learns as fast as the processor can."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.bias is None or x.ndim != 2 or not _onednn_is_faster(x, self.weight.t()):
            return super().forward(x)
        return _Affine.apply(x, self.weight, self.bias)


class _Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return _by_onednn(x, weight.t(), bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            _by_onednn(gradient, weight) if of_x else None,
            _transposed_product(gradient, x) if of_weight else None,
            gradient.sum(0) if of_bias else None,
        )


def _transposed_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a' b. The left factor of a product is copied if its rows do not lie in one piece: better the narrower one."""
    if a.shape[1] <= b.shape[1]:
        return _by_onednn(a.t(), b)
    return _by_onednn(b.t(), a).t()


def _by_onednn(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    return torch.ops.mkldnn._linear_pointwise(_packed(a), _packed(b).t(), bias, "none", [], "")


def _packed(x: torch.Tensor) -> torch.Tensor:
    """The same numbers, row by row or column by column: for others, such as expanded ones, oneDNN has slow loops."""
    return x if x.is_contiguous() or x.t().is_contiguous() else x.contiguous()


def _onednn_is_faster(a: torch.Tensor, b: torch.Tensor) -> bool:
    """By the sizes and the processor alone: a choice by trial would change the last digits from run to run."""
    if a.dtype != torch.float32 or b.dtype != torch.float32 or a.device.type != "cpu":
        return False
    sizes = (*a.shape, b.shape[1])
    return math.prod(sizes) >= _WORTH and min(sizes) >= _NARROWEST and _mkl_holds_back()


@cache
def _mkl_holds_back() -> bool:
    """Whether the processor has vector units that MKL leaves alone, and torch has the operator that does not.

    torch's own compiler calls that operator for the same reason, but does not promise it: where it is missing, all goes
    through MKL.
    """
    wide = torch.backends.cpu.get_cpu_capability() == "AVX512"
    libraries = torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()
    return wide and libraries and hasattr(torch.ops.mkldnn, "_linear_pointwise") and _maker() == "AuthenticAMD"


def _maker() -> str:
    """The processor's maker, as it calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # elsewhere than on Linux
        return platform.processor().rpartition(" ")[2]
    return next((line.rpartition(" ")[2] for line in lines if line.startswith("vendor_id")), "")
