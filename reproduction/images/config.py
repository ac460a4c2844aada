"""Small images, and how residual networks are trained on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sketchnet.checks import check_integer, check_real


class Images(NamedTuple):
    """`pixels` are bytes (n, channels, height, width), `labels` the classes from 0 on."""

    pixels: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class ImageConfig:
    """Settings of a run; by default the published ones for CIFAR, but with fewer layers and epochs.

    Huang et al. (2016) take 500 epochs in batches of 128, Nesterov's momentum 0.9, and a rate of 0.1 that falls to a
    tenth at half and at three quarters of the epochs. `l2` holds for all parameters, as in their code.
    Convolutions begin by `scheme` with `options`, as in `sketchnet.nn.init.apply_`.
    """

    depth: int = 20
    width: int = 16
    survival: float = 0.5
    epochs: int = 30
    batch_size: int = 128
    rate: float = 0.1
    milestones: tuple[float, ...] = (0.5, 0.75)  # shares of the epochs
    factor: float = 0.1
    momentum: float = 0.9
    l2: float = 1e-4
    pad: int = 4  # pixels that images are shifted by, at most
    scheme: str = "he"
    options: dict = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self):
        check_integer("epochs", self.epochs, 1, 2**20)
        check_integer("batch_size", self.batch_size, 2, 2**20)
        check_integer("pad", self.pad, 0, 2**10)
        check_integer("seed", self.seed, 0, 2**63 - 1)
        check_real("momentum", self.momentum, below=1.0)
        for name in ("rate", "factor", "l2"):
            check_real(name, getattr(self, name))

    def rate_at(self, epoch: int) -> float:
        """Of an epoch, counted from 0."""
        return self.rate * self.factor ** sum(epoch >= share * self.epochs for share in self.milestones)
