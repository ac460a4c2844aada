"""Achlioptas' random projection."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from sketchnet import random
from sketchnet.errors import InputError
from sketchnet.projection.dense import DenseOperator
from sketchnet.projection.operator import Scheme


@dataclass(frozen=True)
class Achlioptas(Scheme):
    """P_ij = sqrt(s/k) * (+1, 0 or -1 with probabilities 1/2s, 1 - 1/s, 1/2s), independent, for s = 3 or s = 1.

    Achlioptas, "Database-friendly random projections", PODS 2001. s = 3 is the form that the dissertation uses; s = 1
    is the dense matrix of signs.
    """

    s: int = 3

    name = "achlioptas"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.s not in (1, 3):
            raise InputError(f"s={self.s!r} is not possible for Achlioptas; it is 1 or 3 (Li takes any s)")
        object.__setattr__(self, "s", int(self.s))

    def sample(self, d: int, seed: int = 0) -> AchlioptasOperator:
        return AchlioptasOperator(self, d, seed, scale=sqrt(self.s / self.k))


class AchlioptasOperator(DenseOperator):
    scheme: Achlioptas

    def _draw(self, rows, first, out, kernels) -> None:
        kernels.draw_signs(self.seed, random.STREAM_SIGN, rows, first, self.scheme.s, out)
