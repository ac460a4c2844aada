"""Batch normalisation in training with the rectifier behind it, and the sum of a residual block between the two.

    out = relu(gate * (weight * (x - mean) / deviation + bias) + shortcut)

torch takes seven kernels for it, which read all numbers each; here it is two in either direction: sums over the batch,
then the result. Tensors are bfloat16 or float32 (n, channels, height, width), channels last in memory, with a power of
two of channels. Sums are float32, made in an order that depends on shapes alone.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_TILE = 4096  # numbers that a program takes at a time
_PROGRAMS = 128  # at most, that make sums: each of those that come next adds all of theirs up
_MOST_CHANNELS = 1024


@triton.jit
def _tile(t, n_rows, ROWS: tl.constexpr, C: tl.constexpr):
    """Places of a tile's numbers, and which of them there are."""
    row = t.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    return row[:, None] * C + tl.arange(0, C)[None, :], (row < n_rows)[:, None]


@triton.jit
def _added(partials, which, P: tl.constexpr, C: tl.constexpr):
    """The sums that `_sums` and `_backward_sums` left in parts: (programs, 2, channels)."""
    at = (tl.arange(0, P)[:, None] * 2 + which) * C + tl.arange(0, C)[None, :]
    return tl.sum(tl.load(partials + at), axis=0)


@triton.jit(do_not_specialize=["n_rows", "n_turns"])
def _sums(x, partials, n_rows, n_turns, P: tl.constexpr, ROWS: tl.constexpr, C: tl.constexpr):
    program, channel = tl.program_id(0), tl.arange(0, C)
    total, squares = tl.zeros((C,), tl.float32), tl.zeros((C,), tl.float32)
    for turn in range(0, n_turns):
        at, there = _tile(program + turn * P, n_rows, ROWS, C)
        numbers = tl.load(x + at, mask=there, other=0.0).to(tl.float32)
        total += tl.sum(numbers, axis=0)
        squares += tl.sum(numbers * numbers, axis=0)
    tl.store(partials + program * 2 * C + channel, total)
    tl.store(partials + (program * 2 + 1) * C + channel, squares)


