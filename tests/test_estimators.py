"""The scikit-learn face: its contracts, and what it adds."""

import pickle

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import DataDimensionalityWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.random_projection import GaussianRandomProjection
from sklearn.utils.estimator_checks import parametrize_with_checks

from sketchnet import RandomProjection
from sketchnet.data import CsrBatch, make_synthetic, open_shards
from sketchnet.errors import InputError
from sketchnet.projection import SCHEMES, SRHT, Li
from sketchnet.projection.quality import minimal_k
from tests.data.test_shards import write


@parametrize_with_checks([RandomProjection(scheme, n_components=2) for scheme in SCHEMES])
def test_scikit_learn_contracts(estimator, check):
    check(estimator)


def rows(n=100, d=1_000_000, dtype=np.float32):
    return sparse.random_array((n, d), density=5e-5, format="csr", rng=np.random.default_rng(0)).astype(dtype)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_transforms_as_its_operator_does(scheme):
    X = rows()
    projection = RandomProjection(scheme, n_components=64, random_state=9).fit(X)
    result = projection.transform(X)
    assert result.dtype == np.float32
    assert result.shape == (100, 64)
    assert np.array_equal(result, projection.operator_.apply(X))
    assert projection.operator_.seed == 9
    assert projection.transform(X.astype(np.float64)).dtype == np.float64
    assert np.array_equal(clone(projection).fit_transform(X), result)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_pickles_small(scheme):
    X = rows()
    projection = RandomProjection(scheme, n_components=1000).fit(X)
    result = projection.transform(X)
    stored = pickle.dumps(projection)
    assert len(stored) < 1500
    assert np.array_equal(pickle.loads(stored).transform(X), result)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_data_sets_and_tensors(scheme, tmp_path):
    X, projection = rows(d=1000), RandomProjection(scheme, n_components=64)
    X = X + sparse.random_array(X.shape, density=0.05, rng=np.random.default_rng(1), dtype=np.float32)
    batch = CsrBatch(X.indptr, X.indices, X.data, 1000)
    folder = write(tmp_path / "x", [batch.rows(slice(0, 30)), batch.rows(slice(30, 100))])
    expected = clone(projection).fit_transform(X)
    coo = torch.from_numpy(X.toarray()).to_sparse()
    for given in (folder, str(folder), open_shards(folder), batch, coo):
        assert np.array_equal(clone(projection).fit_transform(given), expected)
        assert np.array_equal(clone(projection).fit(given).transform(given), expected)
        assert np.array_equal(clone(projection).fit(X).transform(given), expected)


def test_data_sets_may_lack_the_last_columns_but_have_no_others(tmp_path):
    X = rows(d=1000)
    projection = RandomProjection(n_components=5).fit(X)
    left = sparse.csr_array(X[:, :900])
    batch = CsrBatch(left.indptr, left.indices, left.data, 900)
    expected = projection.transform(sparse.hstack([left, sparse.csr_array((100, 100))], format="csr", dtype="f4"))
    folder = write(tmp_path / "x", [batch])
    for given in (batch, folder):
        assert np.array_equal(projection.transform(given), expected)
        with pytest.raises(InputError, match="X has 900 columns, but RandomProjection is expecting 800 features"):
            RandomProjection(n_components=5).fit(X[:, :800]).transform(given)


def test_auto_takes_the_bound_for_the_rows_seen():
    projection = RandomProjection(n_components="auto", eps=0.3).fit(rows(n=500))
    assert projection.n_components_ == minimal_k(500, 0.3) == projection.transform(rows(n=5)).shape[1]


def test_auto_never_widens_the_data():
    with pytest.raises(InputError, match="100 rows and eps=0.1 need 3948 columns, more than the data's 50"):
        RandomProjection(n_components="auto").fit(np.ones((100, 50)))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_widening_the_data_is_warned_of(scheme):
    X = rows(n=5, d=20)
    message = "n_components=21 is more than the 20 columns of X"
    with pytest.warns(DataDimensionalityWarning, match=message) as caught:
        assert RandomProjection(scheme, 21).fit_transform(X).shape == (5, 21)
    assert len(caught) == 1
    assert RandomProjection(scheme, 20).fit_transform(X).shape == (5, 20)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, np.float64])
