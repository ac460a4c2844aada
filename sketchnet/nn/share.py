"""A part of a batch whose other rows other processes have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Share:
    """It begins at row `first` of `n_rows` in all; `sum` adds up a tensor over all shares, and so does its gradient."""

    first: int
    n_rows: int
    sum: Callable[[torch.Tensor], torch.Tensor]
