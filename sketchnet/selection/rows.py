"""Rows of any kind as a list of CSR parts that lie one below the other."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from sketchnet.data.csr import CsrBatch, as_csr, as_dense, as_ids, check_finite, real_values, sparse_rows, to_csr
from sketchnet.data.shard_set import ShardSet
from sketchnet.errors import InputError
from sketchnet.memory import format_memory
from sketchnet.projection.rows import opened
from sketchnet.selection.classes import Classes, number_classes


@dataclass(frozen=True)
class Rows:
    """Parts of one matrix; `checked` says whether their ids and values have been looked at."""

    parts: list[CsrBatch]
    n_rows: int
    n_columns: int
    checked: bool

    def check(self) -> Rows:
        """The same with all ids and values looked at; a bad one is an error that says where."""
        if self.checked:
            return self
        return replace(self, parts=[as_csr(part, self.n_columns) for part in self.parts], checked=True)

    def with_classes(self, classes: Classes):
        """Each part with the classes of its rows."""
        start = 0
        for part in self.parts:
            yield part, classes.numbers[start : start + part.n_rows]
            start += part.n_rows


def as_rows(X) -> Rows:
    """The rows of an array, a sparse matrix, a `CsrBatch`, a `ShardSet` or the folder of one. Copies only if needed."""
    X = opened(X)
    if isinstance(X, ShardSet):  # whose parts may be narrower than the whole
        rows = Rows([replace(part, n_columns=X.n_columns) for part in X.parts], X.n_rows, X.n_columns, False)
    elif isinstance(X, CsrBatch) or sparse.issparse(X):
        X = to_csr(X)
        rows = Rows([X], X.n_rows, X.n_columns, False)
    else:
        X = np.asarray(X)
        X = as_dense(X, X.shape[-1] if X.ndim else 0)
        check_finite(X)
        rows = Rows([sparse_rows(X)], len(X), X.shape[1], True)
    if rows.n_columns == 0 or rows.n_rows == 0:
        raise InputError(f"X has {rows.n_rows} rows and {rows.n_columns} columns; at least one of each is needed")
    return replace(rows, parts=[_plain(part) for part in rows.parts])


def as_labelled_rows(X, y) -> tuple[Rows, Classes]:
    """Rows and their classes; without `y`, data sets give their own labels."""
    X = opened(X)
    if y is None:
        several = isinstance(X, CsrBatch) and X.label_indptr is not None
        y = X.labels if isinstance(X, CsrBatch | ShardSet) and not several else None
        if y is None:
            raise InputError("there is no y, and X has no labels of its own, one a row")
    rows = as_rows(X)
    return rows, number_classes(y, rows.n_rows)


def check_width(n_columns: int, bytes_each: int, what: str) -> None:
    """Raise if `what` takes more memory for all columns than the machine has."""
    has = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**63
    if n_columns * bytes_each > has:
        raise InputError(
            f"X has {n_columns} columns, for which {what} takes {format_memory(n_columns * bytes_each)}; this machine "
            f"has {format_memory(has)}. Hash the columns into fewer first"
        )


def _plain(part: CsrBatch) -> CsrBatch:
    """Arrays as kernels take them, and offsets that they can follow."""
    ids, values = (np.ascontiguousarray(array) for array in (as_ids(part.indices), real_values(part.values)))
    part = replace(part, indptr=as_ids(part.indptr), indices=ids, values=values)
    indptr, n = part.indptr, len(part.indices)
    if not len(indptr) or (indptr[1:] < indptr[:-1]).any() or int(indptr[-1]) - int(indptr[0]) > n or len(values) != n:
        as_csr(part, part.n_columns)  # which says what is wrong
    return part
