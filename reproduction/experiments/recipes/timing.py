"""How long projections take: in one go, as drawing P and multiplying apart, and how that grows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from math import log
from statistics import median

import numpy as np
from scipy import sparse

from reproduction.experiments.recipes.synthetic import synthetic_rows
from sketchnet.data import CsrBatch
from sketchnet.nn import LearnableProjection
from sketchnet.projection import make_scheme

_PANEL = 64  # columns of a dense P that are there at a time
_GROWTH = 4  # from the smaller size to the larger one, for slopes


def projection_time(*, seed, device, n, d, density, significant, scheme, n_components, options, repeats) -> dict:
    """Seconds, medians of `repeats`: "seconds" for the training rows times P as this package does it, which draws P in
    passing; "generation" and "multiplication" with P written out, as the dissertation did it. On the processor.
    """
    rows, _ = synthetic_rows(n, d, density, significant)
    operator = make_scheme(scheme, n_components, **options).sample(d, seed)

    def project(X: CsrBatch) -> float:
        return _clock(lambda: operator.apply(X, sparse_output=operator.sparse))

    project(rows.rows(slice(0, 2)))  # what is compiled at first use is not timed
    _apart(operator, rows.rows(slice(0, 2)))
    generation, multiplication = map(median, zip(*(_apart(operator, rows) for _ in range(repeats))))
    whole = median(project(rows) for _ in range(repeats))
    return {"seconds": whole, "generation": generation, "multiplication": multiplication}


def cost_slopes(*, seed, device, n, d, density, significant, scheme, n_components, options, repeats) -> dict:
    """Powers of d, k and the non-zeros with which the times of `projection_time` grow, from here to four times that.

    "by_entries" compares rows of the same width that have four times as many non-zeros; where options do not say
    otherwise, Li's s is sqrt(d), and so grows with d.
    """

    def times(scheme_d: int, k: int, X: CsrBatch | None) -> tuple[float, float]:
        operator = make_scheme(scheme, k, **options).sample(scheme_d, seed)
        return tuple(map(median, zip(*(_apart(operator, X) for _ in range(repeats)))))

    base, _ = synthetic_rows(n, d, density, significant)
    thick, _ = synthetic_rows(n, d, density * _GROWTH, significant)
    times(d, n_components, base.rows(slice(0, 2)))  # compiles
    small, wide = times(d, n_components, base), times(d, n_components * _GROWTH, base)
    long, full = times(d * _GROWTH, n_components, None), times(d, n_components, thick)
    return {
        "generation_by_d": _power(long[0], small[0]),
        "generation_by_k": _power(wide[0], small[0]),
        "multiplication_by_entries": _power(full[1], small[1]),
        "multiplication_by_k": _power(wide[1], small[1]),
    }


def learning_slopes(*, seed, device, n, d, density, significant, scheme, n_components, options, repeats) -> dict:
    """Powers with which the time of a learnable layer's step (forward and backward) grows: with the non-zeros of a
    batch, and with d at the same non-zeros.
    """

    def step(width: int, batch: CsrBatch) -> float:
        layer = LearnableProjection(width, n_components, scheme, seed=seed, **options)
        batch = replace(batch, n_columns=width)
        runs = [_clock(lambda: layer(batch).sum().backward()) for _ in range(repeats + 1)]
        return median(runs[1:])  # the first one compiles

    batch, _ = synthetic_rows(n, d, density, significant)
    thick, _ = synthetic_rows(n, d, density * _GROWTH, significant)
    # The same columns, spread over four times the width: every one of them four times as far from the first.
    spread = replace(batch, indices=batch.indices * _GROWTH)
    small = step(d, batch)
    return {"by_entries": _power(step(d, thick), small), "by_d": _power(step(d * _GROWTH, spread), small)}


def _apart(operator, X: CsrBatch | None) -> tuple[float, float]:
    """(seconds of drawing P, of multiplying by it, if there are rows); a dense P comes in panels of columns."""
    generation = multiplication = 0.0
    matrix = None if X is None else X.scipy()
    for columns in [None] if operator.sparse else range(0, operator.k, _PANEL):
        begun = time.perf_counter()
        P = _draw(operator, columns)
        drawn = time.perf_counter()
        if matrix is not None:
            matrix @ P
        generation += drawn - begun
        multiplication += time.perf_counter() - drawn
    return generation, multiplication


def _draw(operator, first: int | None) -> np.ndarray | sparse.csr_array:
    if first is not None:
        return operator.block(slice(None), slice(first, min(first + _PANEL, operator.k)))
    indptr, codes = operator.pattern(np.arange(operator.d))
    signs = np.where(codes < 0, -operator.scale, operator.scale).astype(np.float32)
    return sparse.csr_array((signs, np.where(codes < 0, ~codes, codes), indptr), shape=(operator.d, operator.k))


def _clock(work: Callable) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _power(larger: float, smaller: float) -> float:
    return log(larger / smaller) / log(_GROWTH)
