"""Dropout that does not cost as much as the layers it regularises."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from sketchnet.kernels import backend


class Dropout(nn.Dropout):
    """As torch's. On the processor, torch draws a mask as slowly as it multiplies matrices; hashing is much faster.

    The hash takes its key from torch's generator, so that seeding it fixes the masks.
    """

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if not self.training or self.p == 0 or rows.device.type != "cpu":
            return super().forward(rows)
        key = torch.randint(0, 2**63 - 1, (2,)).numpy().astype(np.uint64)
        mask = backend().dropout_mask(rows.numel(), self.p, (key[0] | np.uint64(1), key[1]))
        return rows * torch.from_numpy(mask).view(rows.shape).to(rows.dtype)
