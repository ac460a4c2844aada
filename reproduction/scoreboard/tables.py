"""Tables of texts and numbers as category numbers and one-hot rows. Only training rows say what there is."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def number_values(columns: list[np.ndarray], train: np.ndarray) -> np.ndarray:
    """Category numbers, a column a field; -1 for values that no training row has."""
    numbered = []
    for column in columns:
        values = np.unique(column[train])
        places = np.searchsorted(values, column).clip(max=len(values) - 1)
        numbered.append(np.where(values[places] == column, places, -1))
    return np.column_stack(numbered).astype(np.int32)


def one_hot(columns: list[np.ndarray], train: np.ndarray, several: list[list[str]] | None = None):
    """A column a value that training rows have, field by field; `several` is one more field, of several values."""
    codes = number_values(columns, train)
    sizes = codes[train].max(axis=0) + 1
    starts = np.r_[0, np.cumsum(sizes)]
    rows, fields = np.nonzero(codes >= 0)
    ids = codes[rows, fields] + starts[fields]
    width = int(starts[-1])
    if several is not None:
        known = sorted({value for row in train for value in several[row]})
        number = {value: width + place for place, value in enumerate(known)}
        pairs = [(row, number[v]) for row, values in enumerate(several) for v in dict.fromkeys(values) if v in number]
        more = np.array(pairs, np.int64).reshape(-1, 2)
        rows, ids, width = np.r_[rows, more[:, 0]], np.r_[ids, more[:, 1]], width + len(known)
    X = sparse.csr_array((np.ones(len(ids), np.float32), (rows, ids)), shape=(len(codes), width))
    X.sort_indices()
    return X


def scale_numbers(numbers: np.ndarray, train: np.ndarray):
    """Sparse columns of the numbers, divided by their deviation in training rows."""
    deviations = numbers[train].std(axis=0)
    return sparse.csr_array((numbers / np.where(deviations > 0, deviations, 1)).astype(np.float32))


def find_fields(X) -> np.ndarray:
    """The first column of each field: columns are cut into ranges, as long as can be, of which no row has two."""
    last = np.full(X.shape[1], -1)  # the greatest column before this one in a row that has both
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    neighbours = rows[1:] == rows[:-1]
    np.maximum.at(last, X.indices[1:][neighbours], X.indices[:-1][neighbours])
    starts = [0]
    for column in range(X.shape[1]):
        if last[column] >= starts[-1]:
            starts.append(column)
    return np.array(starts)


def cut_at_fields(X, train: np.ndarray) -> np.ndarray:
    """The column of each row in each field, as a number from 1 on; 0 where it has none."""
    X = sparse.csr_array(X)
    X.sort_indices()
    starts = find_fields(X[train])
    fields = np.searchsorted(starts, X.indices, side="right") - 1
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    found = np.zeros((X.shape[0], len(starts)), np.int64)
    found[rows, fields] = X.indices - starts[fields] + 1
    return found