def test_results_have_the_type_that_scikit_learn_gives(scheme, dtype, tmp_path):
    X = (rows(n=20, d=1000) > 0).astype(dtype)
    batch = CsrBatch(X.indptr, X.indices, X.data, 1000)
    folder = write(tmp_path / "x", [batch])
    peer = GaussianRandomProjection(5, random_state=0).fit_transform(X).dtype
    for given in (X, X.toarray(), batch, folder):
        result = RandomProjection(scheme, 5).fit_transform(given)
        assert result.dtype == peer
        exact = RandomProjection(scheme, 5).fit_transform(X.astype(np.float64))
        np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-5)


def test_options_reach_the_law():
    assert RandomProjection("li", 10, options={"s": 7}).fit(rows()).operator_.scheme == Li(10, s=7)
    srht = RandomProjection("srht_sparse", 10).fit(rows(n=1000)).operator_.scheme
    assert srht == SRHT(10, form="sparse", density=np.log(1000) ** 2 / 1_000_000)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scheme": ["li"]}, r"there is no scheme \['li'\]; there are gaussian"),
        ({"n_components": "auto", "eps": "x"}, "eps='x' is not possible; n must be at least 2 and eps between 0 and 1"),
        ({"n_components": "auto", "eps": None}, "eps=None is not possible"),
        ({"options": "s"}, "options='s' is not possible; they are names and values"),
        ({"options": 5}, "options=5 is not possible"),
        ({"scheme": "li", "options": {1: 2}}, "options={1: 2} is not possible"),
    ],
)
def test_unusable_settings(settings, message):
    with pytest.raises(InputError, match=message):
        RandomProjection(**settings).fit(rows(n=5, d=20))


def test_sparse_output():
    X = rows()
    result = RandomProjection(n_components=10_000, sparse_output=True).fit_transform(X)
    assert sparse.issparse(result)
    assert np.allclose(result.toarray(), RandomProjection(n_components=10_000).fit_transform(X))


def test_random_state():
    X = rows()

    def seed(state):
        return RandomProjection(n_components=5, random_state=state).fit(X).operator_.seed

    assert seed(2**64 - 1) == 2**64 - 1
    assert seed(None) != seed(None)
    assert seed(np.random.RandomState(3)) == seed(np.random.RandomState(3)) > 2**32
    with pytest.raises(InputError, match="random_state=-1 is not possible"):
        seed(-1)


def test_feature_names():
    projection = RandomProjection(n_components=3).fit(rows())
    assert projection.get_feature_names_out().tolist() == [f"randomprojection{i}" for i in range(3)]
    assert projection.set_output(transform="default").n_features_in_ == 1_000_000


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataDimensionalityWarning")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("k", [30, 200])  # fewer than the features, and more
def test_inverse_is_the_pseudo_inverse(scheme, k):
    X = np.random.default_rng(0).standard_normal((20, 100))
    projection = RandomProjection(scheme, n_components=k, memory="50KB").fit(X)
    Y = projection.transform(X)
    P = projection.operator_.block(slice(None), dtype=np.float64)
    back = projection.inverse_transform(Y)
    assert np.allclose(back, Y @ np.linalg.pinv(P), atol=1e-6)
    assert np.allclose(projection.transform(back), Y, atol=1e-6)
    assert projection.inverse_transform(Y.astype(np.float32)).dtype == np.float32
    with pytest.raises(InputError, match="the projection has"):
        projection.inverse_transform(Y[:, 1:])


def test_works_in_a_pipeline_and_a_search():
    """The dissertation's data: a linear model on the projection has something to learn, and is asked to."""
    X, y = make_synthetic(2000, 2000, density=0.02)
    model = make_pipeline(RandomProjection(), LogisticRegression(max_iter=1000))
    search = GridSearchCV(model, {"randomprojection__n_components": [10, 1000]}, cv=3).fit(X, y)
    assert search.best_params_ == {"randomprojection__n_components": 1000}
    assert search.best_score_ > 0.8
