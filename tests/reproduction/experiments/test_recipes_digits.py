"""Recipes on digits, and networks on rows that were reduced before."""

import numpy as np
import pytest
from scipy import sparse

from reproduction.experiments.recipes.digits import digit_rows, digits_network
from reproduction.experiments.recipes.identity import Identity
from reproduction.experiments.recipes.linear_models import digits_linear
from reproduction.experiments.recipes.reduction import DenseArray, chosen_pixels, digits_reduced
from sketchnet.errors import InputError

ONCE = {"seed": 0, "device": "cpu", "data": "digits", "rows": 1000}
NETWORK = {"hidden": [64], "epochs": 20, "batch_size": 50, "patience": None, "wide": False}


def test_identity_passes_rows_on():
    X = sparse.random_array((50, 30), density=0.2, format="csr", dtype=np.float32, rng=np.random.default_rng(0))
    operator = Identity(30).sample(30)
    assert np.array_equal(operator.apply(X), X.toarray())
    assert np.array_equal(operator.apply(X.toarray()), X.toarray())
    assert np.array_equal(operator.block(slice(None)), np.eye(30))


def test_dense_rows_are_what_they_were_made_of():
    X = np.random.default_rng(0).normal(size=(20, 7)).astype(np.float32)
    rows = DenseArray(X)
    assert np.array_equal(rows.rows(slice(3, 9)).scipy().toarray(), X[3:9])
    assert np.array_equal(rows[np.array([1, 5])].scipy().toarray(), X[[1, 5]])
    assert (rows.n_rows, rows.n_columns, rows.n_entries) == (20, 7, 140)


@pytest.mark.parametrize("learn", [False, True])
def test_networks_learn(learn):
    found = digits_network(**ONCE, **NETWORK, scheme="count_sketch", n_components=60, learn=learn, sparse_rate=0.01)
    assert found["error"] < 20
    assert found["best_epoch"] == found["epochs"] == 20
    assert "valid_error" not in found


@pytest.mark.parametrize(("method", "error"), [("chi2", 15), ("pca", 15)])
def test_networks_on_reduced_rows(method, error):
    found = digits_reduced(**ONCE, **NETWORK, method=method, n_columns=40, pretrain=1)
    assert found["error"] < error
    assert found["total_seconds"] > found["reduce_seconds"] > 0
    few = digits_reduced(**ONCE, **NETWORK, method=method, n_columns=3)
    assert few["error"] > 20  # what was left out is really not there


@pytest.mark.parametrize("model", ["lr", "svm"])
def test_linear_models(model):
    assert digits_linear(**ONCE, model=model)["error"] < 12


def test_chosen_pixels():
    (X, _), _ = digit_rows("digits", 1000)
    found = {score: chosen_pixels(**ONCE, score=score, n_columns=40) for score in ("chi2", "f_score")}
    for result in found.values():
        assert len(set(result["columns"])) == 40
        assert result["constant"] == 0
        assert np.ptp(X[:, result["columns"]], axis=0).min() > 0
        assert result["central"] > 100 * 36 / 64  # more than pixels at random would
    everything = chosen_pixels(**ONCE, score="chi2", n_columns=64)
    assert everything["shared"] == 100
    assert everything["constant"] == pytest.approx(100 * np.mean(np.ptp(X, axis=0) == 0))


def test_other_digits_are_an_error():
    with pytest.raises(InputError, match="'mnist' or 'digits'"):
        digits_linear(**{**ONCE, "data": "letters"}, model="svm")
