"""Codes of documents, checked and scaled to length one, so that an inner product is the cosine of their angle."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from sketchnet.errors import InputError

PANEL = 256  # documents side by side: a panel of short codes stays in the first-level cache
_GROUP = 4  # numbers of a code that kernels take at a time


def check_codes(name: str, codes) -> np.ndarray:
    """A two-dimensional array of real numbers; whether they are finite is seen when they are scaled."""
    if sparse.issparse(codes):
        raise InputError(f"{name} are a sparse matrix; they must be a dense array with a row for each document")
    try:
        array = np.asarray(codes)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} are not an array of numbers: {error}") from None
    if array.ndim != 2 or array.dtype.kind not in "biuf" or array.shape[1] == 0:
        given = f"shape {array.shape} and type {array.dtype}"
        raise InputError(f"{name} have {given}; they must be real numbers with a row for each document")
    if len(array) >= 2**32:
        raise InputError(f"{name} have {len(array)} rows; there may be at most 2^32 - 1")
    return array


def unit_rows(name: str, codes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(number of the first row, float32 rows of length one) for a panel's worth of codes after the other.

    A code of zeros stays one: its similarity to all others is zero.
    """
    for first in range(0, len(codes), PANEL):
        rows = codes[first : first + PANEL].astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            raise InputError(f"row {first + bad[0]} of {name} has a number that is not finite")
        # Squares of tiny or huge numbers would vanish or overflow. Powers of two scale without rounding.
        rows = np.ldexp(rows, -np.frexp(np.abs(rows).max(axis=1, keepdims=True))[1])
        norms = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
        yield first, (rows / np.where(norms > 0, norms, 1)).astype(np.float32)


def panels(name: str, codes: np.ndarray) -> np.ndarray:
    """Scaled codes in the layout that kernels take: column c of result[p] is document PANEL * p + c."""
    n, k = codes.shape
    packed = np.zeros((-(-n // PANEL), padded(k), PANEL), np.float32)
    for first, rows in unit_rows(name, codes):
        packed[first // PANEL, :k, : len(rows)] = rows.T
    return packed


def unpack(packed: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Rows of the documents with these numbers."""
    return packed[numbers // PANEL, :, numbers % PANEL]


def padded(k: int) -> int:
    return -(-k // _GROUP) * _GROUP


def panels_bytes(n: int, k: int) -> int:
    """What `panels` takes: the result, and some copies of a panel on the way."""
    return 4 * (n + PANEL) * padded(k) + 4 * 8 * PANEL * k
