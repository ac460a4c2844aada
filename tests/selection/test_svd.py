"""The truncated SVD beside scikit-learn's and the exact one."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import TruncatedSVD

from sketchnet.data import open_shards
from sketchnet.data.csr import as_csr
from sketchnet.errors import InputError
from sketchnet.estimators import SparseSVD
from sketchnet.selection import svd, truncated_svd
from tests.data.test_shards import write
from tests.selection.labelled import counts, write_shards


def falling(n=200, d=60, seed=0):
    """Sparse rows whose singular values fall fast enough for power iterations to tell them apart."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, d), density=0.3, rng=rng, format="csr")
    return sparse.csr_array(X @ sparse.diags_array(0.7 ** np.arange(d)))


@pytest.mark.parametrize("shape", [(200, 60), (40, 90)])
@pytest.mark.parametrize("k", [1, 7])
def test_equals_scikit_learn(shape, k):
    X = falling(*shape)
    ours = SparseSVD(k).fit(X)
    theirs = TruncatedSVD(k, random_state=0, n_iter=5).fit(X)
    exact = np.linalg.svd(X.toarray())[1][:k]
    np.testing.assert_allclose(ours.singular_values_, exact, rtol=1e-8)
    np.testing.assert_allclose(ours.singular_values_, theirs.singular_values_, rtol=1e-6)
    np.testing.assert_allclose(np.abs(ours.components_), np.abs(theirs.components_), atol=1e-5)
    np.testing.assert_allclose(ours.components_ @ ours.components_.T, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(theirs.transform(X)), atol=1e-4)


def test_single_precision():
    X = falling()
    exact = truncated_svd(X, 5)
    single = truncated_svd(X.astype(np.float32), 5)
    assert single.components.dtype == np.float32
    np.testing.assert_allclose(single.singular_values, exact.singular_values, rtol=1e-5)
    np.testing.assert_allclose(single.components, exact.components, atol=1e-3)


def test_blocks_and_shards_give_the_same(tmp_path, monkeypatch):
    X, y = counts()
    whole = truncated_svd(X.astype(np.float32), 4)
    monkeypatch.setattr(svd, "_BLOCK_NUMBERS", 500)
    shards = open_shards(write_shards(tmp_path, X, y))
    for rows in (X.astype(np.float32), shards):
        part = truncated_svd(rows, 4)
        np.testing.assert_allclose(part.singular_values, whole.singular_values, rtol=1e-4)
        np.testing.assert_allclose(part.components, whole.components, atol=1e-3)
    model = SparseSVD(4).fit(tmp_path / "set")
    assert model.transform(shards).shape == (300, 4)
    assert model.transform(shards).dtype == np.float32
    np.testing.assert_allclose(model.transform(shards), model.transform(X), rtol=1e-4, atol=1e-4)


def test_fewer_directions_than_asked_for():
    """Rows of rank three: the other components carry nothing, and are orthonormal all the same."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 20))
    model = SparseSVD(6).fit(X)
    assert model.singular_values_[3:].max() < 1e-14 * model.singular_values_[0]
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(6), atol=1e-10)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-5)
    assert not SparseSVD(2).fit(np.zeros((5, 4))).singular_values_.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("condition", [1, 1e3, 1e6, 1e10, 1e30, np.inf])
def test_bases_of_nearly_dependent_columns(dtype, condition, monkeypatch):
    """Orthonormal to rounding for any condition, with the span of the columns as far as it stands out from rounding."""
    monkeypatch.setattr(svd, "_BLOCK_NUMBERS", 700)
    rng = np.random.default_rng(0)
    turn = [np.linalg.qr(rng.standard_normal((n, 12)))[0] for n in (300, 12)]
    strength = 1 / np.geomspace(1, condition, 12) if np.isfinite(condition) else np.r_[np.ones(5), np.zeros(7)]
    columns = (turn[0] * strength @ turn[1].T).astype(dtype)
    basis = svd._orthonormal(columns.copy())
    eps = np.finfo(dtype).eps
    assert basis.dtype == dtype
    np.testing.assert_allclose(basis.T @ basis, np.eye(12), atol=100 * eps)
    np.testing.assert_allclose(basis @ (basis.T @ columns), columns, atol=100 * eps)


@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1e-12, 1e12])
def test_bases_of_columns_of_any_length(scale):
    columns = (np.random.default_rng(0).standard_normal((200, 9)) * scale ** np.linspace(0, 1, 9)).astype(np.float32)
    basis = svd._orthonormal(columns.copy())
    np.testing.assert_allclose(basis.T @ basis, np.eye(9), atol=1e-5)


@pytest.mark.parametrize(("dtype", "lost"), [(np.float32, 6), (np.float64, 14)])
@pytest.mark.parametrize("n_rows", [300, 3000])
def test_small_singular_values(dtype, lost, n_rows, monkeypatch):
    """Right to a few roundings of the largest, as LAPACK's are: that of the Gram matrix hides half as many digits."""
    monkeypatch.setattr(svd, "_BLOCK_NUMBERS", 9000)
    rng = np.random.default_rng(0)
    turn = [np.linalg.qr(rng.standard_normal((n, 30)))[0] for n in (n_rows, 80)]
    exact = np.geomspace(1, 10.0**-lost, 30)
    X = (turn[0] * exact @ turn[1].T).astype(dtype)
    rounding = 8 * np.finfo(dtype).eps
    for k in (12, 30):
        found = truncated_svd(X, k)
        np.testing.assert_allclose(found.singular_values, exact[:k], rtol=0, atol=rounding)
        values = np.linalg.norm(X.astype(np.float64) @ found.components.T, axis=0)
        np.testing.assert_allclose(values, exact[:k], rtol=0, atol=rounding)


