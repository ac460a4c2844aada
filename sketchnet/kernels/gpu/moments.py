"""Moments of the columns of dense rows on a device, and rows brought to the same scale by them."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from sketchnet.kernels.gpu.launch import tile_of

_AT_ONCE = 1 << 24  # numbers that are held in float64 at a time


@triton.jit(do_not_specialize=["tiles", "k"])
def _normalise(rows, shift, scale, out, tiles, k, TILE: tl.constexpr):
    program = tl.program_id(0)
    row, column = (program // tiles).to(tl.int64), program % tiles * TILE + tl.arange(0, TILE)
    x = tl.load(rows + row * k + column, mask=column < k, other=0.0).to(tl.float32)
    x = (x - tl.load(shift + column, mask=column < k)) * tl.load(scale + column, mask=column < k)
    tl.store(out + row * k + column, x.to(out.dtype.element_ty), mask=column < k)


def moments(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(mean, sum of squares about the mean, largest absolute value) of each column, in float64.

    Pieces are merged by the formula of `normalisation.Moments`.
    """
    mean, squares, largest = torch.zeros((3, rows.shape[1]), dtype=torch.float64, device=rows.device)
    done = 0
    for piece in rows.split(max(1, _AT_ONCE // max(1, rows.shape[1]))):
        if len(piece) == 0:
            continue
        numbers = piece.double()
        variance, here = torch.var_mean(numbers, dim=0, correction=0)
        total = done + len(piece)
        apart = here - mean
        mean = mean + apart * (len(piece) / total)
        squares = squares + variance * len(piece) + apart**2 * (done * len(piece) / total)
        largest = torch.maximum(largest, numbers.abs_().amax(dim=0))
        done = total
    return mean, squares, largest


def normalise(rows: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor, out: torch.Tensor) -> None:
    """out = (rows - shift) * scale, column by column, with float32 `shift` and `scale`; `out` may be `rows`."""
    (n, k), tile = rows.shape, tile_of(rows.shape[1], 1024)
    tiles = -(-k // tile)
    if rows.numel():
        _normalise[(n * tiles,)](rows, shift, scale, out, tiles, k, tile)
