"""Back from the projection to the original columns, by least squares, without storing P."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sketchnet.errors import InputError
from sketchnet.memory import parse_memory
from sketchnet.projection.operator import Operator, output_dtype
from sketchnet.projection.slicing import spans


def least_squares_inverse(operator: Operator, Y, memory: str | int | None = None) -> np.ndarray:
    """Y P^+, with P^+ = (P^T P)^+ P^T: the rows x of least norm that bring x P as close to Y's rows as can be.

    P is drawn in row slices, twice: once for the k x k matrix P^T P, once to multiply by P^T.
    """
    Y = Y.toarray() if sparse.issparse(Y) else np.asarray(Y)
    if Y.ndim != 2 or Y.shape[1] != operator.k:
        raise InputError(f"X has shape {Y.shape}; the projection has {operator.k} columns")
    coefficients = operator.solve_gram(Y, memory)
    out = np.empty((len(Y), operator.d), output_dtype(Y.dtype, None))
    for span in spans(operator.d, max(1, parse_memory(memory) // (32 * operator.k))):
        out[:, span] = coefficients @ operator.block(span, dtype=np.float64).T
    return out
