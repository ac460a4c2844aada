import numpy as np
import pytest

from sketchnet.data import make_synthetic
from sketchnet.errors import InputError
from tests.statistics import assert_mean


def test_the_law():
    n, d, density, significant = 4000, 5000, 0.01, 0.2
    X, y = make_synthetic(n, d, density, significant, random_state=1)
    assert X.shape == (n, d)
    assert X.dtype == np.float32
    assert X.has_canonical_format
    assert np.bincount(y).tolist() == [n // 2, n // 2]
    assert_mean(np.diff(X.indptr), d * density, d * density * (1 - density))
    assert_mean(X[y == 0].data, 0, 1)
    assert_mean(X[y == 0].data.astype(float) ** 2, 1, 2)
    # in class 1, a fifth of the features have mean 3 and variance 2, the others are untouched
    means = np.asarray(X[y == 1].sum(axis=0)) / np.maximum(1, np.asarray((X[y == 1] != 0).sum(axis=0)))
    assert np.count_nonzero(means > 1.5) == significant * d
    moved = X[y == 1][:, means > 1.5].data
    assert_mean(moved, 3, 2)
    assert_mean((moved.astype(float) - 3) ** 2, 2, 8)
    assert_mean(X[y == 1][:, means < 1.5].data, 0, 1)


def test_same_seed_same_data():
    for seed in (0, 1):
        X, y = make_synthetic(50, 100, 0.1, random_state=seed)
        X2, y2 = make_synthetic(50, 100, 0.1, random_state=seed)
        assert (X != X2).nnz == 0
        assert np.array_equal(y, y2)
    assert (X != make_synthetic(50, 100, 0.1, random_state=0)[0]).nnz > 0


def test_numbers_of_numpy_are_numbers():
    X, y = make_synthetic(np.int32(50), np.uint8(100), np.float32(0.125), np.float64(0.2), np.int64(1))
    X2, y2 = make_synthetic(50, 100, 0.125, 0.2, 1)
    assert (X != X2).nnz == 0
    assert np.array_equal(y, y2)


@pytest.mark.parametrize(
    "bad",
    [
        *({"n": n} for n in (0, 1e2, "a", None, True, 2**63)),
        *({"d": d} for d in (0, 99999999999999999999)),
        *({"density": density} for density in (0, 1.5, "a", None, np.nan, 0j)),
        *({"significant": significant} for significant in (-0.1, "a", [0.1])),
        *({"random_state": seed} for seed in (-1, 2**64, None, 1.5, np.random.RandomState(0))),
    ],
)
def test_impossible_sizes(bad):
    with pytest.raises(InputError, match=f"^{next(iter(bad))}=.* is not possible; it must be"):
        make_synthetic(**{"n": 10, "d": 10, "density": 0.1, "significant": 0.2, **bad})
