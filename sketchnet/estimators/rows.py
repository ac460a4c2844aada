"""Rows of any kind for estimators: arrays, sparse matrices, tensors, data sets."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, cast

from sketchnet.data.csr import CsrBatch, without_torch
from sketchnet.data.shard_set import ShardSet
from sketchnet.errors import InputError
from sketchnet.projection.rows import opened


def keep_parameters(estimator, values: dict) -> None:
    """Set what a constructor was given, its `locals()`, as scikit-learn wants it: under the same names, unchanged."""
    for name, value in values.items():
        if name != "self":
            setattr(estimator, name, value)


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
    elif X.n_columns > estimator.n_features_in_ and not takes_any_id(estimator):
        raise InputError(f"X has {X.n_columns} columns, but {type(estimator).__name__} is expecting "
                         f"{estimator.n_features_in_} features")  # fmt: skip
    return X


def takes_any_id(estimator) -> bool:
    return bool(getattr(estimator, "hashed_columns", None))


def widened(X: CsrBatch | ShardSet, n_columns: int) -> CsrBatch | ShardSet:
    """The same rows, of which the last columns happen to be empty."""
    if isinstance(X, CsrBatch):
        return dataclasses.replace(X, n_columns=n_columns)
    X = copy.copy(X)
    X.n_columns = n_columns
    return X


class SparseInput:
    """For estimators that take sparse rows; transformers of them keep float32. Stands before scikit-learn's mixins."""

    def __sklearn_tags__(self):
        tags = cast(Any, super()).__sklearn_tags__()
        tags.input_tags.sparse = True
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
