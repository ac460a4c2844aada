"""Small labelled data, in memory and on disk."""

import numpy as np
from scipy import sparse

from sketchnet.data import CsrBatch, ingest, write_svmlight
from sketchnet.data.sources import SvmlightSource


def counts(n=300, d=50, n_classes=3, seed=0) -> tuple[sparse.csr_array, np.ndarray]:
    """Word counts whose means differ by class; one column is empty, and some rows are."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    means = rng.random((n_classes, d))
    means[:, 4] = 0
    X = rng.poisson(means[y] * (rng.random((n, 1)) < 0.9))
    return sparse.csr_array(X.astype(np.float64)), y


def write_shards(folder, X, y):
    """A data set of three shards."""
    rows = CsrBatch(X.indptr, X.indices, X.data, X.shape[1], labels=y.astype(np.float32))
    paths, edges = [folder / f"{i}.svm" for i in range(3)], [0, 90, 200, len(y)]
    for path, start, stop in zip(paths, edges[:-1], edges[1:]):
        write_svmlight(path, rows.rows(slice(start, stop)))
    ingest(SvmlightSource(paths), folder / "set", n_columns=X.shape[1], shard_entries=500)
    return folder / "set"
