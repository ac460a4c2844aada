"""The sparse layers in training, for rows that lie on the GPU: forward, backward, and Adam for the columns used.

A batch is given by the numbers of its rows in CSR arrays, so that nothing has to be gathered and all shapes are known
before: steps can be captured. Dropout of features is a hash of the entry's place in the batch and the step's key, drawn
alike in both directions. Sums over rows that share a column are made by atomic additions, whose order is the GPU's.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from sketchnet.kernels.gpu.draw import bucket_of, hash64
from sketchnet.kernels.gpu.launch import shape_of, tile_of

_ENTRIES = 16  # of a row, taken at a time


@triton.jit
def _key(keys):
    """Multiplier and offset of the step's hash."""
    return tl.load(keys).to(tl.uint64, bitcast=True), tl.load(keys + 1).to(tl.uint64, bitcast=True)


@triton.jit
def _entries(indices, values, keys, keep_below, grow, b, begin, t, stop, DROP: tl.constexpr):
    """(ids, values, which there are) of the entries at t, those dropped with a value of zero. What is dropped follows
    from the place of the row in the batch and of the entry in the row, not from where they lie on the GPU.
    """
    there = t < stop
    ids = tl.load(indices + t, mask=there, other=0).to(tl.int64)
    value = tl.load(values + t, mask=there, other=0.0)
    if DROP:
        multiplier, offset = _key(keys)
        place = (b << 32) + (t - begin)
        kept = (hash64(place.to(tl.uint64), multiplier, offset) >> 32).to(tl.int64) < keep_below
        value = tl.where(kept, value * grow, 0.0)
    return ids, value, there


@triton.jit
def _output(ids, there, outputs, multiplier, offset, k, LOOK_UP: tl.constexpr):
    """Where the weights `ids` lead to: by a table, or by Count Sketch's hash."""
    if LOOK_UP:
        found = tl.load(outputs + ids, mask=there, other=0)
    else:
        found = bucket_of(hash64(ids.to(tl.uint64), multiplier, offset), k)
    return found


@triton.jit(do_not_specialize=["multiplier", "offset", "width", "keep_below"])
def _sketch(
    batch, indptr, indices, values, keys, keep_below: tl.int64, grow, multiplier: tl.uint64, offset: tl.uint64,
    outputs, weight, bias, out, width,
    DROP: tl.constexpr, LOOK_UP: tl.constexpr, ALIGN: tl.constexpr, ENTRIES: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    b, k = tl.program_id(0).to(tl.int64), width * ALIGN
    row = tl.load(batch + b)
    multiplier, offset = multiplier.to(tl.uint64), offset.to(tl.uint64)
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)
    begin, stop = tl.load(indptr + row), tl.load(indptr + row + 1)
    sums = tl.load(bias + column, mask=column < k, other=0.0)
    for first in range(begin, stop, ENTRIES):
        t = first + tl.arange(0, ENTRIES)
        ids, value, there = _entries(indices, values, keys, keep_below, grow, b, begin, t, stop, DROP)
        value *= tl.load(weight + ids, mask=there, other=0.0)
        bucket = _output(ids, there, outputs, multiplier, offset, k, LOOK_UP)
        sums += tl.sum(tl.where(bucket[:, None] == column[None, :], value[:, None], 0.0), axis=0)
    tl.store(out + b * k + column, sums, mask=column < k)


