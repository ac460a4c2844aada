"""Labels as the numbers of their classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sketchnet.errors import InputError


@dataclass(frozen=True)
class Classes:
    """numbers[r] is the class of row r, from 0 on in the order of the labels; class c has counts[c] rows."""

    numbers: np.ndarray
    counts: np.ndarray

    @property
    def n(self) -> int:
        return len(self.counts)


def number_classes(y, n_rows: int) -> Classes:
    """The classes of `n_rows` labels of any kind that can be sorted."""
    if sparse.issparse(y):
        raise InputError("y has several labels a row; scores of columns take one")
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise InputError(f"y has {y.ndim} dimensions; it must have one, a label for each row")
    if len(y) != n_rows:
        raise InputError(f"y has {len(y)} labels, but X has {n_rows} rows")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InputError("Input y contains NaN or infinity; labels are classes")
    numbers, counts = _by_counting(y) if y.dtype.kind in "biuf" and n_rows else _by_sorting(y)
    if len(counts) < 2:
        raise InputError(f"y has {len(counts)} class; scores of columns tell at least two classes apart")
    return Classes(numbers, counts)


def _by_counting(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Without sorting, where labels are integers that lie close together, as they mostly do."""
    low, high = y.min(), y.max()
    if float(high) - float(low) >= 2 * len(y) + 256 or max(abs(float(low)), abs(float(high))) >= 2**52:
        return _by_sorting(y)
    whole = y.astype(np.int64)
    if y.dtype.kind == "f" and not np.array_equal(whole, y):
        return _by_sorting(y)
    whole -= int(low)
    counts = np.bincount(whole)
    if counts.all():
        return whole.astype(np.int32), counts
    return (np.cumsum(counts > 0) - 1)[whole].astype(np.int32), counts[counts > 0]


def _by_sorting(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    try:
        _, numbers, counts = np.unique(y, return_inverse=True, return_counts=True)
    except TypeError:
        raise InputError("the labels in y cannot be sorted; give labels of one kind, numbers or text") from None
    return numbers.astype(np.int32), counts
