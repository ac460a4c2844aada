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


@pytest.mark.parametrize("bad", [{"n": 0}, {"d": 0}, {"density": 0}, {"density": 1.5}, {"significant": -0.1}])
def test_impossible_sizes(bad):
    with pytest.raises(InputError, match="is not possible"):
        make_synthetic(**{"n": 10, "d": 10, "density": 0.1, "significant": 0.2, **bad})
