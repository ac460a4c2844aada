"""How kernels are cut into programs: one for each row and each tile of its columns."""

from __future__ import annotations

from math import gcd

import torch
import triton


def tile_of(width: int, most: int) -> int:
    """Columns that a program takes: the power of two up to `most` that wastes least, and of those the largest."""
    if width <= most:
        return triton.next_power_of_2(max(1, width))
    return min((most, most // 2, most // 4), key=lambda tile: -(-width // tile) * tile)


def shape_of(out: torch.Tensor, columns: slice | None = None) -> tuple[int, int, int]:
    """(width, stride, align): the first two as multiples of the third, so that the compiler may join stores."""
    width = out.shape[1] if columns is None else columns.stop - columns.start
    first = 0 if columns is None else columns.start
    align = gcd(width, out.stride(0), first, 8)
    return width // align, out.stride(0) // align, align
