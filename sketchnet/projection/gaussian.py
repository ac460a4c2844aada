"""Gaussian random projection."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from sketchnet import random
from sketchnet.projection.dense import DenseOperator
from sketchnet.projection.operator import Scheme


@dataclass(frozen=True)
class Gaussian(Scheme):
    """P_ij ~ N(0, 1/k), independent (Indyk and Motwani 1998; Dasgupta and Gupta 2003).

    The best embedding of the five and the slowest: every non-zero of the data meets k entries.
    """

    name = "gaussian"

    def sample(self, d: int, seed: int = 0) -> GaussianOperator:
        return GaussianOperator(self, d, seed, scale=sqrt(1 / self.k))


class GaussianOperator(DenseOperator):
    def _draw(self, rows, first, out, kernels) -> None:
        kernels.draw_normals(self.seed, random.STREAM_NORMAL, rows, first, out)
