"""Flips and translations of a batch of images, on the device where it lies."""

from __future__ import annotations

import torch
from torch.nn import functional


def draw_moves(n: int, pad: int = 4, *, generator: torch.Generator | None = None, device=None):
    """For each of n images: flip or not (probability 1/2), and shifts down and right, uniform in [-pad, pad]."""
    flips = torch.rand(n, generator=generator, device=device) < 0.5
    shifts = torch.randint(-pad, pad + 1, (2, n), generator=generator, device=device)
    return flips, shifts[0], shifts[1]


def move(images: torch.Tensor, flips: torch.Tensor, down: torch.Tensor, right: torch.Tensor, pad: int) -> torch.Tensor:
    """Each image (n, channels, height, width) mirrored where `flips` says, then shifted by at most `pad` pixels.

    What comes in from outside is zero, which is the mean colour if images are normalised first.
    """
    n, _, height, width = images.shape
    device = images.device
    # The pixel at (y, x) comes from (y - down, x - right) of the mirrored image; `pad` more in the padded one.
    rows = torch.arange(height, device=device) - down[:, None] + pad
    columns = torch.arange(width, device=device) - right[:, None]
    columns = torch.where(flips[:, None], width - 1 - columns, columns) + pad
    padded = functional.pad(images, (pad,) * 4).permute(0, 2, 3, 1)
    at = torch.arange(n, device=device)[:, None, None], rows[:, :, None], columns[:, None, :]
    return padded[at].permute(0, 3, 1, 2).contiguous()
