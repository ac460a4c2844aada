"""Streaming moments against NumPy on the whole."""

import numpy as np
import pytest

from sketchnet.normalisation import Moments


def moments_of(rows, cuts):
    moments = Moments(rows.shape[1])
    for piece in np.split(rows, cuts):
        moments.update(piece)
    return moments


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "cuts", [[], [1], [999], range(1000), [300, 300, 301], range(0, 1000, 7)], ids=["whole", *"abcde"]
)
def test_pieces_of_any_size(cuts, dtype):
    rng = np.random.default_rng(0)
    rows = (rng.standard_normal((1000, 5)) * [1, 10, 1e-3, 0, 1e10] + [0, 5, -7, 3, 0]).astype(dtype)
    moments, exact = moments_of(rows, cuts), rows.astype(np.float64)
    assert moments.n == 1000
    assert np.allclose(moments.mean, exact.mean(axis=0), rtol=1e-12, atol=1e-14 * np.abs(exact).max(axis=0))
    assert np.allclose(moments.deviation, exact.std(axis=0), rtol=1e-6 if dtype == np.float32 else 1e-10, atol=1e-14)
    assert np.array_equal(moments.max_abs, np.abs(exact).max(axis=0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mean", [1e3, -1e5, 1e7])
@pytest.mark.parametrize("cuts", [[], range(0, 3000, 64)], ids=["whole", "pieces"])
def test_a_large_mean_does_not_spoil_the_deviation(mean, dtype, cuts):
    """Of the numbers as they are stored: in float32, a mean of 1e7 leaves them whole numbers."""
    rows = (np.random.default_rng(0).standard_normal((3000, 8)) + mean).astype(dtype)
    exact = rows.astype(np.float64)
    expected = np.sqrt(np.square(exact - exact.mean(axis=0)).mean(axis=0))
    assert np.allclose(moments_of(rows, cuts).deviation, expected, rtol=1e-6)


def test_columns_that_never_vary():
    rows = np.full((1000, 3), [0.0, 0.1, 1e6], np.float32)
    moments = moments_of(rows, range(0, 1000, 13))
    assert (moments.deviation <= 1e-12 * np.array([1, 0.1, 1e6])).all()
    assert np.array_equal(moments.max_abs, rows[0])


def test_no_rows():
    moments = Moments(2)
    moments.update(np.empty((0, 2), np.float32))
    assert moments.n == 0
    assert moments.deviation.tolist() == [0, 0]
    assert moments.max_abs.tolist() == [0, 0]
