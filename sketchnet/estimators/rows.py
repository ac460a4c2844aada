"""Rows of any kind for estimators: arrays, sparse matrices, tensors, data sets."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, cast

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, check_X_y, validate_data

from sketchnet.data.csr import CsrBatch, as_csr, sparse_rows, without_torch
from sketchnet.data.shard_set import ShardSet
from sketchnet.errors import InputError
from sketchnet.projection.rows import opened


def opened_rows(estimator, X, *, reset: bool):
    """A data set (a `CsrBatch`, a `ShardSet` or its folder) whose columns fit the estimator, or set its width; what
    scikit-learn should check comes back as it is, tensors as arrays.
    """
    X = without_torch(opened(X))
    if not isinstance(X, CsrBatch | ShardSet):
        return X
    if reset:
        estimator.n_features_in_ = X.n_columns
        vars(estimator).pop("feature_names_in_", None)  # of other data
    elif X.n_columns > estimator.n_features_in_ and not _takes_any_id(estimator):
        raise InputError(f"X has {X.n_columns} columns, but {type(estimator).__name__} is expecting "
                         f"{estimator.n_features_in_} features")  # fmt: skip
    return X


def _takes_any_id(estimator) -> bool:
    return bool(getattr(estimator, "hashed_columns", None))


def widened(X: CsrBatch | ShardSet, n_columns: int) -> CsrBatch | ShardSet:
    """The same rows, of which the last columns happen to be empty."""
    if isinstance(X, CsrBatch):
        return dataclasses.replace(X, n_columns=n_columns)
    X = copy.copy(X)
    X.n_columns = n_columns
    return X


class SparseInput:
    """For estimators that keep a `sketchnet.training.Model` in `model_`."""

    model_: Any
    n_features_in_: int

    def _rows(self, X, *, reset: bool = False):
        X = opened_rows(self, X, reset=reset)
        if isinstance(X, CsrBatch | ShardSet):
            return X
        fit_for_us = sparse.issparse(X) and X.format == "csr" and X.dtype in (np.float32, np.float64)
        if reset or not fit_for_us or X.ndim != 2 or X.shape[1] != self.n_features_in_ or X.shape[0] == 0:
            X = self._validated(X, reset=reset)
        return self._batch(X)  # whose own checks take a tenth of the time, which counts for single rows

    def _validated(self, X, *y, reset: bool, **how):
        """X, or (X, y), as scikit-learn checks them. Sparse rows may have any width where any id is allowed."""
        how = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], **how}
        if reset or not _takes_any_id(self) or not sparse.issparse(X):
            return validate_data(self, X, *y, reset=reset, **how)
        return check_X_y(X, *y, **how) if y else check_array(X, **how)

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
        tags = cast(Any, super()).__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