@triton.jit(do_not_specialize=["n_rows"])
def _forward(
    x, partials, weight, bias, gate, shortcut, out, saved, running_mean, running_var, momentum, epsilon, n_rows,
    GATED: tl.constexpr, ADDED: tl.constexpr, P: tl.constexpr, ROWS: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    program, channel = tl.program_id(0), tl.arange(0, C)
    mean = _added(partials, 0, P, C) / n_rows
    variance = tl.maximum(_added(partials, 1, P, C) / n_rows - mean * mean, 0.0)
    inverse = 1 / tl.sqrt(variance + epsilon)
    if program == 0:
        tl.store(saved + channel, mean)
        tl.store(saved + C + channel, inverse)
        before = tl.load(running_mean + channel)
        tl.store(running_mean + channel, before + momentum * (mean - before))
        before = tl.load(running_var + channel)
        tl.store(running_var + channel, before + momentum * (variance * n_rows / (n_rows - 1) - before))
    factor, offset = tl.load(weight + channel), tl.load(bias + channel)
    if GATED:
        g = tl.load(gate)
        factor, offset = factor * g, offset * g
    at, there = _tile(program, n_rows, ROWS, C)
    numbers = tl.load(x + at, mask=there, other=0.0).to(tl.float32)
    numbers = (numbers - mean[None, :]) * (inverse * factor)[None, :] + offset[None, :]
    if ADDED:
        numbers += tl.load(shortcut + at, mask=there, other=0.0).to(tl.float32)
    tl.store(out + at, tl.maximum(numbers, 0.0).to(out.dtype.element_ty), mask=there)


@triton.jit(do_not_specialize=["n_rows", "n_turns"])
def _backward_sums(
    gradient, x, out, saved, partials, n_rows, n_turns, P: tl.constexpr, ROWS: tl.constexpr, C: tl.constexpr
):
    """Of the gradient behind the sum, and of its products with the normalised numbers."""
    program, channel = tl.program_id(0), tl.arange(0, C)
    mean, inverse = tl.load(saved + channel), tl.load(saved + C + channel)
    total, products = tl.zeros((C,), tl.float32), tl.zeros((C,), tl.float32)
    for turn in range(0, n_turns):
        at, there = _tile(program + turn * P, n_rows, ROWS, C)
        passed = tl.load(out + at, mask=there, other=0.0).to(tl.float32) > 0
        d = tl.where(passed, tl.load(gradient + at, mask=there, other=0.0).to(tl.float32), 0.0)
        normal = (tl.load(x + at, mask=there, other=0.0).to(tl.float32) - mean[None, :]) * inverse[None, :]
        total += tl.sum(d, axis=0)
        products += tl.sum(d * normal, axis=0)
    tl.store(partials + program * 2 * C + channel, total)
    tl.store(partials + (program * 2 + 1) * C + channel, products)


@triton.jit(do_not_specialize=["n_rows"])
def _backward(
    gradient, x, out, saved, partials, weight, gate, d_x, d_shortcut, d_weight, d_bias, n_rows,
    GATED: tl.constexpr, ADDED: tl.constexpr, P: tl.constexpr, ROWS: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    program, channel = tl.program_id(0), tl.arange(0, C)
    total, products = _added(partials, 0, P, C), _added(partials, 1, P, C)
    mean, inverse, factor = tl.load(saved + channel), tl.load(saved + C + channel), tl.load(weight + channel)
    g = 1.0
    if GATED:
        g = tl.load(gate)
    if program == 0:
        tl.store(d_bias + channel, total * g)
        tl.store(d_weight + channel, products * g)
    at, there = _tile(program, n_rows, ROWS, C)
    passed = tl.load(out + at, mask=there, other=0.0).to(tl.float32) > 0
    d = tl.where(passed, tl.load(gradient + at, mask=there, other=0.0).to(tl.float32), 0.0)
    if ADDED:
        tl.store(d_shortcut + at, d.to(d_shortcut.dtype.element_ty), mask=there)
    normal = (tl.load(x + at, mask=there, other=0.0).to(tl.float32) - mean[None, :]) * inverse[None, :]
    d = (d - (total / n_rows)[None, :] - normal * (products / n_rows)[None, :]) * (factor * inverse * g)[None, :]
    tl.store(d_x + at, d.to(d_x.dtype.element_ty), mask=there)


def takes_channels(channels: int) -> bool:
    """Whether these kernels know so many."""
    return channels <= _MOST_CHANNELS and channels & (channels - 1) == 0


def _cut(x: torch.Tensor) -> tuple[int, int, dict]:
    """(rows, tiles, what kernels are compiled for); a row is a pixel's channels."""
    n_rows, channels = x.numel() // x.shape[1], x.shape[1]
    rows = _TILE // channels
    n_tiles = triton.cdiv(n_rows, rows)
    programs = min(_PROGRAMS, triton.next_power_of_2(n_tiles))
    return n_rows, n_tiles, {"P": programs, "ROWS": rows, "C": channels}


def norm_relu(x, weight, bias, running_mean, running_var, gate, shortcut, momentum: float, epsilon: float):
    """(out, what `norm_relu_backward` wants to know). Running moments are brought up to date in place.

    `gate` (a float32 tensor of one number) and `shortcut` (like x) may be None.
    """
    n_rows, n_tiles, cut = _cut(x)
    partials = torch.empty(cut["P"], 2, cut["C"], device=x.device)
    saved, out = torch.empty(2, cut["C"], device=x.device), torch.empty_like(x)
    how = {"GATED": gate is not None, "ADDED": shortcut is not None, **cut}
    _sums[(cut["P"],)](x, partials, n_rows, triton.cdiv(n_tiles, cut["P"]), **cut)
    _forward[(n_tiles,)](
        x, partials, weight, bias, gate, shortcut, out, saved, running_mean, running_var, momentum, epsilon, n_rows,
        **how,
    )  # fmt: skip
    return out, saved


def norm_relu_backward(gradient, x, out, saved, weight, gate, added: bool):
    """Gradients of x, weight, bias, and of the shortcut (None, if there was none)."""
    n_rows, n_tiles, cut = _cut(x)
    partials = torch.empty(cut["P"], 2, cut["C"], device=x.device)
    d_x, d_shortcut = torch.empty_like(x), torch.empty_like(x) if added else None
    d_weight, d_bias = torch.empty_like(weight), torch.empty_like(weight)
    how = {"GATED": gate is not None, "ADDED": added, **cut}
    n_turns = triton.cdiv(n_tiles, cut["P"])
    _backward_sums[(cut["P"],)](gradient, x, out, saved, partials, n_rows, n_turns, **cut)
    _backward[(n_tiles,)](
        gradient, x, out, saved, partials, weight, gate, d_x, d_shortcut, d_weight, d_bias, n_rows, **how
    )  # fmt: skip
    return d_x, d_weight, d_bias, d_shortcut
