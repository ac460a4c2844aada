"""A sparse problem that everybody should learn, and that memory of labels alone does not solve."""

import numpy as np
from scipy import sparse


def separable(n: int, n_classes: int, seed: int, n_columns: int = 3000):
    """Rows of 6 columns out of the 20 that belong to their class, and of 10 that say nothing."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    columns = np.concatenate(
        [
            np.argsort(rng.random((n, 20)), axis=1)[:, :6] + 100 * y[:, None],
            np.argsort(rng.random((n, 1000)), axis=1)[:, :10] + 2000,
        ],
        axis=1,
    )
    indptr = np.arange(n + 1) * columns.shape[1]
    X = sparse.csr_array((np.ones(columns.size, np.float32), columns.ravel(), indptr), shape=(n, n_columns))
    return X, y
