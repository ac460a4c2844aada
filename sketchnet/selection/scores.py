"""Chi-square and F-score of columns, from sums of each class's entries: one pass over the rows, O(non-zeros)."""

from __future__ import annotations

import numpy as np
from scipy import special

from sketchnet.data.csr import CsrBatch, as_csr, without_repeats
from sketchnet.errors import InputError
from sketchnet.kernels import backend
from sketchnet.memory import parse_memory
from sketchnet.selection.classes import Classes
from sketchnet.selection.rows import Rows, as_labelled_rows, check_width

_BLOCK_ENTRIES, _BLOCK_ROWS = 1 << 24, 1 << 20  # that are added up at once: 200 MB where they are copied, and 40 MB


def chi2(X, y=None, *, memory: str | int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Chi-square statistic of each column, and its p-value.

    Observed is the sum of a column's absolute values in each class, expected the share of the column's whole sum that
    the class has of the rows. On non-negative data this is scikit-learn's `chi2(X, y)`, on signed data its
    `chi2(abs(X), y)`. A column of zeros has the score NaN.

    X is an array, a sparse matrix, a `CsrBatch`, a `ShardSet` or the folder of one; the latter three may leave out `y`
    for their own labels. Sums of classes take `memory` at most (512 MiB unless told): where they need more, columns are
    worked through in parts, with a pass over the rows for each. Repeated ids of a row add up.
    """
    rows, classes = as_labelled_rows(X, y)
    scores = _scores(rows, classes, 1, backend().chi_square, memory)
    return scores, special.chdtrc(classes.n - 1, scores)


def f_classif(X, y=None, *, memory: str | int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """F statistic of each column (analysis of variance: between classes over within them), and its p-value.

    As scikit-learn's `f_classif`, with sums in float64 whatever the dtype of X, and arguments as in `chi2`. A column
    whose values do not vary has the score NaN, one that varies only between classes infinity or a very large one.
    """
    rows, classes = as_labelled_rows(X, y)
    scores = _scores(rows, classes, 2, backend().f_ratio, memory)
    return scores, special.fdtrc(classes.n - 1, rows.n_rows - classes.n, scores)


def chi2_scores(X, y=None, *, memory: str | int | None = None) -> np.ndarray:
    """The scores of `chi2` alone: p-values, which order columns in the same way, take longer than all else."""
    return _scores(*as_labelled_rows(X, y), 1, backend().chi_square, memory)


def f_scores(X, y=None, *, memory: str | int | None = None) -> np.ndarray:
    """The scores of `f_classif` alone."""
    return _scores(*as_labelled_rows(X, y), 2, backend().f_ratio, memory)


def _scores(rows: Rows, classes: Classes, moments: int, finish, memory) -> np.ndarray:
    check_width(rows.n_columns, 8, "a score each")
    at_once = max(1, min(rows.n_columns, parse_memory(memory) // (8 * classes.n * moments)))
    if at_once < rows.n_columns:
        rows = rows.check()  # what lies outside the columns at hand is then no error
    scores = np.empty(rows.n_columns)
    for first in range(0, rows.n_columns, at_once):
        sums = np.zeros((classes.n, min(at_once, rows.n_columns - first), moments))
        for part, numbers in rows.with_classes(classes):
            _add(part, numbers, first, sums, rows.checked)
        finish(sums, classes.counts, scores[first : first + sums.shape[1]])
    return scores


def _add(part: CsrBatch, numbers: np.ndarray, first: int, sums: np.ndarray, checked: bool) -> None:
    """Add the part's rows to the sums, in blocks."""
    add, indptr, stop = backend().add_by_class, part.indptr, 0
    while stop < part.n_rows:
        start, most = stop, min(int(indptr[stop]) + _BLOCK_ENTRIES, int(indptr[-1]))
        stop = min(max(start + 1, int(np.searchsorted(indptr, most, side="right")) - 1), start + _BLOCK_ROWS)
        block, its = part.rows(slice(start, stop)), numbers[start:stop]
        outside, unordered, non_finite = add(*block.arrays, its, first, sums)
        if non_finite or unordered or (outside and not checked):
            as_csr(part, part.n_columns)  # which says where the bad id or value is
        if unordered:  # an id may be repeated
            tidy = without_repeats(block)
            if add(*tidy.arrays, its, first, sums)[2]:  # though each value is finite
                raise InputError(f"values of a repeated id add up to more than {tidy.values.dtype} can hold")
