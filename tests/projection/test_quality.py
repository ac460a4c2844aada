import numpy as np
import pytest
from scipy import sparse

from sketchnet.errors import InputError
from sketchnet.projection import SRHT, CountSketch, Gaussian, Li
from sketchnet.projection.quality import distance_distortion, minimal_k, subspace_embedding_error
from tests.projection.schemes import LAWS, every_law


def test_minimal_k():
    # 4 ln(1000) / (0.1^2 / 2 - 0.1^3 / 3) = 5920.8
    assert minimal_k(1000, 0.1) == 5921
    for n, eps in [(1, 0.1), (10, 0), (10, 1), (10, "x"), (10, None), (10, True), ("a", 0.1)]:
        with pytest.raises(InputError, match="n must be at least 2 and eps between 0 and 1"):
            minimal_k(n, eps)


def data(n=200):
    return sparse.random_array((n, 20_000), density=0.01, format="csr", rng=np.random.default_rng(0)).astype(np.float32)


@every_law
def test_distortion_is_within_the_bound(law):
    """200 points, k by the lemma for eps = 0.3: no pair is off by more, for any scheme on data as spread as this."""
    X, k = data(), minimal_k(200, 0.3)
    projected = LAWS[law](k, 20_000).sample(20_000, 1).apply(X)
    distortion = distance_distortion(X, projected, n_pairs=20_000)
    assert len(distortion) == 20_000
    assert np.abs(distortion).max() < 0.3
    assert np.abs(distortion).mean() > 0.01


def test_distortion_of_sparse_output_is_that_of_dense_output():
    X, operator = data(50), CountSketch(500).sample(20_000, 1)
    ours, theirs = (distance_distortion(X, operator.apply(X, sparse_output=flag)) for flag in (True, False))
    assert np.allclose(ours, theirs)
    with pytest.raises(InputError, match="X has 49 rows and its projection 50"):
        distance_distortion(X[:49], operator.apply(X, sparse_output=True))


def test_distortion_measures_pairs():
    X = np.array([[0.0, 0], [3, 4]])
    assert np.allclose(distance_distortion(X, X * 2, n_pairs=10), 3)
    assert np.allclose(distance_distortion(sparse.csr_array(X), X * 2, n_pairs=10), 3)
    for given in (sparse.csr_array(X), sparse.coo_array(X), X.tolist()):
        assert np.allclose(distance_distortion(X, given, n_pairs=10), 0)
        assert np.allclose(distance_distortion(given, X * 2, n_pairs=10), 3)
        assert subspace_embedding_error(given, CountSketch(50).sample(2, 0)) < 1e-9
    assert len(distance_distortion(np.zeros((2, 2)), X, n_pairs=10)) == 0  # pairs at distance zero say nothing
    with pytest.raises(InputError, match="X has 2 rows and its projection 3"):
        distance_distortion(X, np.zeros((3, 2)))


@pytest.mark.parametrize("as_dense", [False, True])
def test_subspace_embedding_error(as_dense):
    X = data(30)
    X = X.toarray() if as_dense else X
    operator = Gaussian(500).sample(20_000, 1)
    error = subspace_embedding_error(X, operator)
    # attained by the singular values of the projection of an orthonormal basis
    basis = np.linalg.svd(np.asarray(X.todense() if sparse.issparse(X) else X, float), full_matrices=False)[2]
    singular = np.linalg.svd(basis @ operator.block(slice(None), dtype=np.float64), compute_uv=False)
    assert error == pytest.approx(np.abs(singular**2 - 1).max(), rel=1e-4)
    assert error < subspace_embedding_error(X, Gaussian(100).sample(20_000, 1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_an_isometry_has_no_error(dtype):
    X = np.random.default_rng(0).integers(0, 100, (20, 1024)).astype(dtype)
    X[7] = X[3] + X[4]  # rank deficient
    isometry = SRHT(1024).sample(1024, 0)
    for given in (X, sparse.csr_array(X)):
        assert subspace_embedding_error(given, isometry) < 1e-9
        assert np.abs(distance_distortion(given, isometry.apply(X, dtype=np.float64))).max() < 1e-9


def test_a_subspace_needs_more_than_its_dimension():
    assert subspace_embedding_error(data(50), CountSketch(30).sample(20_000, 0)) >= 1 - 1e-9
    assert subspace_embedding_error(data(50), Li(4000).sample(20_000, 0)) < 0.5
