"""Li's very sparse random projection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property
from math import sqrt
from numbers import Real
from typing import Any

import numpy as np

from sketchnet import random
from sketchnet.checks import check_integer
from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.projection.operator import Scheme
from sketchnet.projection.slicing import Plan, plan_rows
from sketchnet.projection.sparse import SparseOperator


@dataclass(frozen=True)
class Li(Scheme):
    """P_ij = sqrt(s/k) * (+1, 0 or -1 with probabilities 1/2s, 1 - 1/s, 1/2s), independent.

    Li, Hastie and Church, "Very sparse random projections", KDD 2006. s = sqrt(d) unless given; up to d / log(d) is
    safe for data without heavy tails. A row of P has k/s non-zeros on average, and only those are ever visited.
    """

    s: float | None = None

    name = "li"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.s is not None:
            if not (isinstance(self.s, Real) and 1 <= self.s <= 1e18):
                raise InputError(f"s={self.s!r} is not possible for Li; it is from 1 to 1e18, or None for sqrt(d)")
            object.__setattr__(self, "s", float(self.s))

    def sample(self, d: int, seed: int = 0) -> LiOperator:
        return LiOperator(self, d, seed)


class LiOperator(SparseOperator):
    def __init__(self, scheme: Li, d: int, seed: int):
        self.s = scheme.s if scheme.s is not None else sqrt(check_integer("d", d, 1, 2**63))
        super().__init__(scheme, d, seed, scale=sqrt(self.s / scheme.k))

    @cached_property
    def thresholds(self) -> np.ndarray:
        with localcontext(prec=60):
            return random.skip_thresholds(1 / Decimal(self.s), self.k)

    @property
    def per_entry(self) -> float:
        return self.k / self.s

    def _rows(self, ids, kernels):
        return kernels.draw_skips(self.seed, random.STREAM_SKIP, ids, self.k, self.thresholds, self.per_entry)

    def plan(self, X: CsrBatch, budget: int) -> Plan:
        # A column takes its id and offset, and a 32-bit code for each of its non-zeros, twice while pieces are joined,
        # and as much again that the allocator keeps.
        return plan_rows(X.indptr, self.d, self.k, 16 + 18 * (self.per_entry + 1), budget)

    def run(self, X, out, plan, kernels, done=0) -> Iterator[int]:
        p: Any = None if plan.compact or done == len(plan.units) else self._rows(np.arange(self.d), kernels)
        for number, unit in enumerate(plan.units[done:], start=done + 1):
            rows = X.rows(unit.rows)
            local = rows.indices
            if plan.compact:
                p = None  # gone before its successor comes
                ids, local = kernels.compact_columns(rows.indices, self.d)
                p = self._rows(ids, kernels)
            kernels.multiply_sparse(rows.indptr, local, rows.values, *p, self.scale, out[unit.rows])
            yield number
