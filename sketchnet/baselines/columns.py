"""Fewer columns, for models whose cost follows the width: hashed together, or the best by chi-square."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sketchnet import random
from sketchnet.checks import check_choice, check_integer

KINDS = ("chi2", "hashed")


class FewColumns:
    """`fit` looks at training rows alone. Columns of test rows that it did not see are left out by "chi2"."""

    def __init__(self, kind: str, width: int, seed: int = 0):
        self.kind = check_choice("columns", kind, KINDS)
        self.width = check_integer("width", width, 1, 2**31 - 1)
        self.seed = seed

    def fit(self, X: sparse.csr_array, y: np.ndarray) -> FewColumns:
        if self.kind == "hashed":
            return self
        seen, numbers = np.unique(X.indices, return_inverse=True)
        if len(seen) > self.width:
            from sklearn.feature_selection import chi2

            # Only columns with a non-zero are scored: the width of the raw data costs nothing.
            dense_ids = sparse.csr_array((np.abs(X.data), numbers.astype(X.indices.dtype), X.indptr))
            scores = np.nan_to_num(chi2(dense_ids, y)[0], nan=-1.0)
            seen = np.sort(seen[np.argpartition(scores, -self.width)[-self.width :]])
        self._kept = seen
        return self

    def transform(self, X: sparse.csr_array) -> sparse.csr_matrix:
        """A matrix of the older kind, which XGBoost and LightGBM want."""
        if self.kind == "hashed":
            key = random.hash_key(self.seed, random.STREAM_TABLE)
            with np.errstate(over="ignore"):
                h = random.hash64(X.indices.astype(np.uint64), *key)
            places = random.bucket_of(h, np.uint64(self.width)).astype(np.int32)
            few = sparse.csr_matrix((X.data, places, X.indptr), shape=(X.shape[0], self.width))
            few.sum_duplicates()
            return few
        width = max(1, len(self._kept))
        places = np.searchsorted(self._kept, X.indices).clip(max=width - 1)
        known = self._kept[places] == X.indices if len(self._kept) else np.zeros(X.nnz, bool)
        ends = np.concatenate([[0], np.cumsum(known)])[X.indptr]
        arrays = X.data[known], places[known].astype(np.int32), ends.astype(np.int32)
        return sparse.csr_matrix(arrays, shape=(X.shape[0], width))
