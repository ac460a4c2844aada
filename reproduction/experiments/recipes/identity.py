"""P = I: rows that were reduced before reach the network as they are, in the place of projected ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from sketchnet.projection import Operator, Scheme, plan_rows, product_on


@dataclass(frozen=True)
class Identity(Scheme):
    """Takes rows of k columns, and gives the same numbers as a dense array."""

    name = "identity"

    def sample(self, d: int, seed: int = 0) -> IdentityOperator:
        return IdentityOperator(self, d, seed, scale=1.0)


class IdentityOperator(Operator):
    per_entry = 1.0

    def plan(self, X, budget):
        return plan_rows(X.indptr, self.d, self.k, 0, budget)

    def run(self, X, out, plan, kernels, done=0) -> Iterator[int]:
        for number, unit in enumerate(plan.units[done:], start=done + 1):
            out[unit.rows] = X.rows(unit.rows).scipy().toarray()
            yield number

    def entries(self, rows, columns, kernels) -> np.ndarray:
        return np.equal.outer(rows, np.arange(columns.start, columns.stop)).astype(float)


@product_on.register
def _(operator: IdentityOperator, gpu):
    def product(indptr, indices, values, out):
        rows = torch.repeat_interleave(torch.arange(len(out), device=out.device), indptr.diff())
        places, kept = (rows, indices[: len(rows)].long()), values[: len(rows)].to(out)
        out.zero_().index_put_(places, kept, accumulate=True)

    return product
