"""Every rival learns, refuses what it must, and says what is missing."""

import sys

import numpy as np
import pytest
from scipy import sparse

from reproduction.rivals import RIVALS, find_rival
from reproduction.rivals.columns import FewColumns
from reproduction.rivals.rival import Rival
from reproduction.rivals.vowpal import _bits
from sketchnet.errors import InputError, MissingExtraError
from tests.reproduction.rivals.separable import separable

# What is quick to learn in tests; others are quick as they are.
SHORT = {
    "sketchnet": {"epochs": 3},
    "embedding": {"bits": 14, "epochs": 8},
    "fm": {"factors": 4, "batch": 32, "table_rate": 0.03, "epochs": 20},
    "mlp": {"epochs": 15},
    **{
        key: {"hidden": (256,), "dropout": 0.2, "batch_size": 32}
        for key in ("gaussian", "achlioptas", "li", "srht", "count_sketch")
    },
    "xgboost": {"rounds": 60},
    "lightgbm": {"rounds": 60},
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("key", RIVALS)
def test_learns_a_separable_problem(key, n_classes):
    X, y = separable(400, n_classes, seed=0)
    Z, z = separable(300, n_classes, seed=1)
    names = np.array(["ham", "spam", "toast"])  # labels need not be numbers
    rival = find_rival(key)().fit(X, names[y], SHORT.get(key))
    assert np.mean(rival.predict(Z) != names[z]) < 0.04
    assert rival.name


@pytest.mark.parametrize("key", RIVALS)
def test_refuses(key):
    X, y = separable(60, 2, seed=0)
    bad = X.copy()
    bad.data[3] = np.nan
    with pytest.raises(InputError, match="NaN or infinity"):
        find_rival(key)().fit(bad, y)
    with pytest.raises(InputError, match="there are 60 rows, but labels of shape"):
        find_rival(key)().fit(X, y[:50])
    with pytest.raises(InputError, match="two classes or more"):
        find_rival(key)().fit(X, np.zeros(60))
    with pytest.raises(InputError, match="labels contain NaN"):
        find_rival(key)().fit(X, np.full(60, np.nan))
    with pytest.raises(InputError, match="has no setting colour; it has"):
        find_rival(key)().fit(X, y, {"colour": 1})


def test_refuses_other_widths_and_nan_when_it_predicts():
    X, y = separable(60, 2, seed=0)
    rival = find_rival("liblinear")().fit(X, y)
    with pytest.raises(InputError, match="X has 2999 columns, but LIBLINEAR learnt from 3000"):
        rival.predict(X[:, :2999])
    X.data[0] = np.inf
    with pytest.raises(InputError, match="NaN or infinity"):
        rival.predict(X)


@pytest.mark.parametrize("key", RIVALS)
def test_grids_have_settings_that_exist(key):
    X, y = separable(60, 2, seed=0)
    rival = find_rival(key)()
    for settings in rival.grid(X, y):
        assert set(settings) <= set(rival.defaults)
    assert rival.grid(X, y), "the first settings are taken where nothing is searched"


@pytest.mark.parametrize("key", ["xgboost", "lightgbm", "mlp", "embedding"])
def test_held_back_rows_choose_how_long_to_learn(key):
    X, y = separable(300, 2, seed=0)
    held = separable(100, 2, seed=1)
    most = {"rounds": 200} if key in ("xgboost", "lightgbm") else {"epochs": 25}
    rival = find_rival(key)().fit(X, y, SHORT.get(key, {}) | most, valid=held)
    (name,) = most
    assert 1 <= rival.settings_[name] < most[name]
    assert np.mean(rival.predict(held[0]) != held[1]) < 0.04


@pytest.mark.parametrize("key", ["xgboost", "lightgbm", "mlp", "embedding"])
def test_the_deadline_ends_learning_with_a_usable_model(key):
    X, y = separable(300, 2, seed=0)
    rival = find_rival(key)().fit(X, y, SHORT.get(key), valid=separable(50, 2, seed=1), seconds=0)
    assert rival.settings_.get("rounds", rival.settings_.get("epochs")) == 1
    assert rival.predict(X).shape == (300,)


@pytest.mark.parametrize(("key", "package"), [("vw", "vowpalwabbit"), ("xgboost", "xgboost"), ("lightgbm", "lightgbm")])
def test_missing_packages_are_named(key, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"needs the package {package}: pip install 'sketchnet\[bench\]'"):
        find_rival(key)().fit(*separable(60, 2, seed=0))


def test_weights_of_vowpal_wabbit_do_not_share_places():
    assert _bits(2**24, 2, 0) == 24
    assert _bits(350_000, 20, 0) == 19 + 5
    assert _bits(2**16, 20, 5) == 16 + 5 + 3
    assert _bits(2**24, 20, 5) == 27
    assert _bits(10, 2, 0) == 18


def test_vowpal_wabbit_learns_other_labels_of_the_same_rows():
    X, y = separable(400, 2, seed=0)
    rival = find_rival("vw")().fit(X, y)
    assert np.mean(rival.fit(X, 1 - y).predict(X) == y) < 0.04


def test_the_perceptron_has_other_batches_in_each_epoch_but_the_same_in_each_run(monkeypatch):
    from sklearn.neural_network import _multilayer_perceptron as perceptrons

    orders, shuffle = [], perceptrons.shuffle

    def noting(*arrays, **how):
        orders.append(shuffle(*arrays, **how))
        return orders[-1]

    monkeypatch.setattr(perceptrons, "shuffle", noting)
    X, y = separable(400, 2, seed=0)
    for _ in range(2):
        find_rival("mlp")().fit(X, y, {"epochs": 2})
    first, second, again, _ = orders
    assert not np.array_equal(first, second)
    assert np.array_equal(first, again)


def test_unknown_rivals():
    with pytest.raises(InputError, match="there is no rival 'svm'; there are gaussian, "):
        find_rival("svm")


def test_labels_that_training_rows_do_not_have_are_never_right():
    class Guess(Rival):
        name = "guess"

        def _learn(self, X, y, settings, valid, deadline):
            self.seen = valid[1]

        def _decide(self, X):
            return np.zeros(X.shape[0], np.int64)

    X, _ = separable(60, 2, seed=0)
    guess = Guess().fit(X, ["b", "d"] * 30, valid=(X[:4], ["a", "b", "c", "d"]))
    assert guess.seen.tolist() == [-1, 0, -1, 1]


class TestFewColumns:
    def test_chi2_keeps_what_tells_classes_apart(self):
        X, y = separable(400, 2, seed=0)
        few = FewColumns("chi2", 40).fit(X, y)
        assert sorted(few._kept.tolist()) == [*range(20), *range(100, 120)]
        assert np.array_equal(few.transform(X).toarray(), X.toarray()[:, few._kept])

    @pytest.mark.parametrize("kind", ["seen", "chi2"])
    def test_columns_without_training_entries_are_left_out(self, kind):
        X, y = separable(50, 2, seed=0)
        later = sparse.csr_array(np.arange(3000, dtype=np.float32)[None, :])
        few = FewColumns(kind).fit(X, y)
        kept = np.unique(X.indices)
        assert np.array_equal(few.transform(later).toarray(), later.toarray()[:, kept])

    def test_hashing_adds_up_what_meets(self):
        X, y = separable(50, 2, seed=0)
        few = FewColumns("hashed", 16).fit(X, y).transform(X)
        assert few.shape == (50, 16)
        assert np.array_equal(few.sum(axis=1).ravel(), np.full((1, 50), 16.0))

    def test_ids_beyond_tables(self):
        X = sparse.csr_array(
            (np.ones(3, np.float32), np.array([5, 2**40, 2**41]), np.array([0, 2, 3])), shape=(2, 2**42)
        )
        few = FewColumns("seen").fit(X, np.array([0, 1]))
        assert few.transform(X).toarray().tolist() == [[1, 1, 0], [0, 0, 1]]
