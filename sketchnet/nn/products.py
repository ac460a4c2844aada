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
_ROWS = 64  # of which numbers of rows are multiples, where any may be asked for


def affine(x: torch.Tensor, matrix: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """x @ matrix + bias. Where a gradient is wanted, it is left to torch."""
    if _onednn_is_faster(x, matrix, bias) and _comes_again(len(x)):
        return _by_onednn(x, matrix, bias)
    return x @ matrix if bias is None else torch.addmm(bias, x, matrix)


def add_product(out: torch.Tensor, a: torch.Tensor, b: torch.Tensor, beta: float, alpha: float) -> torch.Tensor:
    """out = beta * out + alpha * (a @ b), in place; where beta is 0, whatever was in `out`."""
    if not _onednn_is_faster(a, b):
        return out.addmm_(a, b, beta=beta, alpha=alpha)
    if beta == 0:
        return torch.mul(_by_onednn(a, b), alpha, out=out)
    return (out if beta == 1 else out.mul_(beta)).add_(_by_onednn(a, b), alpha=alpha)


class Linear(nn.Linear):
    """An `nn.Linear` that learns as fast as the processor can."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        suits = self.bias is not None and _suits_onednn(x, self.weight.t()) and _comes_again(len(x))
        if not suits or torch.is_autocast_enabled("cpu"):
            return super().forward(x)
        return _Affine.apply(x, self.weight, self.bias)


class _Affine(torch.autograd.Function):
    @staticmethod
    def forward(x, weight, bias):
        return _by_onednn(x, weight.t(), bias)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx, gradient):
        # Gradients are on in here only if those of gradients are wanted: `_product` then leaves it all to torch.
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            _product(gradient, weight) if of_x else None,
            _transposed_product(gradient, x) if of_weight else None,
            gradient.sum(0) if of_bias else None,
        )


def _transposed_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a' b. The left factor of a product is copied if its rows do not lie in one piece: better the narrower one."""
    return _product(a.t(), b) if a.shape[1] <= b.shape[1] else _product(b.t(), a).t()


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _by_onednn(a, b) if _onednn_is_faster(a, b) else a @ b


def _by_onednn(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    bias = None if bias is None else bias.contiguous()
    return torch.ops.mkldnn._linear_pointwise(_packed(a), _packed(b).t(), bias, "none", [], "")


def _packed(x: torch.Tensor) -> torch.Tensor:
    """The same numbers, row by row or column by column: for others, such as expanded ones, oneDNN has slow loops."""
    return x if x.is_contiguous() or x.t().is_contiguous() else x.contiguous()


def _comes_again(rows: int) -> bool:
    """Whether so many rows can be expected often. oneDNN keeps what it wrote for a number of rows, a third of a
    megabyte each; steps of training have one or two such numbers, rows that are asked for without gradients any.
    """
    return torch.is_grad_enabled() or rows % _ROWS == 0


def _onednn_is_faster(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None) -> bool:
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in (a, b, bias)):
        return False  # its operator has no gradients
    return _suits_onednn(a, b)


def _suits_onednn(a: torch.Tensor, b: torch.Tensor) -> bool:
    """By kinds and sizes alone, and the processor: a choice by trial would change the last digits from run to run."""
    for x in (a, b):
        if x.dtype != torch.float32 or x.device.type != "cpu" or x.layout != torch.strided or x.ndim != 2:
            return False
    sizes = (*a.shape, b.shape[1])
    if a.shape[1] != b.shape[0] or math.prod(sizes) < _WORTH or min(sizes) < _NARROWEST:
        return False
    return bool(torch.backends.mkldnn.enabled) and _mkl_holds_back()


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