def test_values_near_the_largest_that_there_are():
    X = falling()
    for dtype, scale, most in ((np.float64, 1e300, 1e308), (np.float32, 1e37, 2e38)):
        model, far = SparseSVD(4).fit(X.astype(dtype)), SparseSVD(4).fit((X * scale).astype(dtype))
        eps = 1e-12 if dtype == np.float64 else 1e-4
        np.testing.assert_allclose(far.singular_values_, model.singular_values_ * dtype(scale), rtol=eps)
        expected = model.transform(X.astype(dtype)) * dtype(scale)
        np.testing.assert_allclose(far.transform((X * scale).astype(dtype)), expected, rtol=eps, atol=1e2 * eps * scale)
        with pytest.raises(InputError, match="the largest singular value of X is beyond .*, the most that float.. can"):
            SparseSVD(4).fit((X / X.max() * most).astype(dtype))
        rows = np.zeros((3, 60), dtype)
        rows[2] = np.sign(model.components_[0]) * np.finfo(dtype).max
        with pytest.raises(InputError, match="row 2 times the components is beyond .*, the most that float.. can hold"):
            model.transform(as_csr(sparse.csr_array(rows), 60))


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, np.float64])
def test_results_have_the_type_that_scikit_learn_gives(dtype, tmp_path):
    X = counts()[0].astype(dtype)
    batch = as_csr(X, X.shape[1])
    peer = TruncatedSVD(4, random_state=0).fit(X).transform(X.astype(np.float32 if dtype == np.float32 else float))
    for rows in (X, X.toarray(), batch, write(tmp_path / "x", [batch])):
        model = SparseSVD(4).fit(rows)
        found = model.transform(rows)
        assert found.dtype == model.components_.dtype == model.singular_values_.dtype == peer.dtype
        eps = 1e-12 if peer.dtype == np.float64 else 1e-5
        np.testing.assert_allclose(found, X.astype(np.float64) @ model.components_.T, rtol=eps, atol=eps)
    assert SparseSVD(4).fit(X.astype(np.float64)).transform(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("dtype", "scale"), [(np.float32, 1e22), (np.float32, 1e-24), (np.float64, 1e160), (np.float64, 1e-160)]
)
def test_values_whose_squares_cannot_be_held(dtype, scale):
    X = falling().astype(dtype)
    near, far = truncated_svd(X, 4), truncated_svd(X * dtype(scale), 4)
    np.testing.assert_allclose(far.singular_values, near.singular_values * dtype(scale), rtol=1e-4)
    np.testing.assert_allclose(far.components, near.components, atol=1e-3)


@pytest.mark.parametrize(("dtype", "scale"), [(np.float32, 1e-40), (np.float64, 1e-310)])
def test_values_with_few_digits_left(dtype, scale):
    """Numbers so small that they lose digits: the largest direction is still found."""
    X = (falling() * scale).astype(dtype)
    found = truncated_svd(X, 1).singular_values
    np.testing.assert_allclose(found, truncated_svd(falling(), 1).singular_values * scale, rtol=0.05)


def test_the_seed_decides():
    X = falling()
    same = [truncated_svd(X, 5, n_iter=0, seed=seed).components for seed in (1, 1, 2)]
    assert np.array_equal(same[0], same[1])
    assert not np.allclose(same[0], same[2])


def test_as_many_components_as_there_are():
    X = falling()
    assert SparseSVD().fit(X).components_.shape == (60, 60)
    assert SparseSVD().fit(X[:7]).transform(X).shape == (200, 7)
    assert SparseSVD().fit(sparse.random_array((150, 300), density=0.1, rng=0)).components_.shape == (100, 300)
    rows = as_csr(X, 60)
    assert SparseSVD().fit(rows.rows(slice(0, 9))).transform(rows).shape == (200, 9)


def test_sparse_projections_go_back_like_dense_ones():
    X = falling()
    model = SparseSVD(5).fit(X)
    projected = model.transform(X)
    projected[np.abs(projected) < 0.1] = 0
    back = model.inverse_transform(sparse.csr_array(projected))
    assert isinstance(back, np.ndarray)
    np.testing.assert_allclose(back, model.inverse_transform(projected), rtol=1e-5, atol=1e-6)
    for bad in (X, X.toarray()):
        with pytest.raises(InputError, match="X has 60 columns; projected rows have 5"):
            model.inverse_transform(bad)


def test_refused():
    X = falling()
    for settings, message in (
        ({"n_components": 61}, "n_components=61 is not possible for n_samples = 200 and n_features = 60"),
        ({"n_components": 0}, "n_components=0 is not possible"),
        ({"n_components": 2, "n_iter": -1}, "n_iter=-1 is not possible"),
        ({"n_components": 2, "random_state": -1}, "random_state=-1 is not possible"),
    ):
        with pytest.raises(InputError, match=message):
            SparseSVD(**settings).fit(X)
    X.data[3] = np.nan
    with pytest.raises(InputError, match="NaN or infinity: nan in row"):
        truncated_svd(X, 2)
