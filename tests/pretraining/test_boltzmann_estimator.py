"""The scikit-learn face of a restricted Boltzmann machine."""

import pickle

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sketchnet import RestrictedBoltzmannMachine
from sketchnet.errors import InputError, TrainingError


@parametrize_with_checks([RestrictedBoltzmannMachine(5, epochs=2, hidden=kind) for kind in ("binary", "relu")])
def test_scikit_learn_contracts(estimator, check):
    check(estimator)


def counts(n=200, d=100):
    rng = np.random.default_rng(0)
    return np.where(rng.random((n, d)) < 0.02, rng.integers(1, 4, (n, d)), 0).astype(np.float32)


def test_sparse_input_gives_what_dense_input_does():
    X = counts()
    machine = RestrictedBoltzmannMachine(7, visible="poisson", epochs=2).fit(sparse.csr_array(X))
    assert np.allclose(machine.transform(sparse.csr_array(X)), machine.transform(X), atol=1e-6)
    assert np.allclose(machine.score_samples(sparse.csr_array(X)), machine.score_samples(X), atol=1e-4)
    assert machine.transform(X).dtype == np.float32
    assert machine.transform(X.astype(np.float64)).dtype == np.float64


def test_transform_and_scores_are_those_of_the_machine():
    X = (counts() > 0).astype(np.float32)
    machine = RestrictedBoltzmannMachine(7, visible="binary", epochs=3, random_state=4).fit(X)
    expected = 1 / (1 + np.exp(-(X @ machine.components_.T + machine.intercept_hidden_)))
    assert np.allclose(machine.transform(X), expected, atol=1e-6)
    assert np.allclose(machine.score_samples(X), -machine.rbm_.free_energy(torch.from_numpy(X)).numpy(), atol=1e-5)
    assert [record["epoch"] for record in machine.history_] == [1, 2, 3]
    again = pickle.loads(pickle.dumps(machine))
    assert np.array_equal(again.transform(X), machine.transform(X))
    assert np.array_equal(clone(machine).fit(X).components_, machine.components_)
    assert machine.get_feature_names_out()[0] == "restrictedboltzmannmachine0"


def test_a_fitted_machine_is_as_wide_as_it_was_fitted():
    X = counts()
    machine = RestrictedBoltzmannMachine(7, visible="poisson", epochs=1).fit(X)
    before = machine.transform(X)
    assert np.array_equal(machine.set_params(n_components=3).transform(X), before)


def test_features_help_a_linear_model():
    """Whether two bits agree is not linear in them; an RBM has units for their patterns."""
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2, (1000, 2))
    X, y = np.repeat(bits, 8, axis=1).astype(np.float32), bits[:, 0] == bits[:, 1]
    plain = LogisticRegression().fit(X, y).score(X, y)
    machine = RestrictedBoltzmannMachine(20, visible="binary", epochs=30)
    deep = make_pipeline(machine, LogisticRegression(C=100, max_iter=1000)).fit(X, y).score(X, y)
    assert plain < 0.8  # three of the four patterns, at best
    assert deep > 0.95


def test_scores_know_the_rows_that_were_learnt():
    X = np.repeat(np.eye(4, dtype=np.float32), 50, axis=0)
    machine = RestrictedBoltzmannMachine(8, visible="binary", epochs=100, batch_size=20).fit(X)
    assert machine.score_samples(X).min() > machine.score_samples(1 - X).max()


def test_rectified_units_have_no_scores():
    assert not hasattr(RestrictedBoltzmannMachine(hidden="relu"), "score_samples")


