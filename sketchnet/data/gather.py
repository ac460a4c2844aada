"""Rows of CsrBatches, picked and joined."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.kernels import backend


def take_rows(batch: CsrBatch, rows: np.ndarray) -> CsrBatch:
    """The given rows, in the given order, copied."""
    indptr, indices, values = backend().gather_rows(*batch.arrays, rows)
    labels, label_indptr = batch.labels, batch.label_indptr
    if label_indptr is not None:
        label_indptr, labels, _ = backend().gather_rows(label_indptr, labels, labels, rows)
    elif labels is not None:
        labels = labels[rows]
    groups = None if batch.groups is None else batch.groups[rows]
    return CsrBatch(indptr, indices, values, batch.n_columns, labels, label_indptr, groups)


def concatenate(batches: list[CsrBatch], n_columns: int) -> CsrBatch:
    """Batches below each other; a single one is passed on as it is. They must have the same kind of labels."""
    if len(batches) == 1:
        return replace(batches[0], n_columns=n_columns)
    if len({kind_of(batch) for batch in batches}) > 1:
        raise InputError("some rows have labels, several labels or query ids where others have not")
    several = batches[0].label_indptr is not None
    return CsrBatch(
        _join_offsets([batch.indptr for batch in batches]),
        _join([batch.indices for batch in batches]),
        _join([batch.values for batch in batches]),
        n_columns,
        _join([batch.labels for batch in batches]),
        _join_offsets([batch.label_indptr for batch in batches]) if several else None,
        _join([batch.groups for batch in batches]),
    )


def kind_of(batch: CsrBatch) -> str:
    """Which labels its rows have; only batches of one kind go together."""
    labels = "no labels" if batch.labels is None else "one label" if batch.label_indptr is None else "several labels"
    return labels + ("" if batch.groups is None else " and a query id")


def _join(arrays: list) -> Any:
    return None if arrays[0] is None else np.concatenate(arrays)


def _join_offsets(offsets: list) -> np.ndarray:
    ends = np.cumsum([0] + [int(part[-1]) - int(part[0]) for part in offsets])
    shifted = [part[1:].astype(np.int64) + (end - int(part[0])) for part, end in zip(offsets, ends)]
    return np.concatenate([np.zeros(1, np.int64), *shifted])
