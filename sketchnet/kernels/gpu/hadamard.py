"""The Walsh-Hadamard transform of sparse rows at chosen frequencies, by bit parity."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from sketchnet.kernels.gpu.draw import flipped, hash64
from sketchnet.kernels.gpu.launch import shape_of, tile_of
from sketchnet.kernels.gpu.multiply import row_and_tile


@triton.jit(do_not_specialize=["multiplier", "offset", "tiles", "width", "stride"])
def _parity_sums(
    indptr, indices, values, multiplier: tl.uint64, offset: tl.uint64, f_ptr, f_at, f_value, scale: tl.float32,
    out, tiles, width, stride,
    TILE: tl.constexpr, ALIGN: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
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
