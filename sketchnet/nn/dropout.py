"""Dropout that does not cost as much as the layers it regularises."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from sketchnet.kernels import backend
from sketchnet.nn.share import Share


class Dropout(nn.Dropout):
    """As torch's. On the processor, torch draws a mask as slowly as it multiplies matrices; hashing is much faster.

    The hash takes its key from torch's generator, so that seeding it fixes the masks.
    """

    share: Share | None = None  # set while several processes train

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if not self.training or self.p == 0:
            return rows
        if rows.device.type != "cpu":
            if self.share is None:
                return super().forward(rows)
            mask = super().forward(rows.new_ones(self.share.n_rows, *rows.shape[1:]))
            return rows * mask[self.share.first : self.share.first + len(rows)]
        multiplier, offset = torch.randint(0, 2**63 - 1, (2,)).tolist()
        multiplier |= 1
        if self.share is not None:  # number i is hashed by i * multiplier + offset: begin behind the rows of others
            offset += multiplier * self.share.first * rows[0:1].numel() if len(rows) else 0
        key = np.uint64(multiplier), np.uint64(offset % 2**64)
        mask = backend().dropout_mask(rows.numel(), self.p, key)
        return rows * torch.from_numpy(mask).view(rows.shape).to(rows.dtype)
