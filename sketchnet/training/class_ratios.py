"""How much more often a column stands in rows of a class than in others: what a linear model may weigh columns by.

Wang & Manning, "Baselines and bigrams: simple, good sentiment and topic classification", ACL 2012: with p the sum of a
column over the rows of a class and q over the other rows, both plus a prior, r = log((p / |p|) / (q / |q|)), where |p|
and |q| are sums over columns. A linear model on columns multiplied by |r| leans on those that tell the class apart.
"""

from __future__ import annotations

import numpy as np

from sketchnet.data.csr import without_repeats
from sketchnet.nn import SketchNetwork
from sketchnet.training.examples import Examples
from sketchnet.training.linear_solver import class_numbers, mixed_batches

_PRIOR = 0.25  # times the mean non-zero
_COLUMNS = 1 << 16  # whose logarithms are taken at a time


def has_negative(network: SketchNetwork, parts: list[Examples]) -> bool:
    """Whether a value is negative: those are no counts."""
    return any(batch.values.min(initial=0) < 0 for _, batch in mixed_batches(network, parts))


def squared_class_ratios(network: SketchNetwork, parts: list[Examples]) -> np.ndarray | None:
    """r * r for each column and output, of rows without negative values; None where all are zero.

    An output of its own tells class 1 from class 0. Columns that never occur have no part in |p| and |q|, so the size
    of a table that columns are hashed into does not matter.
    """
    width, n_outputs = network.config.width, network.config.n_outputs
    classes, n_classes = np.concatenate([class_numbers(part) for part in parts]), max(2, n_outputs)
    sums, n_entries = np.zeros((width, n_classes)), 0  # float32 cannot count beyond 2**24
    for numbers, batch in mixed_batches(network, parts):
        batch = without_repeats(batch)
        owners = np.repeat(classes[numbers], np.diff(batch.indptr))
        places = batch.indices.astype(np.int64) * n_classes + owners
        np.add.at(sums.reshape(-1), places, batch.values.astype(np.float64))  # of another type, it is slow
        n_entries += np.count_nonzero(batch.values)
    blocks = [slice(start, start + _COLUMNS) for start in range(0, width, _COLUMNS)]
    inside = sum(sums[block].sum(axis=0) for block in blocks)
    n_seen = sum(np.count_nonzero(sums[block].any(axis=1)) for block in blocks)
    if n_seen == 0:
        return None
    prior = _PRIOR * inside.sum() / n_entries
    inside, outside = inside + prior * n_seen, inside.sum() - inside + prior * n_seen
    squares = np.empty((width, n_outputs), np.float32)
    for block in blocks:
        own = sums[block]
        rest = own.sum(axis=1, keepdims=True) - own
        ratios = np.log((prior + own) * outside / ((prior + rest) * inside))
        squares[block] = np.square(ratios[:, -n_outputs:])
    return squares
