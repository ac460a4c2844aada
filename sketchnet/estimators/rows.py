"""Rows of any kind for estimators whose model is a `sketchnet.training.Model`: arrays, sparse matrices, data sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from sketchnet.data.csr import CsrBatch, as_csr, sparse_rows
from sketchnet.data.shard_set import ShardSet, open_shards
from sketchnet.errors import InputError


class SparseInput:
    """Keeps its model in `model_`."""

    def _rows(self, X, *, reset: bool = False):
        if isinstance(X, str | Path):
            X = open_shards(X)
        if isinstance(X, CsrBatch | ShardSet):
            if reset:
                self.n_features_in_ = X.n_columns
            elif X.n_columns > self.n_features_in_ and not getattr(self, "hashed_columns", None):
                raise InputError(f"X has {X.n_columns} columns, but {type(self).__name__} is expecting "
                                 f"{self.n_features_in_} features")  # fmt: skip
            return X
        fit_for_us = sparse.issparse(X) and X.format == "csr" and X.dtype in (np.float32, np.float64)
        if reset or not fit_for_us or X.ndim != 2 or X.shape[1] != self.n_features_in_ or X.shape[0] == 0:
            X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        return self._batch(X)  # whose own checks take a tenth of the time, which counts for single rows

    def _batch(self, X) -> CsrBatch:
        return as_csr(X, X.shape[1]) if sparse.issparse(X) else sparse_rows(X)

    def _set_history(self) -> None:
        model = self.model_
        self.history_ = model.history
        self.n_epochs_ = sum("epoch" in record and "stage" not in record for record in model.history)
        self.best_epoch_ = next((record["best_epoch"] for record in model.history if "best_epoch" in record), None)
        self.settings_ = {**model.network.config.to_dict(), **model.training.to_dict()}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
