"""What the columns of some rows mean: sums of their values by class, label or number, and by fold of the rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from sketchnet.experts.rows import Sample
from sketchnet.kernels.cpu import column_statistics as kernels

_LOOKED_AT = 100_000  # values, at most, for the knots
_SIGNED = [0.001, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 0.999]  # quantiles where values have two signs
_POSITIVE = [0.02, 0.5, 0.98]


def choose_knots(values: np.ndarray) -> np.ndarray:
    """Return ascending values between which weights are interpolated: one, if all values are equal."""
    some = values[:: max(1, len(values) // _LOOKED_AT)]
    if not len(some):
        return np.ones(1, np.float32)
    return np.unique(np.quantile(some, _SIGNED if some.min() < 0 < some.max() else _POSITIVE).astype(np.float32))


def draw_folds(sample: Sample, n_folds: int, random: np.random.Generator) -> np.ndarray:
    """Return the fold of each row; rows of one group share theirs."""
    if sample.groups is None:
        return random.permutation(np.arange(sample.rows.n_rows) % n_folds)
    _, group = np.unique(sample.groups, return_inverse=True)
    return random.permutation(np.arange(group.max(initial=-1) + 1) % n_folds)[group]


def mean_one(sample: Sample) -> np.ndarray:
    """Return the weights of the rows, with mean one."""
    if sample.weights is None:
        return np.ones(sample.rows.n_rows)
    return sample.weights * (len(sample.weights) / sample.weights.sum())


class Marks(NamedTuple):
    """Which rows count for which output, and how much. A mark that is no output's tells what else occurred."""

    marks: np.ndarray
    rows: np.ndarray
    weights: np.ndarray
    first_of_total: int  # marks from this one on make up the total: all of them for classes, else one of its own

    @classmethod
    def read(cls, sample: Sample, kind: str, n_outputs: int) -> Marks:
        rows, weights = np.arange(sample.rows.n_rows), mean_one(sample)
        if kind == "multilabel":
            labels = sparse.coo_array(sample.targets)
            every = np.full(len(rows), n_outputs)
            own, total = np.r_[labels.col, every], np.r_[labels.row, rows]
            return cls(own.astype(np.int64), total.astype(np.int64), weights[np.r_[labels.row, rows]], n_outputs)
        targets = np.asarray(sample.targets)
        if kind == "regression":
            return cls(np.repeat([0, 1], len(rows)), np.tile(rows, 2), np.r_[weights * targets, weights], 1)
        return cls((1 - targets if kind == "binary" else targets).astype(np.int64), rows, weights, 0)

    def shares(self, n_outputs: int) -> np.ndarray:
        """Return each output's share of all rows, never quite 0 or 1."""
        sums = np.bincount(self.marks, self.weights, minlength=n_outputs + 1)
        return ((sums[:n_outputs] + 0.5) / (sums[self.first_of_total :].sum() + 1)).astype(np.float32)


class Described(NamedTuple):
    """What is known of the weights of some columns: see kernels/cpu/column_statistics.py."""

    starts: np.ndarray
    outputs: np.ndarray
    numbers: np.ndarray  # a row for each group of weights


class ColumnStatistics:
    """Sums for each column, in memory that follows the entries of the rows."""

    def __init__(self, sample: Sample, kind: str, n_outputs: int, knots: np.ndarray, folds: np.ndarray | None = None):
        rows, marks = sample.rows, Marks.read(sample, kind, n_outputs)
        self._n_folds = 1 if folds is None else int(folds.max(initial=0)) + 1
        self.shares = np.ones(1, np.float32) if kind == "regression" else marks.shares(n_outputs)
        self._settings = n_outputs, marks.first_of_total, kind == "regression", self.shares
        # Without a fold sums are smaller; made as large as those of all rows, they mean the same to the function.
        in_fold = np.bincount(np.zeros(rows.n_rows, np.int64) if folds is None else folds, mean_one(sample))
        self._scales = in_fold.sum() / np.maximum(in_fold.sum() - in_fold, 1e-9)
        keys = marks.marks if folds is None else marks.marks * self._n_folds + folds[marks.rows]
        order = np.argsort(keys, kind="stable")
        owners, keys, weights = marks.rows[order], keys[order].astype(np.int32), marks.weights[order]
        counts = np.zeros(rows.n_columns + 1, np.int64)
        kernels.count_cells(rows.indptr, rows.indices, owners, keys, counts[1:])
        self._offsets = counts.cumsum()
        self._keys = np.empty(self._offsets[-1], np.int32)
        self._sums = np.zeros((self._offsets[-1], len(knots)), np.float32)
        entries = (*rows.arrays, owners, keys, weights.astype(np.float32), knots)
        kernels.fill_cells(*entries, self._offsets[1:], self._keys, self._sums)

    @property
    def n_columns(self) -> int:
        return len(self._offsets) - 1

    def describe(self, columns: np.ndarray, without: int = -1) -> Described:
        """Return what is known of the columns from all rows but those of the fold `without`."""
        cells = (self._offsets, self._keys, self._sums, self._n_folds)
        scale = 1.0 if without < 0 else self._scales[without]
        return Described(*kernels.describe_columns(columns, *cells, without, *self._settings, scale))
