"""The Walsh-Hadamard transform: of sparse rows at chosen frequencies by bit parity, of dense rows by butterflies."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from sketchnet.errors import InputError
from sketchnet.kernels.gpu.draw import flipped, hash64
from sketchnet.kernels.gpu.launch import shape_of, tile_of
from sketchnet.kernels.gpu.multiply import row_and_tile

_BLOCK = 4096  # numbers of a row that a program transforms at once if they lie side by side
_LINE, _LINES = 16, 1024  # otherwise: neighbours that it takes together, a sector of memory each, and of how many lines


@triton.jit(do_not_specialize=["multiplier", "offset", "tiles", "width", "stride"])
def _parity_sums(
    indptr,
    indices,
    values,
    multiplier: tl.uint64,
    offset: tl.uint64,
    f_ptr,
    f_at,
    f_value,
    scale: tl.float32,
    out,
    tiles,
    width,
    stride,
    TILE: tl.constexpr,
    ALIGN: tl.constexpr,
    WIDE: tl.constexpr,
):
    row, tile, first, last = row_and_tile(indptr, tiles)
    multiplier, offset = multiplier.to(tl.uint64), offset.to(tl.uint64)
    column = tile * TILE + tl.arange(0, TILE)
    inside = column < width * ALIGN
    start = tl.load(f_ptr + column, mask=inside, other=0)
    count = tl.load(f_ptr + column + 1, mask=inside, other=0) - start
    totals = tl.zeros((TILE,), tl.float32)
    for q in range(0, tl.max(count, axis=0)):
        weight = tl.load(f_value + start + q, mask=q < count, other=0.0)
        f = tl.load(f_at + start + q, mask=q < count, other=0)
        sums = tl.zeros((TILE,), tl.float32)
        for t in range(first, last):
            i = tl.load(indices + t).to(tl.uint64)
            value = flipped(tl.load(values + t), hash64(i, multiplier, offset) & 1)
            if WIDE:
                common = i.to(tl.int64, bitcast=True) & f
                bits = (common ^ (common >> 32)).to(tl.int32)
            else:
                bits = i.to(tl.int32) & f
            sums += flipped(value, libdevice.popc(bits))
        totals += weight * sums
    tl.store(out + row * (stride * ALIGN) + column, (totals * scale).to(out.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["positions"])
def _butterflies(x, positions, inner, LEVELS: tl.constexpr, TAKEN: tl.constexpr):
    """Transform along the middle axis of x, seen as (outer, 2**LEVELS, inner), at TAKEN places of the others."""
    place = tl.program_id(0).to(tl.int64) * TAKEN + tl.arange(0, TAKEN)[None, :]
    line = tl.arange(0, 2**LEVELS)[:, None]
    at = x + (place // inner * 2**LEVELS + line) * inner + place % inner
    live = (place < positions) & (line >= 0)
    numbers = tl.load(at, mask=live, other=0.0)
    for _ in tl.static_range(LEVELS):
        # The lowest bit of the line is transformed and becomes the highest: after all levels each is back in its place.
        even, odd = tl.split(tl.permute(tl.reshape(numbers, (2**LEVELS // 2, 2, TAKEN)), (0, 2, 1)))
        pair = tl.permute(tl.join(even + odd, even - odd), (2, 0, 1))
        numbers = tl.reshape(pair, (2**LEVELS, TAKEN))
    tl.store(at, numbers, mask=live)


def hadamard_sparse(indptr, indices, values, key, f_ptr, f_at, f_value, scale: float, out, columns: slice) -> None:
    """out[:, columns] = scale * sums over each column's frequencies of f_value * (csr @ D @ H)[:, frequency].

    Frequencies below 2**32 may come as int32 of the same bits, which halves the work; others come as int64.
    """
    part = out[:, columns]
    tile, (width, stride, align) = tile_of(part.shape[1], 1024), shape_of(out, columns)
    tiles = -(-part.shape[1] // tile)
    if len(out) and part.shape[1]:
        picks, key = (f_ptr, f_at, f_value), (int(key[0]), int(key[1]))
        _parity_sums[(len(out) * tiles,)](
            *(indptr, indices, values, *key, *picks, scale, part, tiles, width, stride, tile, align),
            WIDE=f_at.dtype == torch.int64,
            num_warps=2,
        )


def fwht(x: torch.Tensor) -> None:
    """Unnormalised Walsh-Hadamard transform of each row of float32, in place; the width is a power of two."""
    n, width = x.shape
    if width & (width - 1) or width == 0 or x.dtype != torch.float32 or not x.is_contiguous():
        raise InputError(f"fwht takes contiguous float32 rows whose width is a power of two, not {width} of {x.dtype}")
    inner, most = 1, _BLOCK
    while inner < width and n:
        lines = min(width // inner, most)
        taken = max(1 if inner == 1 else _LINE, _BLOCK // lines)
        positions = n * (width // lines)
        grid, levels = (-(-positions // taken),), lines.bit_length() - 1
        _butterflies[grid](x, positions, inner, levels, taken, num_warps=4 if lines * taken <= _BLOCK else 8)
        inner, most = inner * lines, _LINES
