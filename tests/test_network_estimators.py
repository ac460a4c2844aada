"""SketchClassifier and SketchRegressor: scikit-learn's contracts, and what they add."""

import json
import pickle

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sketchnet import SketchClassifier, SketchRegressor
from sketchnet.data import NgramHasher, Synthetic, ingest, open_shards
from sketchnet.data.sources import SyntheticSource
from sketchnet.errors import InputError, TrainingError
from sketchnet.nn import LearnableProjection
from sketchnet.projection import SRHT
from tests.cli.command_line import good
from tests.cli.planted import FIELDS

TINY = {"n_components": 32, "hidden": (32,)}
# For rules that need all of a row: what they depend on must not be dropped.
RULE = {"n_components": 256, "hidden": (64,), "dropout": 0.1, "patience": None}
# As scikit-learn declares them for its own models of stochastic gradient descent: a weight of two is not a row twice
# where rows are shuffled into batches, dropped at random and normalised by their batch.
WEIGHTS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "rows are shuffled, dropped and normalised by batch"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [SketchClassifier(**TINY, epochs=20), SketchRegressor(**TINY, epochs=20)],
    expected_failed_checks=lambda estimator: WEIGHTS,
)
def test_scikit_learn_contracts(estimator, check):
    check(estimator)


def planted(n=600, d=50_000, seed=0):
    """Rows whose class is the parity of two groups of columns, which no linear model can tell."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 2, (2, n))
    noise = rng.integers(40, 140, (n, 2))
    columns = np.column_stack([rng.integers(0, 10, n) + 10 * first, 20 + rng.integers(0, 10, n) + 10 * second, noise])
    indptr = np.arange(n + 1) * columns.shape[1]
    X = sparse.csr_array((np.ones(columns.size, np.float32), columns.ravel(), indptr), shape=(n, d))
    return X, first ^ second


def test_learns_what_no_linear_model_can():
    X, y = planted(3000)
    model = SketchClassifier(**RULE).fit(X[:2000], y[:2000])
    linear = LogisticRegression(max_iter=300).fit(X[:2000], y[:2000])
    assert linear.score(X[2000:], y[2000:]) < 0.6
    assert model.score(X[2000:], y[2000:]) > 0.9
    assert roc_auc_score(y[2000:], model.predict_proba(X[2000:])[:, 1]) > 0.95
    assert model.best_epoch_ <= model.n_epochs_ <= model.settings_["epochs"]


def test_words_as_labels_and_pipelines():
    X, y = planted()
    names = np.array(["even", "odd"])[y]
    model = SketchClassifier(**TINY, epochs=2)
    assert cross_val_score(model, X, names, cv=2).shape == (2,)
    assert set(model.fit(X, names).predict(X)) <= {"even", "odd"}
    assert model.decision_function(X).shape == (600,)
    pipeline = make_pipeline(MaxAbsScaler(), clone(model))
    search = GridSearchCV(pipeline, {"sketchclassifier__dropout": [0.1, 0.5]}, cv=2).fit(X, names)
    assert search.best_score_ > 0.3
    texts = make_pipeline(NgramHasher("char", (1, 3), 2**16), clone(model).set_params(epochs=20))
    assert texts.fit(["aaa", "bbb"] * 20, ["x", "y"] * 20).predict(["aaa"]).tolist() == ["x"]


def test_several_labels():
    rng = np.random.default_rng(0)
    X = sparse.random_array((800, 300), density=0.02, format="csr", rng=rng).astype(np.float32)
    Y = np.column_stack([X[:, [0, 1, 2]].sum(axis=1) > 0, X[:, [3, 4, 5]].sum(axis=1) > 0]).astype(int)
    model = SketchClassifier(**RULE).fit(X, Y)
    assert model.predict(X).shape == (800, 2)
    assert np.mean(model.predict(X) == Y) > 0.95
    assert model.predict_proba(X).shape == (800, 2)


@pytest.mark.parametrize("weight", ["sample_weight", "class_weight"])
def test_weights_count(weight):
    X, _ = planted()
    y = np.random.default_rng(1).integers(0, 2, 600)  # noise: the weights decide
    heavy = {0: 1.0, 1: 50.0}
    model = SketchClassifier(**TINY, epochs=3, class_weight=heavy if weight == "class_weight" else None)
    model.fit(X, y, sample_weight=np.where(y, 50.0, 1.0) if weight == "sample_weight" else None)
    assert model.predict(X).mean() > 0.95


def test_saved_and_loaded(tmp_path):
    X, y = planted()
    model = SketchClassifier(**TINY, epochs=2).fit(X, np.array(["no", "yes"])[y])
    model.save(tmp_path / "model")
    loaded = SketchClassifier.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert loaded.best_epoch_ == model.best_epoch_
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    with pytest.raises(InputError, match="is a model for binary"):
        SketchRegressor.load(tmp_path / "model")
    regressor = SketchRegressor(**TINY, epochs=2).fit(X, 5.0 * y + 100)
    regressor.save(tmp_path / "numbers")
    assert np.array_equal(SketchRegressor.load(tmp_path / "numbers").predict(X), regressor.predict(X))


@pytest.mark.parametrize(("hashed_columns", "width"), [(None, 50_000), (100, 100)])
def test_the_density_of_the_dissertations_srht_is_that_of_the_rows(hashed_columns, width, tmp_path):
    X, y = planted()
    model = SketchClassifier("srht_sparse", learn_projection=False, epochs=1, hashed_columns=hashed_columns, **TINY)
    model.fit(X, y).save(tmp_path / "model")
    assert model.settings_["options"] == {"density": SRHT.thesis_density(540, width)}  # a tenth is held back
    assert model.options is None
    loaded = SketchClassifier.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    model.set_params(options={"density": 0.5, "entries": "sign"}).fit(X, y)
    assert model.settings_["options"] == {"density": 0.5, "entries": "sign"}


def test_momentum_decay_and_frozen_epochs(tmp_path):
    X, y = planted()
    still = {**TINY, "optimiser": "sgd", "learning_rate": 0.01, "epochs": 3, "validation_fraction": 0, "dropout": 0.0}
    still |= {"feature_dropout": 0.0, "normalise": "none"}
    changes = {"moved": {}, "stopped": {"decay": 0.0}, "heavier": {"momentum": (0.5, 0.5)}}  # others begin at 0
    models = {name: SketchClassifier(**{**still, "momentum": [0, 0], **change}) for name, change in changes.items()}
    losses = {
        name: [record["loss"] for record in model.fit(X, y).history_ if "loss" in record]
        for name, model in models.items()
    }
    assert losses["stopped"][0] == losses["moved"][0] != losses["heavier"][0]
    assert losses["stopped"][1] == pytest.approx(losses["stopped"][2], abs=1e-6)  # after an epoch, nothing moves
    assert losses["moved"][2] < losses["moved"][1] - 1e-4
    for frozen in (0, 1):
        model = SketchClassifier(**TINY, epochs=1, frozen_epochs=frozen, validation_fraction=0).fit(X, y)
        drawn = LearnableProjection(X.shape[1], 32).weight
        assert torch.equal(model.model_.network.projection.weight, drawn) == frozen
    models["stopped"].save(tmp_path / "model")
    loaded = SketchClassifier.load(tmp_path / "model")
    assert (tuple(loaded.momentum), loaded.decay) == ((0, 0), 0.0)


def test_from_disk_equals_from_memory(tmp_path):
    data = Synthetic(n=500, d=5000, density=0.01)
    ingest(SyntheticSource(data, "train"), tmp_path / "x")
    rows = open_shards(tmp_path / "x")
    X, y = rows[:].scipy(), rows.labels
    model = SketchClassifier(**TINY, epochs=2)
    from_memory = clone(model).fit(X, y).predict_proba(X)
    assert np.array_equal(clone(model).fit(str(tmp_path / "x")).predict_proba(X), from_memory)
    assert np.array_equal(clone(model).fit(rows).predict_proba(tmp_path / "x"), from_memory)


@pytest.fixture
def named(tmp_path):
    """A data set whose classes have names, numbered as they come: not in the order of the alphabet."""
    X, y = planted()
    lines = [f"{'odd' if odd else 'even'}\t{' '.join(map(str, X[[i]].indices))}\n" for i, odd in enumerate(y)]
    first = y.tolist().index(1)
    lines = [lines[first], *lines[:first], *lines[first + 1 :]]
    (tmp_path / "rows.tsv").write_text("".join(lines))
    good("ingest", "rows.tsv", "rows", "--text", *FIELDS, "--ngrams", "1", "--columns", "1000", cwd=tmp_path)
    assert open_shards(tmp_path / "rows").descriptions[0]["classes"] == ["odd", "even"]
    return tmp_path


def test_named_classes_go_between_python_and_the_command_line(named):
    rows = open_shards(named / "rows")
    names = np.array(["odd", "even"])[rows.labels.astype(int)]
    model = SketchClassifier(**TINY, epochs=2, class_weight={"odd": 1, "even": 2}).fit(
        named / "rows", valid=(rows, names)
    )
    model.save(named / "ours")
    good("train", "rows", "--out", "theirs", "--components", "32", "--hidden", "32", "--epochs", "2", cwd=named)
    loaded = {folder: SketchClassifier.load(named / folder) for folder in ("ours", "theirs")}
    assert np.array_equal(loaded["ours"].predict_proba(rows), model.predict_proba(rows))
    for folder, found in loaded.items():
        assert found.classes_.tolist() == ["odd", "even"]
        assert found.model_.task.classes == (0, 1)
        answers = good("predict", folder, "rows", cwd=named).splitlines()
        assert found.predict(rows).tolist() == answers
        error = json.loads(good("evaluate", folder, "rows", "--json", cwd=named))["error"]
        assert error == pytest.approx(1 - found.score(rows, names))
        chosen = found.explain(rows[:9], output="odd").toarray()
        np.testing.assert_allclose(chosen, -found.explain(rows[:9], output="even").toarray())
        with pytest.raises(InputError, match="there is no class 0; there are odd, even"):
            found.explain(rows[:9], output=0)
        for y in (names, None):
            found.partial_fit(rows, y)
        with pytest.raises(InputError, match="label x of row 0 is not among the classes odd, even"):
            found.partial_fit(rows[:1].scipy(), ["x"])


def test_other_labels_do_not_get_the_names_of_a_data_set(named):
    rows = open_shards(named / "rows")
    for y, names in ((np.arange(600) % 3, ["0", "1", "2"]), (np.array(["a", "b"] * 300), ["a", "b"])):
        model = SketchClassifier(**TINY, epochs=1).fit(rows, y)
        model.save(named / names[-1])
        assert (
            model.classes_.tolist()
            == SketchClassifier.load(named / names[-1]).classes_.tolist()
            == np.unique(y).tolist()
        )
        header = good("predict", names[-1], "rows", "--proba", cwd=named).split("\n", 1)[0]
        assert header.split("\t") == ["label", *names]
    for learn in (SketchRegressor.fit, SketchRegressor.partial_fit):
        with pytest.raises(InputError, match="labels are the classes odd, even; SketchRegressor learns numbers"):
            learn(SketchRegressor(**TINY), rows, None)
    assert SketchRegressor(**TINY, epochs=1).fit(rows, np.arange(600.0)).predict(rows).shape == (600,)


def test_explains_by_original_columns():
    rng = np.random.default_rng(0)
    X = sparse.random_array((1500, 20_000), density=1e-3, format="csr", rng=rng).astype(np.float32)
    X = sparse.csr_array(sparse.hstack([sparse.csr_array((rng.random((1500, 1)) < 0.5).astype(np.float32)), X]))
    y = X[:, [0]].toarray().ravel() > 0
    model = SketchClassifier(n_components=64, hidden=(32,)).fit(X, y)
    found = model.explain(X)
    assert found.shape == X.shape
    assert model.get_feature_importance(X).toarray().ravel().argmax() == 0


def test_rows_of_single_precision_are_predicted_as_those_of_double():
    X, y = planted()
    model = SketchClassifier(**TINY, epochs=2).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), model.predict_proba(X.astype(np.float64)), atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scheme": "gaussian"}, "'gaussian' cannot be learnt"),
        ({"dropout": 1.0}, "dropout=1.0 is not possible"),
        ({"epochs": 0}, "epochs=0 is not possible"),
        ({"frozen_epochs": -1}, "frozen_epochs=-1 is not possible"),
        ({"hidden": 5}, "hidden=5 is not possible"),
        ({"validation_fraction": 1.0}, "a validation fraction of 1.0 is not possible"),
        ({"device": "tpu"}, "device 'tpu' is not possible"),
        ({"random_state": -1}, "random_state=-1 is not possible"),
        ({"momentum": np.array([0.5, 0.9, 1])}, "momentum=.* is not possible"),
    ],
)
def test_impossible_settings(settings, message):
    X, y = planted(50)
    with pytest.raises(InputError, match=message):
        SketchClassifier(**{**TINY, **settings}).fit(X, y)


@pytest.mark.parametrize("learn", [True, False])
def test_values_that_single_precision_cannot_hold(learn):
    X = sparse.random_array((60, 500), density=0.05, format="csr", rng=np.random.default_rng(0))
    X.data[3] = 1e300
    with pytest.raises(InputError, match=r"a value is 1e\+300; networks compute in float32, to 3.4e\+38 at most"):
        SketchClassifier(n_components=16, hidden=(8,), epochs=1, learn_projection=learn).fit(X, np.arange(60) % 2)


@pytest.mark.parametrize("estimator", [SketchClassifier, SketchRegressor])
def test_values_whose_sums_single_precision_cannot_hold(estimator):
    X = np.random.default_rng(0).standard_normal((100, 20)) * 3e37
    with pytest.raises(TrainingError, match="values too large"):
        estimator(n_components=16, hidden=(8,), epochs=2).fit(X, np.arange(100) % 2)


def test_labels_of_several_kinds():
    X = sparse.random_array((60, 500), density=0.05, format="csr", rng=np.random.default_rng(0))
    with pytest.raises(InputError, match=r"labels are of several kinds \(int, str\)"):
        SketchClassifier(epochs=1).fit(X, np.array(["a", 1] * 30, dtype=object))
    for odd, kinds in ((1, "int, str"), (None, "NoneType, str")):
        with pytest.raises(InputError, match=rf"labels are of several kinds \({kinds}\)"):
            SketchClassifier(epochs=1).fit(X, ["a", "b"] * 30, valid=(X, np.array(["a", odd] * 30, dtype=object)))


def test_learns_from_tensors():
    X, y = planted(300, d=200)
    X = sparse.csr_array(X.toarray())  # in the order of the columns, as tensors have them
    dense = torch.from_numpy(X.toarray())
    expected = SketchClassifier(**TINY, epochs=2).fit(X, y).predict_proba(X)
    for rows in (dense.to_sparse_csr(), dense.to_sparse_coo(), dense):
        found = SketchClassifier(**TINY, epochs=2).fit(rows, torch.from_numpy(y)).predict_proba(rows)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_several_labels_are_zero_or_one():
    """Anything else was learnt as if it were a probability, to no use."""
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 5)), rng.integers(0, 2, (60, 2))
    y[7, 1] = 1
    for wrong, message in (
        (y + 1, "y has the value 2 in row"),
        (2 * y - 1, "y has the value -1 in row"),
        (y * 0.3, "y has the value 0.3 in row"),
        (sparse.csr_array(y * 2), "y has the value 2 in row"),
        (np.where(y, "a", "b"), "y has dtype <U1"),
    ):
        with pytest.raises(InputError, match=f"{message}.*; several labels a row are a matrix of 0 and 1"):
            SketchClassifier(**TINY, epochs=1).fit(X, wrong)
    with pytest.raises(InputError, match="class_weight is for one label a row"):
        SketchClassifier(**TINY, class_weight="balanced").fit(X, y)
    plain = SketchClassifier(**TINY, epochs=1).fit(X, y).decision_function(X)
    stored = sparse.csr_array((np.array([0.0, 1.0]), ([0, 0], [0, 1])), shape=y.shape)  # a zero that is stored
    for right in (y.astype(bool), sparse.csr_array(y), sparse.csr_array(y) + 0 * stored):
        assert np.array_equal(SketchClassifier(**TINY, epochs=1).fit(X, right).decision_function(X), plain)


def test_a_fit_that_fails_leaves_the_model_before_it():
    X = np.random.default_rng(0).random((60, 5))
    y = (X[:, 0] > 0.5).astype(int)
    model = SketchClassifier(**TINY).fit(X, y)
    before = model.predict_proba(X)
    model.set_params(learning_rate=1e30)
    with pytest.raises(TrainingError):
        model.fit(X * 1e30, y)
    assert np.array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize("weight", [1e-40, 1e39])
def test_weights_count_relative_to_their_mean(weight):
    rng = np.random.default_rng(0)
    X = rng.random((100, 5))
    y = (X[:, 0] > 0.5).astype(int)
    plain = SketchClassifier(**TINY, epochs=2).fit(X, y, np.ones(100)).decision_function(X)
    found = SketchClassifier(**TINY, epochs=2).fit(X, y, np.full(100, weight)).decision_function(X)
    np.testing.assert_allclose(found, plain, rtol=1e-4, atol=1e-5)
