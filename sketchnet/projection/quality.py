"""How well a projection keeps distances and subspaces: the bound in theory, and the error on the data at hand."""

from __future__ import annotations

from math import ceil, log
from numbers import Real

import numpy as np
from scipy import sparse
from scipy.optimize import brentq

from sketchnet.data.csr import CsrBatch, as_dense, to_csr, without_torch
from sketchnet.errors import InputError
from sketchnet.projection.operator import Operator


def minimal_k(n: int, eps: float) -> int:
    """Columns that keep all squared distances among n points within 1 +- eps, by Johnson and Lindenstrauss' lemma.

    k >= 4 ln(n) / (eps^2/2 - eps^3/3) in the form of Dasgupta and Gupta (2003), proved for Gaussian projections. It
    does not depend on the number of features.
    """
    if not _are_numbers(n, eps) or n < 2 or not 0 < eps < 1:
        raise InputError(f"n={n!r}, eps={eps!r} is not possible; n must be at least 2 and eps between 0 and 1")
    return ceil(4 * log(n) / (eps**2 / 2 - eps**3 / 3))


def guaranteed_eps(n: int, k: int) -> float:
    """The smallest eps for which `minimal_k(n, eps)` is at most k; 1 if there is none."""
    if not _are_numbers(n, k) or n < 2 or k < 1:
        raise InputError(f"n={n!r}, k={k!r} is not possible; n must be at least 2 and k at least 1")
    needed = 4 * np.log(n) / k

    def surplus(eps):
        return eps**2 / 2 - eps**3 / 3 - needed

    return float(brentq(surplus, 0, 1)) if surplus(1) > 0 else 1.0


def distance_distortion(X, projected, n_pairs: int = 10_000, random_state: int = 0) -> np.ndarray:
    """Squared distance after / squared distance before, minus 1, for random pairs of different rows.

    Both are sparse or dense. Johnson and Lindenstrauss' lemma speaks of the largest absolute value among all pairs.
    """
    X, projected = _rows(X), _rows(projected)
    n = X.shape[0]
    if n < 2 or projected.shape[0] != n:
        raise InputError(f"X has {n} rows and its projection {projected.shape[0]}; both need the same, at least 2")
    rng = np.random.default_rng(random_state)
    a = rng.integers(0, n, n_pairs)
    b = (a + rng.integers(1, n, n_pairs)) % n
    ratios = []
    for start in range(0, n_pairs, 1024):  # bounds the memory of the differences
        i, j = a[start : start + 1024], b[start : start + 1024]
        before = _squared_norms(X[i].astype(np.float64) - X[j].astype(np.float64))
        after = _squared_norms(projected[i].astype(np.float64) - projected[j].astype(np.float64))
        ratios.append(after[before > 0] / before[before > 0] - 1)
    return np.concatenate(ratios)


def subspace_embedding_error(X, operator: Operator) -> float:
    """The smallest eps with (1 - eps) |z X|^2 <= |z X P|^2 <= (1 + eps) |z X|^2 for all z, P of `operator`.

    By the eigenvalues of (XP)(XP)^T in the basis where X X^T is the identity: for up to a few thousand rows.
    """
    X = _rows(X).astype(np.float64)
    before = X @ X.T
    before = before.toarray() if sparse.issparse(before) else np.asarray(before)
    projected = operator.apply(X)
    values, vectors = np.linalg.eigh(before)
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
    basis = vectors[:, kept] / np.sqrt(values[kept])
    ratios = np.linalg.eigvalsh((basis.T @ projected) @ (projected.T @ basis))
    return float(np.abs(ratios - 1).max(initial=0))


def _rows(X) -> sparse.csr_array | np.ndarray:
    """As rows can be picked from, and multiplied."""
    X = without_torch(X)
    return to_csr(X).scipy() if sparse.issparse(X) or isinstance(X, CsrBatch) else as_dense(X)


def _are_numbers(*given) -> bool:
    return all(isinstance(x, Real) and not isinstance(x, bool) for x in given)


def _squared_norms(rows) -> np.ndarray:
    if sparse.issparse(rows):
        return np.asarray(rows.power(2).sum(axis=1)).ravel()
    return np.square(rows).sum(axis=1)
