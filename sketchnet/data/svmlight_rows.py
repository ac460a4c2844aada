"""The rows that parsing svmlight text fills: arrays that grow at the end."""

from __future__ import annotations

import numpy as np

from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.kernels.cpu import svmlight as kernels
from sketchnet.kernels.cpu.threads import over_range

# Doubles from here on become infinite: for float32 that is halfway to the number that would follow the largest.
TOO_LARGE = {np.dtype(np.float64): np.inf, np.dtype(np.float32): float.fromhex("0x1.ffffffp127")}


class Rows:
    """Arrays of rows that grow at the end."""

    def __init__(self, dtype):
        self.values = np.empty(0, dtype)
        if self.values.dtype not in TOO_LARGE:
            raise InputError(f"dtype is {np.dtype(dtype)}; allowed are float32 and float64")
        self.indptr, self.label_indptr = np.zeros(1, np.int64), np.zeros(1, np.int64)
        # Most ids fit 32 bits, which saves a third of the memory; see `widen`.
        self.indices, self.groups, self.labels = np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0)
        self.end, self.max_id = np.zeros(3, np.int64), -1

    @property
    def n_rows(self) -> int:
        return int(self.end[0])

    def reserve(self, bounds: np.ndarray, further: float | None) -> tuple:
        """Make room for so many rows, entries and labels; returns the arrays as the kernel takes them."""
        n_rows, n_entries, n_labels = (int(x) for x in self.end)
        rows, entries, labels = (int(x) for x in bounds)
        for name, used, new in (
            ("indptr", n_rows + 1, rows),
            ("label_indptr", n_rows + 1, rows),
            ("groups", n_rows, rows),
            ("indices", n_entries, entries),
            ("values", n_entries, entries),
            ("labels", n_labels, labels),
        ):
            array = getattr(self, name)
            if used + new > len(array):  # memory that is reserved but never touched costs nothing
                ahead = used if further is None else max(1.03 * new * min(further, 64), used / 4 if further else 0)
                longer = np.empty(used + new + int(ahead), array.dtype)
                longer[:used] = array[:used]
                setattr(self, name, longer)
        return self.indptr, self.indices, self.values, self.labels, self.label_indptr, self.groups

    def close_gap(self, place: np.ndarray, counts: np.ndarray) -> None:
        """Take what a piece put at `place` into the rows, moving it down where earlier pieces left room."""
        (row, entry, label), (rows, entries, labels), (r, e, k) = place.tolist(), counts.tolist(), self.end.tolist()
        for array, source, target, n in (
            (self.indptr, row + 1, r + 1, rows),
            (self.label_indptr, row + 1, r + 1, rows),
            (self.groups, row, r, rows),
            (self.indices, entry, e, entries),
            (self.values, entry, e, entries),
            (self.labels, label, k, labels),
        ):
            if source != target:
                array[target : target + n] = array[source : source + n]
        if entry != e:
            self.indptr[r + 1 : r + 1 + rows] -= entry - e
        if label != k:
            self.label_indptr[r + 1 : r + 1 + rows] -= label - k
        self.end += counts

    def label_counts(self, start: int) -> np.ndarray:
        """How many labels the rows from `start` on have."""
        return np.diff(self.label_indptr[start : self.n_rows + 1])

    def widen(self) -> None:
        """Make room for ids of 64 bits."""
        self.indices = self.indices.astype(np.int64, copy=False)

    def shift(self) -> None:
        """Take ids for zero-based that were taken for one-based."""
        ids = self.indices[: int(self.end[1])]
        over_range(lambda a, b: np.add(ids[a:b], 1, out=ids[a:b]), len(ids), len(ids))
        self.max_id += 1 if len(ids) else 0

    def batch(self, n_columns: int, parser) -> CsrBatch:
        n_rows, n_entries, n_labels = (int(x) for x in self.end)
        return CsrBatch(
            self.indptr[: n_rows + 1],
            self.indices[:n_entries],
            self.values[:n_entries],
            n_columns,
            None if parser.labels == "ignore" else self.labels[:n_labels],
            self.label_indptr[: n_rows + 1] if parser.labels == "multi" else None,
            self.groups[:n_rows] if parser.groups == kernels.GROUPS_ALL else None,
        )
