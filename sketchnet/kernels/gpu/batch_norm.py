"""Batch normalisation of dense rows in training: each column by the moments of the batch."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_COLUMNS = 8  # that a program normalises


@triton.jit
def _tile(first, column, n, k, ROWS: tl.constexpr):
    """The places of some rows' numbers, and which of them there are."""
    row = first + tl.arange(0, ROWS)
    return row.to(tl.int64)[:, None] * k + column[None, :], (row < n)[:, None] & (column < k)[None, :]


@triton.jit(do_not_specialize=["n", "k"])
def _batch_norm(
    x, weight, bias, running_mean, running_var, momentum, epsilon, out, saved, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < k
    total, squares = tl.zeros((COLUMNS,), tl.float32), tl.zeros((COLUMNS,), tl.float32)
    for first in range(0, n, ROWS):
        at, there = _tile(first, column, n, k, ROWS)
        total += tl.sum(tl.load(x + at, mask=there, other=0.0), axis=0)
    mean = total / n
    for first in range(0, n, ROWS):
        at, there = _tile(first, column, n, k, ROWS)
        centred = tl.where(there, tl.load(x + at, mask=there, other=0.0) - mean[None, :], 0.0)
        squares += tl.sum(centred * centred, axis=0)
    inverse = 1 / tl.sqrt(squares / n + epsilon)
    tl.store(saved + column, mean, mask=inside)
    tl.store(saved + k + column, inverse, mask=inside)
    before = tl.load(running_mean + column, mask=inside)
    tl.store(running_mean + column, before + momentum * (mean - before), mask=inside)
    before = tl.load(running_var + column, mask=inside)
    tl.store(running_var + column, before + momentum * (squares / (n - 1) - before), mask=inside)
    factor = tl.load(weight + column, mask=inside, other=0.0) * inverse
    shift = tl.load(bias + column, mask=inside, other=0.0)
    for first in range(0, n, ROWS):
        at, there = _tile(first, column, n, k, ROWS)
        centred = tl.load(x + at, mask=there, other=0.0) - mean[None, :]
        tl.store(out + at, (centred * factor[None, :] + shift[None, :]).to(out.dtype.element_ty), mask=there)


@triton.jit(do_not_specialize=["n", "k"])
def _batch_norm_backward(
    gradient, x, weight, saved, d_x, d_weight, d_bias, n, k, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < k
    mean = tl.load(saved + column, mask=inside, other=0.0)
    inverse = tl.load(saved + k + column, mask=inside, other=0.0)
    total, products = tl.zeros((COLUMNS,), tl.float32), tl.zeros((COLUMNS,), tl.float32)
    for first in range(0, n, ROWS):
        at, there = _tile(first, column, n, k, ROWS)
        d = tl.load(gradient + at, mask=there, other=0.0).to(tl.float32)
        normal = (tl.load(x + at, mask=there, other=0.0) - mean[None, :]) * inverse[None, :]
        total += tl.sum(d, axis=0)
        products += tl.sum(d * normal, axis=0)
    tl.store(d_weight + column, products, mask=inside)
    tl.store(d_bias + column, total, mask=inside)
    factor = tl.load(weight + column, mask=inside, other=0.0) * inverse
    for first in range(0, n, ROWS):
        at, there = _tile(first, column, n, k, ROWS)
        d = tl.load(gradient + at, mask=there, other=0.0).to(tl.float32)
        normal = (tl.load(x + at, mask=there, other=0.0) - mean[None, :]) * inverse[None, :]
        d = (d - (total / n)[None, :] - normal * (products / n)[None, :]) * factor[None, :]
        tl.store(d_x + at, d, mask=there)


def _cut(x: torch.Tensor) -> tuple[tuple[int], dict]:
    """A program takes all rows of a few columns: whole sectors of memory, and a batch stays in its registers."""
    rows = min(1024, triton.next_power_of_2(len(x)))
    return (triton.cdiv(x.shape[1], _COLUMNS),), {"ROWS": rows, "COLUMNS": _COLUMNS, "num_warps": 8}


def batch_norm(x, weight, bias, running_mean, running_var, momentum: float, epsilon: float, dtype: torch.dtype):
    """(out, what `batch_norm_backward` wants to know): torch's batch normalisation in training, of two or more rows in
    float32. Running moments are brought up to date in place.
    """
    (n, k), (grid, cut) = x.shape, _cut(x)
    out, saved = torch.empty_like(x, dtype=dtype), torch.empty(2, k, device=x.device)
    how = weight, bias, running_mean, running_var, momentum, epsilon
    _batch_norm[grid](x, *how, out, saved, n, k, **cut)
    return out, saved


def batch_norm_backward(gradient, x, weight, saved) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of x, weight and bias."""
    (n, k), (grid, cut) = x.shape, _cut(x)
    found = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)
    _batch_norm_backward[grid](gradient, x, weight, saved, *found, n, k, **cut)
    return found
