"""Randomised truncated SVD without centring, in passes over the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from sketchnet.checks import check_integer
from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.kernels import backend
from sketchnet.projection import Gaussian
from sketchnet.projection.operator import output_dtype
from sketchnet.projection.rows import joined_dtype
from sketchnet.selection.rows import Rows, as_rows, check_width

_BLOCK_NUMBERS = 1 << 22  # of a block of rows times the directions


@dataclass(frozen=True)
class TruncatedSVD:
    """components (k x d, orthonormal rows) and the singular values in falling order."""

    components: np.ndarray
    singular_values: np.ndarray


def truncated_svd(X, n_components: int, *, n_iter: int = 5, n_oversamples: int = 10, seed: int = 0) -> TruncatedSVD:
    """The directions in which the rows of X (any kind that `chi2` takes) have most mass about zero.

    Halko, Martinsson and Tropp's method. A random combination of the rows is multiplied `n_iter` times by X^T X, with
    an orthonormal basis made of it each time; the SVD of X within the span of the last basis is the result. That takes
    n_iter + 2 passes over the rows, and memory for two d x (n_components + n_oversamples) matrices: float32 if X is,
    else float64. Singular values within the span are right to the rounding of the largest one in that type. Components
    have the sign that makes their largest entry positive.
    """
    rows = as_rows(X).check()
    n, d = rows.n_rows, rows.n_columns
    if isinstance(n_components, int | np.integer) and n_components > min(n, d):
        raise InputError(f"n_components={n_components} is not possible for n_samples = {n} and n_features = {d}; "
                         f"at most {min(n, d)} components exist")  # fmt: skip
    k = check_integer("n_components", n_components, 1, min(n, d))
    n_iter = check_integer("n_iter", n_iter, 0, 1000)
    width = min(k + check_integer("n_oversamples", n_oversamples, 0, 10_000), n, d)
    dtype = output_dtype(joined_dtype(rows.parts))
    check_width(d, 2 * dtype.itemsize * width, f"a basis of {width} directions")
    rows, scale = _scaled(rows, dtype)
    basis = _orthonormal(_random_combinations(rows, width, seed, dtype))
    for _ in range(n_iter):
        sums = np.zeros((d, width), dtype)
        for block in _blocks(rows, width):
            backend().add_transposed(*block.arrays, multiply(block, basis), sums)
        basis = _orthonormal(sums)
    triangle = np.empty((0, width))  # of the QR decomposition of the projected rows so far
    for block in _blocks(rows, width):
        triangle = np.linalg.qr(np.vstack([triangle, multiply(block, basis)]), mode="r")
    _, values, turn = np.linalg.svd(triangle)
    with np.errstate(over="ignore"):
        values = values[:k] / scale
    components = (basis @ turn[:k].T.astype(dtype)).T
    most = np.finfo(dtype).max
    if values[0] > most:
        raise InputError(f"the largest singular value of X is beyond {most:.3g}, the most that {dtype} can hold")
    signs = np.sign(components[np.arange(k), np.abs(components).argmax(axis=1)])
    components = components * np.where(signs == 0, 1, signs).astype(dtype)[:, None]
    return TruncatedSVD(components, values.astype(dtype))


def _scaled(rows: Rows, dtype: np.dtype) -> tuple[Rows, float]:
    """The rows times a power of two, if their fourth powers, which are added up, might be beyond the smallest or
    largest numbers there are.
    """
    largest = max((float(np.abs(part.values).max(initial=0)) for part in rows.parts), default=0.0)
    if largest == 0 or 2.0**-16 < largest < 2.0**16:
        return rows, 1.0
    scale = 2.0 ** min(-np.floor(np.log2(largest)), np.finfo(dtype).maxexp - 1)
    parts = [replace(part, values=(part.values * dtype.type(scale)).astype(dtype)) for part in rows.parts]
    return replace(rows, parts=parts), scale


def multiply(rows: CsrBatch, table: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return rows @ table, where the table has a row for each column."""
    out = np.empty((rows.n_rows, table.shape[1]), table.dtype) if out is None else out
    backend().multiply_table(*rows.arrays, table, out)
    return out


def _random_combinations(rows: Rows, width: int, seed: int, dtype) -> np.ndarray:
    """X^T times a Gaussian projection matrix of the row numbers."""
    weights, sums, start = Gaussian(width).sample(rows.n_rows, seed), np.zeros((rows.n_columns, width), dtype), 0
    for block in _blocks(rows, width):
        normals = weights.block(slice(start, start + block.n_rows), dtype=dtype)
        backend().add_transposed(*block.arrays, normals, sums)
        start += block.n_rows
    return sums


def _orthonormal(sums: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the span of the columns, d x width, in the memory of `sums` where it can be.

    By Cholesky: with the triangle R of the Gram matrix, sums R^-1 is orthonormal but for rounding, and doing it once
    more removes that (Yamamoto and others, 2015). All of it is products of large matrices, several times as fast as
    Householder's reflections, which remain for columns that depend on each other as nearly as rounding can tell.
    """
    gram = np.zeros((sums.shape[1],) * 2)
    for block in _dense_blocks(sums):
        gram += _gram(block)
    for _ in range(3):
        inverse = _inverse_triangle(gram)
        if inverse is None or np.abs(inverse).max() > np.finfo(sums.dtype).max:
            break
        inverse, gram = inverse.astype(sums.dtype), np.zeros_like(gram)
        for block in _dense_blocks(sums):
            block[:] = block @ inverse
            gram += _gram(block)
        if np.abs(gram - np.eye(len(gram))).max() < 64 * np.finfo(sums.dtype).eps:
            return sums
    # RQ of the transpose, which lies in memory as LAPACK wants it, has the basis in its rows.
    _, q = linalg.rq(sums.T, mode="economic", overwrite_a=True, check_finite=False)
    return np.ascontiguousarray(q.T)


def _dense_blocks(rows: np.ndarray):
    """Views of the rows, small enough to be copied."""
    step = max(1, _BLOCK_NUMBERS // rows.shape[1])
    return (rows[start : start + step] for start in range(0, len(rows), step))


def _gram(block: np.ndarray) -> np.ndarray:
    block = block.astype(np.float64, copy=False)
    return block.T @ block


def _inverse_triangle(gram: np.ndarray) -> np.ndarray | None:
    """The inverse of the upper triangle R with R^T R = gram; None where rounding hides that gram is positive."""
    scale = np.sqrt(np.diag(gram))
    if not (scale > 0).all() or not np.isfinite(gram).all():
        return None
    triangle, info = linalg.lapack.dpotrf(gram / scale / scale[:, None])
    # Columns of length one: what a column has beyond those before it must stand out from rounding.
    if info or np.diag(triangle).min() < 1e-7:
        return None
    return linalg.lapack.dtrtri(triangle)[0] / scale[:, None]


def _blocks(rows: Rows, width: int):
    step = max(1, _BLOCK_NUMBERS // width)
    for part in rows.parts:
        for start in range(0, part.n_rows, step):
            yield part.rows(slice(start, min(part.n_rows, start + step)))
