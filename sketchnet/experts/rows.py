"""Rows whose columns are numbered by how often they occur: what experts learn from.

Frequent columns come first, so what belongs to them lies together and stays in the processor's caches. Memory follows
the columns that occur, whatever their ids.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchnet.data.batches import iterate_numbered
from sketchnet.data.csr import CsrBatch, without_repeats
from sketchnet.data.gather import concatenate, take_rows
from sketchnet.errors import InputError

_ROWS = 1 << 16  # of a data set on disk, read at a time
_ALIKE = 10.0  # times the median size of columns: numbers up to that are left as they are


@dataclass(frozen=True)
class Sample:
    """Rows with numbered columns, their encoded targets, and what else is known of them.

    `weights` has a weight for each row if they differ; `groups` a number for each row, where rows of one group must not
    be told apart (they share a fold); `fields` the number of each column's field, where rows are those of a table: of
    the columns of a field a row has one, or none. -1: a column that is a number, not one of several categories.
    """

    rows: CsrBatch
    targets: Any
    weights: np.ndarray | None = None
    groups: np.ndarray | None = None
    fields: np.ndarray | None = None

    def take(self, numbers: np.ndarray) -> Sample:
        """Return some of the rows, copied."""
        weights, groups = (None if part is None else part[numbers] for part in (self.weights, self.groups))
        return Sample(take_rows(self.rows, numbers), self.targets[numbers], weights, groups, self.fields)


class SeenColumns:
    """The ids of the columns that occur in some rows, most frequent first. All others share one more number.

    `scales`: what the values of each column are multiplied by, where columns are numbers of different sizes.
    """

    def __init__(self, ids: np.ndarray, scales: np.ndarray | None = None):
        from sketchnet.kernels.cpu.column_ids import ColumnNumbers

        if len(ids) >= 2**32 - 1:
            raise InputError(f"{len(ids):,} columns occur; at most {2**32 - 2:,} are possible")
        self.ids, self.scales, self._numbers = ids, scales, ColumnNumbers(ids)

    @classmethod
    def count(cls, data) -> SeenColumns:
        """Return those of a CsrBatch or a data set on disk."""
        from sketchnet.kernels.cpu.column_ids import ColumnCounts

        counts = ColumnCounts()
        for batch in _batches(data):
            counts.add(batch.indices)
        return cls(counts.by_frequency())

    def compact(self, data) -> CsrBatch:
        """Return the rows with numbered columns, ids that a row repeats added up, and float32 values."""
        return concatenate([self._compact(batch) for batch in _batches(data)], len(self.ids) + 1)

    def _compact(self, batch: CsrBatch) -> CsrBatch:
        batch = without_repeats(batch)
        offsets = (batch.indptr - batch.indptr[0]).astype(np.int64)
        numbers, values = self._numbers.look_up(batch.indices), batch.values.astype(np.float32, copy=False)
        values = values if self.scales is None else values * self.scales[numbers]
        return CsrBatch(offsets, numbers, values, len(self.ids) + 1)

    def scale_numbers(self, rows: CsrBatch, fields: np.ndarray | None) -> CsrBatch:
        """Return numbered rows with columns of numbers on one scale, if theirs differ; from here on, all rows get it.

        Linear models and networks would else hear of the largest numbers alone, such as prices beside counts.
        """
        if fields is None or not (fields[:-1] < 0).any():
            return rows
        counts = np.bincount(rows.indices, minlength=rows.n_columns)
        squares = np.bincount(rows.indices, np.square(rows.values, dtype=np.float64), minlength=rows.n_columns)
        sizes = np.sqrt(squares / np.maximum(counts, 1))
        numbers = (fields < 0) & (sizes > 0)
        if sizes[numbers].max() <= _ALIKE * np.median(np.where(numbers, sizes, 1.0)[sizes > 0]):
            return rows
        self.scales = np.where(numbers, 1 / np.where(numbers, sizes, 1), 1).astype(np.float32)
        return replace(rows, values=rows.values * self.scales[rows.indices])


def _batches(data):
    if isinstance(data, CsrBatch):
        yield data
        return
    for _, batch in iterate_numbered(data, _ROWS, shuffle=False):
        yield batch