@triton.jit(do_not_specialize=["multiplier", "offset", "k", "keep_below"])
def _sketch_backward(
    batch, indptr, indices, values, keys, keep_below: tl.int64, grow, multiplier: tl.uint64, offset: tl.uint64,
    outputs, gradient, out, k,
    DROP: tl.constexpr, LOOK_UP: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    row = tl.load(batch + b)
    multiplier, offset = multiplier.to(tl.uint64), offset.to(tl.uint64)
    begin, stop = tl.load(indptr + row), tl.load(indptr + row + 1)
    for first in range(begin, stop, ENTRIES):
        t = first + tl.arange(0, ENTRIES)
        ids, value, there = _entries(indices, values, keys, keep_below, grow, b, begin, t, stop, DROP)
        bucket = _output(ids, there, outputs, multiplier, offset, k, LOOK_UP)
        by_output = tl.load(gradient + b * k + bucket, mask=there, other=0.0)
        tl.atomic_add(out + ids, value * by_output, mask=there, sem="relaxed")


@triton.jit(do_not_specialize=["width"])
def _adam(
    batch, indptr, indices, gradient, weight, first_moment, second_moment, rates, width, beta1, beta2, epsilon,
    ENTRIES: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    row = tl.load(batch + tl.program_id(0))
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)
    rate, correction, decay = tl.load(rates), tl.load(rates + 1), tl.load(rates + 2)
    stop = tl.load(indptr + row + 1)
    for start in range(tl.load(indptr + row), stop, ENTRIES):
        t = start + tl.arange(0, ENTRIES)
        ids = tl.load(indices + t, mask=t < stop, other=0).to(tl.int64)
        at = ids[:, None] * width + column[None, :]
        inside = (t < stop)[:, None] & (column < width)[None, :]
        # Whoever takes the gradient away moves the weight; all others with this column find nothing left. An exchange
        # moves bits, so numbers go through it as int32: the GPU's instruction is the same (exch.b32), the bits of 0 are
        # those of 0.0, and Triton's interpreter, which the tests use where there is no GPU, exchanges integers only.
        places = (gradient + at).to(tl.pointer_type(tl.int32), bitcast=True)
        g = tl.atomic_xchg(places, tl.zeros((ENTRIES, TILE), tl.int32), mask=inside, sem="relaxed")
        g = g.to(tl.float32, bitcast=True)
        mine = inside & (g != 0.0)
        m = beta1 * tl.load(first_moment + at, mask=mine, other=0.0) + (1 - beta1) * g
        v = beta2 * tl.load(second_moment + at, mask=mine, other=0.0) + (1 - beta2) * g * g
        w = tl.load(weight + at, mask=mine, other=0.0)
        tl.store(first_moment + at, m, mask=mine)
        tl.store(second_moment + at, v, mask=mine)
        tl.store(weight + at, (1 - decay) * w - rate * m / (tl.sqrt(v) * correction + epsilon), mask=mine)


@triton.jit
def _mix32(i, key):
    """A 32-bit hash of 32-bit numbers (the finaliser "lowbias32"): a third of the cost of 64 bits, enough for masks."""
    x = i ^ key
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


# In the kernels below `n` is specialised: where it is a multiple of 16 the compiler may join loads and stores.


@triton.jit(do_not_specialize=["keep_below", "layer"])
def _relu_dropout(x, keys, layer, keep_below: tl.int64, grow, out, n, TILE: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    value = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    multiplier, offset = _key(keys)
    key = hash64(layer.to(tl.uint64), multiplier, offset).to(tl.uint32)
    kept = _mix32(i.to(tl.uint32), key).to(tl.int64) < keep_below
    tl.store(out + i, tl.where((value > 0) & kept, value * grow, 0.0).to(out.dtype.element_ty), mask=i < n)


@triton.jit
def _relu_dropout_backward(out, gradient, grow, result, n, TILE: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    passed = tl.load(out + i, mask=i < n, other=0.0) > 0
    g = tl.load(gradient + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(result + i, tl.where(passed, g * grow, 0.0).to(result.dtype.element_ty), mask=i < n)


def relu_dropout(x: torch.Tensor, keys: torch.Tensor, layer: int, rate: float) -> torch.Tensor:
    """max(x, 0), each number dropped with probability `rate`, the others grown by 1 / (1 - rate)."""
    out = torch.empty_like(x)
    below = min(int((1 - rate) * 2.0**32), 2**32 - 1)
    _relu_dropout[(triton.cdiv(x.numel(), 1024),)](x, keys, layer, below, 1 / (1 - rate), out, x.numel(), 1024)
    return out


def relu_dropout_backward(out: torch.Tensor, gradient: torch.Tensor, rate: float) -> torch.Tensor:
    """The gradient of `relu_dropout`'s input, from its output."""
    result = torch.empty_like(out)
    grid = (triton.cdiv(out.numel(), 1024),)
    _relu_dropout_backward[grid](out, gradient, 1 / (1 - rate), result, out.numel(), 1024)
    return result


@triton.jit
def _adam_all(
    weight, shadow, gradient, first_moment, second_moment, rates, beta1, beta2, epsilon, n,
    DECAY: tl.constexpr, SHADOW: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    there = i < n
    g = tl.load(gradient + i, mask=there, other=0.0).to(tl.float32)
    m = beta1 * tl.load(first_moment + i, mask=there, other=0.0) + (1 - beta1) * g
    v = beta2 * tl.load(second_moment + i, mask=there, other=0.0) + (1 - beta2) * g * g
    w = tl.load(weight + i, mask=there, other=0.0)
    if DECAY:
        w *= 1 - tl.load(rates + 2)
    w -= tl.load(rates) * m / (tl.sqrt(v) * tl.load(rates + 1) + epsilon)
    tl.store(first_moment + i, m, mask=there)
    tl.store(second_moment + i, v, mask=there)
    tl.store(weight + i, w, mask=there)
    if SHADOW:
        tl.store(shadow + i, w.to(tl.bfloat16), mask=there)


def adam_all(weight, shadow, gradient, moments, rates, betas, epsilon: float, decays: bool) -> None:
    """Adam for a whole tensor, with `rates` as for `adam_rows`; `shadow`, if any, becomes the weights in bfloat16."""
    how = *moments, rates, *betas, epsilon, weight.numel(), decays, shadow is not None, 1024
    grid = (triton.cdiv(weight.numel(), 1024),)
    _adam_all[grid](weight, weight if shadow is None else shadow, gradient, *how)


def _how(keys, rate: float) -> tuple:
    return keys, min(int((1 - rate) * 2.0**32), 2**32 - 1), 1 / (1 - rate)


def _where(where, spare: torch.Tensor) -> tuple:
    """(multiplier, offset, table, whether to look up) of a hash's key or of a table of outputs."""
    if isinstance(where, torch.Tensor):
        return 0, 0, where, True
    return int(where[0]), int(where[1]), spare, False


def sketch_forward(batch, csr, keys, rate: float, where, weight, bias, out) -> None:
    """out[b] = bias + sums of value * weight of the columns of row batch[b], each at the output that `where` tells:
    the key of Count Sketch's hash, or a table.
    """
    tile, (width, _, align) = tile_of(out.shape[1], 1024), shape_of(out)
    grid = len(batch), triton.cdiv(out.shape[1], tile)
    *by, look_up = _where(where, weight)
    how = rate > 0, look_up, align, _ENTRIES, tile
    _sketch[grid](batch, *csr, *_how(keys, rate), *by, weight, bias, out, width, *how, num_warps=8)


def sketch_backward(batch, csr, keys, rate: float, where, gradient, out) -> None:
    """Add the gradient of each column's weight to `out`."""
    *by, look_up = _where(where, out)
    how = *_how(keys, rate), *by, gradient, out, gradient.shape[1]
    _sketch_backward[(len(batch),)](batch, *csr, *how, rate > 0, look_up, 32, num_warps=1)


def adam_rows(batch, csr, gradient, weight, moments, rates, betas, epsilon: float) -> None:
    """Adam for the columns of the batch, whose gradients become zero. `rates`: the rate with the first moment's
    correction, the second's correction, and the share of the weights that decays. Columns without a gradient stay.
    """
    width = weight.numel() // max(1, len(weight))
    tile, (indptr, indices, _) = tile_of(width, 64), csr
    grid = len(batch), triton.cdiv(width, tile)
    tables = gradient, weight, *moments, rates
    _adam[grid](batch, indptr, indices, *tables, width, *betas, epsilon, 32, tile, num_warps=1)
