"""Dual descent against the plain reference."""

import numpy as np
import pytest
from scipy import sparse

from sketchnet.kernels import backend
from tests.kernels.test_kernels import random_csr

CPU, REFERENCE = backend("cpu"), backend("reference")


@pytest.mark.parametrize("n_outputs", [1, 4])
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize(("dtype", "index"), [(np.float32, np.int32), (np.float64, np.int64)])
def test_dual_descent(n_outputs, weighed, dtype, index):
    rng = np.random.default_rng(0)
    n, d = 60, 40
    csr, classes = random_csr(rng, n, d, dtype, index), rng.integers(0, max(2, n_outputs), n)
    squares = rng.uniform(0, 3, (d, n_outputs)).astype(np.float32) if weighed else None
    dense = sparse.csr_array((csr[2], csr[1], csr[0] - csr[0][0]), shape=(n, d)).toarray()
    norms = 1 + (dense.astype(np.float64) ** 2 @ (np.ones((d, 1)) if squares is None else squares)).astype(np.float32)
    found = []
    for kernels, width in ((CPU, np.float32), (REFERENCE, np.float64)):
        state = np.zeros((n, n_outputs), width), np.zeros((d, n_outputs), width), np.zeros(n_outputs, width)
        alpha, weights, bias = state
        worst = [
            kernels.dual_descent(*csr, np.arange(n), classes, alpha, squares, norms, weights, bias, 5.0)
            for _ in range(3)
        ]
        found.append((*state, np.array(worst)))
    for ours, exact in zip(*found, strict=True):
        np.testing.assert_allclose(ours, exact, atol=2e-5, rtol=2e-5)
    assert found[0][0].max() > 0  # it moved
