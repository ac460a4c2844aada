"""Find the fields of a table in its one-hot rows, where nobody says them."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sketchnet.data.csr import CsrBatch

_FIELDS = 100  # at most
_NUMBERS = 1000  # columns of numbers, at most
_GLANCE = 1000  # rows that are looked at first
_DENSITY = 0.1  # of columns of numbers, at least
_SPREAD = 0.5  # variance of the lengths of rows over their mean: of independent columns it is about one
_EXPECTED = 8.0  # rows that are shared by chance, at least, for it to mean something if none is


def find_fields(rows: CsrBatch, ids: np.ndarray) -> np.ndarray | None:
    """Return the field of each column, -1 for one that is a number; None if the rows are not those of a table.

    `ids` has the original id of each column but the last one, which stands for all that were never seen. A column whose
    values differ is a number. The others are categories: a field is a range of ids of which no row has two, or, if
    such ranges do not make a table, a group of columns that share no row although by chance they would. Rows of a table
    have an entry in most of the fields. A table without categories has few columns, and many entries in them.
    """
    n_columns = len(ids)
    if rows.n_entries == 0:
        return None
    indptr = rows.indptr - rows.indptr[0]
    glance = rows.rows(slice(0, min(rows.n_rows, _GLANCE)))
    if (_are_numbers(glance).sum() > _NUMBERS) or len(glance.indices) > (_FIELDS + _NUMBERS) * glance.n_rows:
        return None
    numbers = _are_numbers(rows)
    numbers[n_columns] = True  # never seen: of no field
    if numbers.sum() - 1 > _NUMBERS:
        return None
    kept = ~numbers[rows.indices]
    offsets = np.r_[0, np.cumsum(kept)][indptr]
    found = _Categories(offsets, rows.indices[kept], n_columns + 1)
    fields = found.by_ranges(ids)
    if fields is None:
        fields = found.by_rows()
    if fields is None or not _is_table_of_numbers(rows, np.flatnonzero(fields < 0)[:-1]):
        fields = np.full(n_columns + 1, -1, np.int32)
        return fields if _is_table_of_numbers(rows, np.arange(n_columns)) else None
    return fields


def _are_numbers(rows: CsrBatch) -> np.ndarray:
    from sketchnet.kernels.cpu.field_statistics import differing_columns

    differs = np.zeros(rows.n_columns, bool)
    differing_columns(rows.indices, rows.values, np.full(rows.n_columns, np.nan, np.float32), differs)
    return differs


def _is_table_of_numbers(rows: CsrBatch, columns: np.ndarray) -> bool:
    """Return whether these columns are few and full, or there are none."""
    entries = np.bincount(rows.indices, minlength=rows.n_columns)[columns].sum()
    return len(columns) <= _NUMBERS and entries >= _DENSITY * len(columns) * rows.n_rows


class _Categories:
    """The entries of columns that have one value each."""

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, n_columns: int):
        self.indptr, self.indices, self.n_columns = indptr, indices, n_columns
        self.counts = np.bincount(indices, minlength=n_columns)
        self.columns = np.flatnonzero(self.counts)
        self.lengths = np.diff(indptr)

    def by_ranges(self, ids: np.ndarray) -> np.ndarray | None:
        """Return fields that are ranges of ids."""
        from sketchnet.kernels.cpu.field_statistics import split_ranges

        if not self._can_be_fields():
            return None
        places = np.zeros(self.n_columns, np.int32)
        ordered = self.columns[np.argsort(ids[self.columns], kind="stable")]
        places[ordered] = np.arange(len(ordered))
        entries = sparse.csr_array(
            (np.empty(len(self.indices), np.int8), places[self.indices], self.indptr),
            shape=(len(self.lengths), len(ordered)),
        )
        entries.sort_indices()
        starts = split_ranges(entries.indptr, entries.indices, len(ordered))
        fields = np.full(self.n_columns, -1, np.int32)
        fields[ordered] = np.searchsorted(starts, np.arange(len(ordered)), side="right") - 1
        return fields if self._are_full(fields, len(starts)) else None

    def by_rows(self) -> np.ndarray | None:
        """Return fields that are groups of columns which share no row."""
        from sketchnet.kernels.cpu.field_statistics import colour_columns

        if not self._can_be_fields() or self.lengths.var() > _SPREAD * self.lengths.mean():
            return None
        entries = sparse.csr_array(
            (np.empty(len(self.indices), np.int8), self.indices, self.indptr),
            shape=(len(self.lengths), self.n_columns),
        ).tocsc()
        taken = np.zeros((_FIELDS, len(self.lengths)), bool)
        fields, expected = np.full(self.n_columns, -1, np.int32), np.zeros(self.n_columns)
        ordered = self.columns[np.argsort(-self.counts[self.columns], kind="stable")]
        n_fields = colour_columns(entries.indptr, entries.indices, ordered, taken, fields, expected)
        if n_fields < 0 or not self._are_full(fields, n_fields):
            return None
        joined = expected > 0
        sure = self.counts[joined & (expected >= _EXPECTED)].sum()
        return fields if 2 * sure >= self.counts[joined].sum() else None

    def _can_be_fields(self) -> bool:
        return 0 < len(self.columns) and int(self.lengths.max()) <= _FIELDS

    def _are_full(self, fields: np.ndarray, n_fields: int) -> bool:
        """Return whether most entries are in fields that most rows have."""
        if n_fields > _FIELDS:
            return False
        sizes = np.bincount(fields[self.columns], self.counts[self.columns], minlength=n_fields)
        return bool(2 * sizes[2 * sizes >= len(self.lengths)].sum() >= sizes.sum())
