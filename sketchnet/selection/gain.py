"""Information gain of columns with discrete values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sketchnet.data.csr import without_repeats
from sketchnet.kernels import backend
from sketchnet.memory import parse_memory
from sketchnet.selection.rows import as_labelled_rows, check_width


def information_gain(X, y=None, *, memory: str | int | None = None) -> np.ndarray:
    """How much less uncertain the class of a row is, in nats, once a column's value is known: H(y) - H(y | column).

    Every distinct value counts as one, zero too, whether it is stored or not: scikit-learn's
    `mutual_info_classif(X, y, discrete_features=True)`. Nothing is binned, so a column of real numbers that never
    repeat tells the class of every row in which it is not zero, and its score grows with their number.

    Arguments as in `chi2`. Entries are regrouped by columns within `memory`, with a pass over the rows for each group
    of columns; time is O(non-zeros) for each pass.
    """
    rows, classes = as_labelled_rows(X, y)
    check_width(rows.n_columns, 16, "a score and an offset each")
    rows, kernels = rows.check(), backend()
    rows = replace(rows, parts=[without_repeats(part) for part in rows.parts])
    lengths = np.zeros(rows.n_columns, np.int64)
    for part in rows.parts:
        kernels.count_columns(part.indices, lengths)
    ends = np.cumsum(lengths)
    dtype = np.result_type(*(part.values.dtype for part in rows.parts))
    at_once = parse_memory(memory) // (dtype.itemsize + 4)
    scores, first = np.empty(rows.n_columns), 0
    while first < rows.n_columns:
        before = int(ends[first - 1]) if first else 0
        stop = max(first + 1, int(np.searchsorted(ends, before + at_once, side="right")))
        offsets = np.concatenate([[0], ends[first:stop] - before])
        values, numbers = np.empty(offsets[-1], dtype), np.empty(offsets[-1], np.int32)
        free = offsets[:-1].copy()
        for part, its in rows.with_classes(classes):
            kernels.group_by_column(*part.arrays, its, first, free, values, numbers)
        kernels.column_gain(offsets, values, numbers, classes.counts, scores[first:stop])
        first = stop
    return scores
