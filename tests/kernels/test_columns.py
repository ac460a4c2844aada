"""Sums over columns against the plain reference."""

import numpy as np
import pytest

from sketchnet.kernels import backend
from sketchnet.kernels.cpu import threads


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (7, 5), (300, 64), (1000, 33)])
def test_column_sums(shape, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    rows, about = (rng.standard_normal(shape) * 100 + 7).astype(dtype), rng.standard_normal(shape[1])
    expected = backend("reference").column_sums(rows, about)
    monkeypatch.setattr(threads, "_SMALL", 1)
    for number in ("1", "2", "5"):
        monkeypatch.setenv("SKETCHNET_THREADS", number)
        sums, squares, largest = backend("cpu").column_sums(rows, about)
        np.testing.assert_allclose(sums, expected[0], rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(squares, expected[1], rtol=1e-12)
        assert np.array_equal(largest, expected[2])
