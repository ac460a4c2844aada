"""Rows of any kind as parts that lie one below the other: data sets on disk are projected shard by shard."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from sketchnet.data.csr import CsrBatch, as_csr, as_dense, without_torch
from sketchnet.data.shard_set import ShardSet, open_shards


def opened(X):
    """The data set in a folder; anything else as it is."""
    return open_shards(X) if isinstance(X, str | Path) else X


def checked_parts(X, n_columns: int) -> list:
    """The shards of a data set (a `ShardSet`, or its folder), else a single part: a dense array, or sparse rows."""
    X = without_torch(opened(X))
    if isinstance(X, ShardSet):
        # By `rows`, because a shard may be narrower than the whole.
        cuts = X.starts.tolist() if X.parts else [0, 0]
        return [as_csr(X.rows(slice(start, stop)), n_columns, start) for start, stop in zip(cuts, cuts[1:])]
    return [as_csr(X, n_columns) if sparse.issparse(X) or isinstance(X, CsrBatch) else as_dense(X, n_columns)]


def places(parts: list) -> list[slice]:
    """Which rows of the whole each part is."""
    ends = np.cumsum([0] + [_n_rows(part) for part in parts]).tolist()
    return [slice(*ends[i : i + 2]) for i in range(len(parts))]


def joined_dtype(parts: list) -> np.dtype:
    """Of the parts' values, were they in one array."""
    return np.result_type(*{part.values.dtype if isinstance(part, CsrBatch) else part.dtype for part in parts})


def _n_rows(part: CsrBatch | np.ndarray) -> int:
    return part.n_rows if isinstance(part, CsrBatch) else len(part)