@pytest.mark.parametrize(
    ("visible", "X", "message"),
    [
        ("binary", [[0.0, 2.0]], "binary units take values from 0 to 1, but a row has 2"),
        ("poisson", [[0.0, -1.0]], r"poisson units take counts: whole numbers from 0 to 2\*\*31, but a row has -1"),
        ("poisson", [[0.0, 1.5]], "a row has 1.5"),
        ("gaussian", [[0.0, np.nan]], "contains NaN"),
    ],
)
def test_bad_values(visible, X, message):
    machine = RestrictedBoltzmannMachine(2, visible=visible, epochs=1)
    good = np.array([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match=message):
        machine.fit(np.vstack([good, X]))
    with pytest.raises(ValueError, match=message):
        machine.fit(sparse.csr_array(np.vstack([good, X])))
    with pytest.raises(ValueError, match=message):
        machine.fit(good).transform(X)


def test_bad_settings():
    X = np.ones((3, 2))
    for settings, message in [
        ({"visible": "softmax"}, "visible='softmax' is not possible"),
        ({"learning_rate": "fast"}, "rate='fast' is not possible"),
        ({"device": "tpu"}, "device 'tpu' is not possible"),
        ({"steps": 0}, "steps=0"),
    ]:
        with pytest.raises(InputError, match=message):
            RestrictedBoltzmannMachine(2, **settings).fit(X)


def test_sparse_rows_are_learnt_in_the_order_of_dense_ones():
    X = (np.random.default_rng(0).random((250, 30)) < 0.2).astype(np.float32)
    dense, thin = (RestrictedBoltzmannMachine(6, visible="binary", epochs=3).fit(x) for x in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(dense.components_, thin.components_, atol=1e-6)


def test_portions_are_learnt_from():
    """Pass by pass over the same rows is an epoch of `fit`, to the same bits; a pickle goes on from where it was."""
    X = (counts(400) > 0).astype(np.float32)
    settings = {"visible": "binary", "random_state": 4}
    whole = RestrictedBoltzmannMachine(7, epochs=8, **settings).fit(X)
    machine = RestrictedBoltzmannMachine(7, **settings)
    for number in range(8):
        assert machine.partial_fit(sparse.csr_array(X) if number % 2 else X) is machine
        machine = pickle.loads(pickle.dumps(machine))
    np.testing.assert_allclose(machine.components_, whole.components_, atol=1e-6)
    np.testing.assert_allclose(machine.intercept_visible_, whole.intercept_visible_, atol=1e-6)
    assert [record["epoch"] for record in machine.history_] == list(range(1, 9))
    more = clone(whole).fit(X).partial_fit(X)
    longer = RestrictedBoltzmannMachine(7, epochs=9, **settings).fit(X)
    assert len(more.history_) == 9
    assert 0 < np.abs(more.components_ - longer.components_).max() < 0.1  # fit lets go of the velocity
    assert not np.array_equal(more.components_, whole.components_)


def test_portions_teach_what_all_rows_do():
    X = np.repeat(np.eye(4, dtype=np.float32), 500, axis=0)[np.random.default_rng(0).permutation(2000)]
    machine = RestrictedBoltzmannMachine(8, visible="binary", batch_size=20)
    for start in [*range(0, 2000, 100)] * 5:
        machine.partial_fit(X[start : start + 100])
    assert machine.score_samples(X).min() > machine.score_samples(1 - X).max()
    assert machine.history_[-1]["reconstruction"] < 0.8 * machine.history_[0]["reconstruction"]


def test_portions_that_cannot_be_learnt_from_change_nothing():
    X = counts()
    machine = RestrictedBoltzmannMachine(3, visible="poisson")
    for bad, error in ((-X, "a row has -"), (X * np.nan, "NaN")):
        with pytest.raises(ValueError, match=error):
            machine.partial_fit(bad)
        assert not hasattr(machine, "rbm_")
    before = machine.partial_fit(X).components_.copy()
    for bad, error in ((-X, "a row has -"), (X * np.nan, "NaN"), (X[:, 1:], "99 features, but .* 100 features")):
        with pytest.raises(ValueError, match=error):
            machine.partial_fit(bad)
    with pytest.raises(TrainingError, match="no longer finite"):
        machine.set_params(learning_rate=1e30).partial_fit(X)
    assert np.array_equal(machine.components_, before)
    assert np.array_equal(machine.rbm_.weight.numpy(), before)
    assert len(machine.history_) == 1


def test_portions_go_on_at_the_rate_that_stayed_finite():
    X = np.repeat(30 * np.random.default_rng(0).standard_normal((200, 1)), 8, axis=1).astype(np.float32)
    machine = RestrictedBoltzmannMachine(4, hidden="relu", batch_size=5).partial_fit(X)
    stages = ["rbm_restart", "rbm_restart", "rbm"]
    assert [record["stage"] for record in machine.history_] == stages
    for _ in range(3):
        machine.partial_fit(X)
    assert [record["stage"] for record in machine.history_] == [*stages, *["rbm"] * 3]
