"""The dissertation's synthetic data (appendix A): two classes that differ in a few significant features."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sketchnet.errors import InputError


def make_synthetic(n: int, d: int, density: float, significant: float = 0.2, random_state: int = 0):
    """Sparse rows of two balanced classes, as (X, y) with X a float32 CSR array and y of 0 and 1.

    Every entry is non-zero with probability `density`, its value N(0, 1). A fraction `significant` of the features
    separates the classes: in examples of class 1 their non-zeros get noise N(3, 1) added. The dissertation does not
    state that noise; these parameters give back the errors that it prints for linear models.
    """
    if n < 1 or d < 1 or not 0 < density <= 1 or not 0 <= significant <= 1:
        raise InputError(
            f"n={n}, d={d}, density={density}, significant={significant} is not possible; "
            "n and d must be positive, density in (0, 1], significant in [0, 1]"
        )
    rng = np.random.default_rng(random_state)
    y = (np.arange(n) % 2)[rng.permutation(n)].astype(np.int64)
    lengths = rng.binomial(d, density, n)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    indices = np.concatenate([np.sort(rng.choice(d, z, replace=False, shuffle=False)) for z in lengths])
    values = rng.standard_normal(len(indices), np.float32)
    is_significant = np.zeros(d, bool)
    is_significant[rng.choice(d, round(significant * d), replace=False)] = True
    moved = is_significant[indices] & np.repeat(y == 1, lengths)
    values[moved] += 3 + rng.standard_normal(np.count_nonzero(moved), np.float32)
    return sparse.csr_array((values, indices, indptr), shape=(n, d)), y
