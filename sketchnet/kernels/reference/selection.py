"""Scores of columns and products for the SVD, in plain NumPy."""

from __future__ import annotations

import numpy as np


def add_by_class(indptr, indices, values, classes, first, sums):
    """Add to sums[y, c - first] what the entries of column c have in rows of class y; other columns are left out.

    Where sums[y, c] has one number, it is the sum of absolute values; where it has two, they are the sums of values and
    of their squares. Returns whether there are (columns outside, rows whose ids do not ascend, NaN or infinity); in the
    latter two cases nothing is added.
    """
    outside = (indices < first) | (indices >= first + sums.shape[1])
    unordered, non_finite = not ordered(indptr, indices), not np.isfinite(values).all()
    if not (unordered or non_finite):
        x = values.astype(np.float64)[~outside]
        column, y = indices[~outside] - first, np.repeat(classes, np.diff(indptr))[~outside]
        np.add.at(sums, (y, column), np.stack([x, x * x], axis=1) if sums.shape[2] == 2 else np.abs(x)[:, None])
    return bool(outside.any()), unordered, non_finite


def ordered(indptr, indices):
    """Whether the ids of each row ascend, none repeated."""
    offsets = indptr - indptr[0]
    return all((np.diff(indices[a:b]) > 0).all() for a, b in zip(offsets[:-1], offsets[1:]))


def chi_square(sums, counts, out):
    """out[c] = the sum of (observed - expected)**2 / expected over the classes; `counts` are their rows."""
    observed = sums[:, :, 0]
    expected = observed.sum(axis=0) * (counts / counts.sum())[:, None]
    with np.errstate(invalid="ignore"):
        out[:] = ((observed - expected) ** 2 / expected).sum(axis=0)


def f_ratio(sums, counts, out):
    """out[c] = the mean square between the classes over the one within them, from sums of values and of squares."""
    by_class, squares = sums[:, :, 0], sums[:, :, 1].sum(axis=0)
    total, n, each = by_class.sum(axis=0), counts.sum(), (by_class**2 / counts[:, None]).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = np.maximum(each - total**2 / n, 0) / (len(counts) - 1)
        within = np.maximum(squares - each, 0) / np.float64(n - len(counts))
        out[:] = between / within


def count_columns(indices, lengths):
    """lengths[c] += how often column c occurs."""
    np.add.at(lengths, indices, 1)


def group_by_column(indptr, indices, values, classes, first, free, out_values, out_classes):
    """Write each entry's value and the class of its row to place free[c - first], which then moves on by one.

    Columns outside `free` are left out.
    """
    owners = np.repeat(classes, np.diff(indptr))
    for c, value, y in zip(indices - first, values, owners):
        if 0 <= c < len(free):
            out_values[free[c]], out_classes[free[c]] = value, y
            free[c] += 1


def column_gain(offsets, values, classes, counts, out):
    """out[c] = mutual information of the class and the value of column c, whose non-zeros are offsets[c] to
    offsets[c + 1] of the values; all other rows are zero.
    """
    n = counts.sum()
    for c in range(len(out)):
        span = slice(offsets[c], offsets[c + 1])
        distinct, number = np.unique(values[span], return_inverse=True)
        table = np.zeros((len(distinct) + 1, len(counts)))
        np.add.at(table, (np.where(values[span] == 0, len(distinct), number), classes[span]), 1)
        table[-1] += counts - table.sum(axis=0)
        joint = table / n
        independent = joint.sum(axis=1, keepdims=True) * (counts / n)
        some = joint > 0
        out[c] = max(0.0, (joint[some] * np.log(joint[some] / independent[some])).sum())


def add_transposed(indptr, indices, values, rows, out):
    """out += transpose of csr @ rows."""
    owners = np.repeat(np.arange(len(rows)), np.diff(indptr))
    np.add.at(out, indices, values[:, None] * rows[owners])
