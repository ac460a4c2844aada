"""Fewer columns, for models whose cost follows the width: those seen, the best by chi-square, or all hashed."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sketchnet import random
from sketchnet.checks import check_choice, check_integer

KINDS = ("seen", "chi2", "hashed")
_TABLE = 2**27  # columns up to which a table of new numbers is faster than a search, and small enough


class FewColumns:
    """`fit` looks at training rows alone. Other columns of later rows are left out, except by "hashed".

    "seen" keeps every column that has a training entry: a linear model loses nothing, since weights of others are 0.
    """

    def __init__(self, kind: str, width: int = 2**31 - 1, seed: int = 0):
        self.kind = check_choice("columns", kind, KINDS)
        self.width = check_integer("width", width, 1, 2**31 - 1)
        self.seed = seed

    def fit(self, X: sparse.csr_array, y: np.ndarray) -> FewColumns:
        if self.kind == "hashed":
            return self
        self._keep(_distinct(X), X.shape[1])
        if self.kind == "chi2" and len(self._kept) > self.width:
            from sklearn.feature_selection import chi2

            # Only columns with an entry are scored: the width of the raw data costs nothing.
            scores = np.nan_to_num(chi2(abs(self.transform(X)), y)[0], nan=-1.0)
            best = np.argpartition(scores, -self.width)[-self.width :]
            self._keep(np.sort(self._kept[best]), X.shape[1])
        return self

    @property
    def n_columns(self) -> int:
        """The width of what `transform` returns."""
        return self.width if self.kind == "hashed" else max(1, len(self._kept))

    def transform(self, X: sparse.csr_array) -> sparse.csr_matrix:
        """A matrix of the older kind, which XGBoost and LightGBM want. Its values are its own."""
        if self.kind == "hashed":
            places = hashed(X.indices, self.width, self.seed).astype(np.int32)
            few = sparse.csr_matrix((X.data.copy(), places, X.indptr.copy()), shape=(X.shape[0], self.width))
            few.sum_duplicates()
            return few
        places = self._places(X.indices)
        known = places >= 0
        ends = np.concatenate([[0], np.cumsum(known)])[X.indptr]
        arrays = X.data[known], places[known].astype(np.int32), ends.astype(np.int32)
        return sparse.csr_matrix(arrays, shape=(X.shape[0], self.n_columns))

    def _keep(self, columns: np.ndarray, n_columns: int) -> None:
        self._kept, self._numbers = columns, None
        if n_columns <= _TABLE:
            self._numbers = np.full(n_columns, -1, np.int32)
            self._numbers[columns] = np.arange(len(columns), dtype=np.int32)

    def _places(self, columns: np.ndarray) -> np.ndarray:
        """New numbers of columns; -1 for those that are not kept."""
        if self._numbers is not None:
            return self._numbers[columns]
        places = np.searchsorted(self._kept, columns).clip(max=max(0, len(self._kept) - 1))
        return np.where(self._kept[places] == columns, places, -1) if len(self._kept) else np.full(len(columns), -1)


def hashed(columns: np.ndarray, width: int, seed: int) -> np.ndarray:
    """Places from 0 to width - 1, drawn by the seed."""
    with np.errstate(over="ignore"):
        h = random.hash64(columns.astype(np.uint64), *random.hash_key(seed, random.STREAM_TABLE))
    return random.bucket_of(h, np.uint64(width))


def _distinct(X: sparse.csr_array) -> np.ndarray:
    if X.shape[1] > _TABLE:
        return np.unique(X.indices)
    seen = np.zeros(X.shape[1], bool)
    seen[X.indices] = True
    return np.flatnonzero(seen)
