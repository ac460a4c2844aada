"""Count Sketch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sketchnet import random
from sketchnet.data.csr import CsrBatch
from sketchnet.kernels import backend
from sketchnet.projection.operator import Scheme
from sketchnet.projection.slicing import Plan, plan_rows
from sketchnet.projection.sparse import SparseOperator


@dataclass(frozen=True)
class CountSketch(Scheme):
    """Each row of P has a single non-zero, +1 or -1 with probability 1/2 each, in a uniformly drawn column.

    Charikar, Chen and Farach-Colton 2004; as a projection, Weinberger et al. 2009. No scale is needed. It costs one
    hash per non-zero of the data, whatever k.
    """

    name = "count_sketch"

    def sample(self, d: int, seed: int = 0) -> CountSketchOperator:
        return CountSketchOperator(self, d, seed, scale=1.0)


class CountSketchOperator(SparseOperator):
    per_entry = 1.0

    @cached_property
    def key(self):
        return random.hash_key(self.seed, random.STREAM_BUCKET)

    def _rows(self, ids, kernels):
        return np.arange(len(ids) + 1), kernels.draw_buckets(self.key, ids, self.k)

    def codes(self, ids) -> np.ndarray:
        """The second array of `pattern`; the first is known, since every row has one non-zero."""
        return backend().draw_buckets(self.key, ids, self.k)

    def plan(self, X: CsrBatch, budget: int) -> Plan:
        return plan_rows(X.indptr, self.d, self.k, 0, budget)

    def run(self, X, out, plan, kernels, done=0) -> Iterator[int]:
        for number, unit in enumerate(plan.units[done:], start=done + 1):
            kernels.count_sketch(*X.rows(unit.rows).arrays, self.key, out[unit.rows])
            yield number

    def solve_gram(self, Y: np.ndarray, memory=None) -> np.ndarray:
        """Columns of P never share a row, so P^T P is diagonal: the number of rows in each bucket."""
        counts, step = np.zeros(self.k), 1 << 20
        for start in range(0, self.d, step):
            codes = backend().draw_buckets(self.key, np.arange(start, min(self.d, start + step)), self.k)
            counts += np.bincount(np.where(codes < 0, ~codes, codes), minlength=self.k)
        return Y / np.maximum(counts, 1)
