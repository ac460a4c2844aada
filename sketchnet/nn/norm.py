"""Batch norm for rows of any number, and for batches that several processes share."""

from __future__ import annotations

import torch
from torch import nn

from sketchnet.nn.share import Share


class BatchNorm(nn.BatchNorm1d):
    """As torch's, but it takes a single row too, by the averages so far: that has no variance of its own."""

    share: Share | None = None  # set while several processes train
    running_mean: torch.Tensor
    running_var: torch.Tensor
    num_batches_tracked: torch.Tensor
    momentum: float

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return super().forward(rows)
        if (len(rows) if self.share is None else self.share.n_rows) == 1:
            return nn.functional.batch_norm(
                rows, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(rows) if self.share is None else self._over_all(rows, self.share)

    def _over_all(self, rows: torch.Tensor, share: Share) -> torch.Tensor:
        n, kind = share.n_rows, rows.dtype
        rows = rows.to(self.running_mean.dtype)  # sums in bfloat16 would have too few digits
        mean = share.sum(rows.sum(dim=0)) / n
        centred = rows - mean
        variance = share.sum(centred.square().sum(dim=0)) / n
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance * (n / (n - 1)), self.momentum)
            self.num_batches_tracked += 1
        return (centred * torch.rsqrt(variance + self.eps) * self.weight + self.bias).to(kind)
