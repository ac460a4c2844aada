"""SketchAutoencoder: scikit-learn's contracts, what it adds, and codes that tell topics apart."""

import json
import pickle
from functools import cache

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sketchnet import SketchAutoencoder, SketchClassifier, SketchRegressor
from sketchnet.data import Synthetic, ingest, open_shards
from sketchnet.data.csr import as_csr
from sketchnet.data.sources import SyntheticSource
from sketchnet.errors import InputError
from sketchnet.evaluation.retrieval import retrieval
from sketchnet.memory import anonymous_memory
from sketchnet.pretraining.autoencoder import build_autoencoder
from sketchnet.projection import SRHT
from sketchnet.training import checkpoint

TINY = {"n_codes": 3, "hidden": (8,), "pretrain": 2, "epochs": 2}
SKETCHED = {**TINY, "scheme": "count_sketch", "n_components": 6}


@parametrize_with_checks([SketchAutoencoder(**TINY), SketchAutoencoder(**SKETCHED)])
def test_scikit_learn_contracts(estimator, check):
    check(estimator)


@cache
def documents(n=1800, d=300, topics=8, length=50, share=0.35, seed=0):
    """Word counts and topics: a third of a document's words are its topic's, the others follow Zipf's law."""
    rng = np.random.default_rng(seed)
    common, own = 1 / np.arange(1, d + 1), rng.dirichlet(np.full(d, 0.05), topics)
    law = (1 - share) * common / common.sum() + share * own
    chosen = rng.integers(0, topics, n)
    counts = np.stack([rng.multinomial(rng.poisson(length) + 1, law[topic]) for topic in chosen])
    return sparse.csr_array(counts.astype(np.float32)), chosen


# -- learning

N = 1500  # to learn from; the others are searched
SMALL = {"n_codes": 8, "hidden": (64,), "epochs": 10, "pretrain": 10, "learning_rate": 3e-3}


def area(codes):
    return retrieval(codes, documents()[1][N:]).area


def best_loss(model):
    return min(record["valid_loss"] for record in model.history_ if "valid_loss" in record)


@cache
def best_without():
    """The best area among random codes, the counts themselves, and as many singular vectors as codes have numbers."""
    X = documents()[0]
    random, raw = np.random.default_rng(0).normal(size=(X.shape[0] - N, 8)), X[N:].toarray()
    areas = [area(codes) for codes in (random, raw, TruncatedSVD(8, random_state=0).fit(X[:N]).transform(X[N:]))]
    assert areas[0] < 0.15 < 0.65 < min(areas[1:]) < max(areas) < 0.78
    return max(areas)


@pytest.mark.parametrize("front", [{}, {"scheme": "count_sketch", "n_components": 200}], ids=["counts", "sketched"])
def test_codes_find_documents_of_the_same_topic(front):
    """Better than the best of the plain ways. RBMs help to give documents back; they cost little area, if any."""
    X = documents()[0]
    model = SketchAutoencoder(**SMALL, **front).fit(X[:N])
    found = area(model.transform(X[N:]))
    assert found > best_without() + 0.05
    plain = clone(model).set_params(pretrain=False).fit(X[:N])
    assert best_loss(model) < best_loss(plain)
    assert found > area(plain.transform(X[N:])) - 0.1


def test_bits_find_documents_too():
    X = documents()[0]
    model = SketchAutoencoder(**{**SMALL, "n_codes": 16, "epochs": 20}, binary_codes=True).fit(X[:N])
    codes = model.transform(X[N:])
    assert ((codes > 0) & (codes < 1)).all()
    assert area((codes > 0.5) - 0.5) > best_without() + 0.05
    quiet = clone(model).set_params(noise=0.0).fit(X[:N]).transform(X[N:])
    undecided = [((x > 0.1) & (x < 0.9)).mean() for x in (codes, quiet)]
    assert undecided[0] < 0.5 * undecided[1]


def test_pretrained_networks_learn_labels():
    X, y = documents()
    settings = {"n_components": 200, "hidden": (64,), "learn_projection": False, "epochs": 10}
    model = SketchClassifier(**settings, pretrain=5).fit(X[:N], y[:N])
    assert model.score(X[N:], y[N:]) > 0.9
    assert [record["epoch"] for record in model.history_ if record.get("stage") == "rbm"] == [1, 2, 3, 4, 5]
    assert model.settings_["pretrain"] == 5
    length = np.asarray(X.sum(axis=1)).ravel()
    regressor = SketchRegressor(**settings, pretrain=2).fit(X[:N], length[:N])
    assert regressor.score(X[N:], length[N:]) > 0.5


# -- rows, settings, files


def test_counts_or_real_numbers():
    X = documents(n=100)[0]
    for rows, settings, visible, units in (
        (X, {}, "counts", "binary"),
        (X.astype(np.float64), {}, "counts", "binary"),
        (X / 2, {}, "real", "relu"),
        (-X, {}, "real", "relu"),
        (X, {"visible": "real"}, "real", "relu"),
        (X, {"units": "relu"}, "counts", "relu"),
        (X, {"scheme": "count_sketch", "n_components": 6}, "real", "relu"),
    ):
        model = SketchAutoencoder(**TINY, **settings).fit(rows)
        assert (model.settings_["visible"], model.settings_["units"]) == (visible, units)
        assert model.transform(rows).shape == (100, 3)
    with pytest.raises(InputError, match="a count is -"):
        SketchAutoencoder(**TINY).fit(X).transform(-X)


@pytest.mark.parametrize("settings", [TINY, SKETCHED, {**TINY, "binary_codes": True}])
def test_rows_of_single_precision_and_dense_rows_have_the_same_codes(settings):
    X = documents(n=200)[0]
    model = SketchAutoencoder(**settings).fit(X)
    single, double = model.transform(X), model.transform(X.astype(np.float64))
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single, double, atol=1e-4)
    np.testing.assert_allclose(model.transform(X.toarray()), single, atol=1e-5)
    with torch.no_grad():
        np.testing.assert_allclose(model.transform(X[3:4]), single[3:4], atol=1e-5)
    assert list(model.get_feature_names_out()) == [f"sketchautoencoder{i}" for i in range(3)]


def test_many_rows_are_transformed_in_pieces():
    X = documents()[0]
    model = SketchAutoencoder(**TINY).fit(X[:200])
    whole = model.transform(X)
    assert whole.shape == (1800, 3)
    np.testing.assert_allclose(whole[1500:], model.transform(X[1500:]), atol=1e-5)


def test_the_same_again_and_in_pipelines():
    X, y = documents(n=200)
    model = SketchAutoencoder(**TINY, random_state=5)
    codes = model.fit_transform(X)
    assert np.array_equal(clone(model).fit(X).transform(X), codes)
    assert not np.array_equal(clone(model).set_params(random_state=6).fit(X).transform(X), codes)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).transform(X), codes)
    assert make_pipeline(model, LogisticRegression()).fit(X, y).predict(X).shape == (200,)
    assert 1 <= model.best_epoch_ <= model.n_epochs_ == 2  # not counting those of the RBMs


@pytest.mark.parametrize("settings", [TINY, SKETCHED, {**TINY, "binary_codes": True, "pretrain": False}])
def test_saved_and_loaded(settings, tmp_path):
    X = documents(n=200)[0]
    model = SketchAutoencoder(**settings).fit(X)
    model.save(tmp_path / "model")
    loaded = SketchAutoencoder.load(tmp_path / "model")
    assert np.array_equal(loaded.transform(X), model.transform(X))
    assert np.array_equal(loaded.transform(X.astype(np.float64)), model.transform(X.astype(np.float64)))
    assert loaded.settings_ == model.settings_
    assert loaded.history_ == model.history_
    assert np.array_equal(clone(loaded).fit(X).transform(X), model.transform(X))


def test_the_density_of_the_dissertations_srht_is_that_of_the_rows(tmp_path):
    X = documents(n=200)[0]  # of which none are held back
    model = SketchAutoencoder(**{**SKETCHED, "scheme": "srht_sparse"}).fit(X)
    assert model.settings_["options"] == {"density": SRHT.thesis_density(200, 300)}
    model.save(tmp_path / "model")
    assert np.array_equal(SketchAutoencoder.load(tmp_path / "model").transform(X), model.transform(X))


def test_folders_of_other_models(tmp_path):
    X, y = documents(n=200)
    SketchAutoencoder(**TINY).fit(X).save(tmp_path / "codes")
    SketchClassifier(n_components=8, hidden=(8,), epochs=1).fit(X, y).save(tmp_path / "classes")
    for estimator in (SketchClassifier, SketchRegressor):
        with pytest.raises(InputError, match=f"is a model for autoencoder; {estimator.__name__} cannot load it"):
            estimator.load(tmp_path / "codes")
    with pytest.raises(InputError, match="is a model for multiclass; SketchAutoencoder cannot load it"):
        SketchAutoencoder.load(tmp_path / "classes")


@pytest.mark.parametrize(
    ("part", "name", "value", "message"),
    [
        ("network", "n_codes", 4, "does not fit its config.json"),
        ("network", "hidden", [9], "does not fit its config.json"),
        ("network", "visible", "real", "does not fit its config.json"),
        ("network", "visible", "words", "visible='words' is not possible"),
        ("network", "options", None, "options=None is not possible"),
        ("network", "depth", 3, "is damaged"),
        ("training", "pretrain", -1, "pretrain=-1 is not possible"),
        ("task", "classes", [1, 2], "2 classes are not possible for the task autoencoder"),
        ("task", "kind", "binary", "config.json"),
    ],
)
def test_damaged_folders(part, name, value, message, tmp_path):
    SketchAutoencoder(**TINY).fit(documents(n=200)[0]).save(tmp_path)
    path = tmp_path / checkpoint.CONFIG
    content = json.loads(path.read_text())
    content[part][name] = value
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=message):
        SketchAutoencoder.load(tmp_path)


def test_from_disk_equals_from_memory(tmp_path):
    ingest(SyntheticSource(Synthetic(n=500, d=3000, density=0.01), "train"), tmp_path / "x")
    rows = open_shards(tmp_path / "x")
    X = rows[:].scipy()
    for settings in (SKETCHED, {**TINY, "visible": "real", "pretrain": False}):
        model = SketchAutoencoder(**settings)
        from_memory = clone(model).fit(X).transform(X)
        on_disk = clone(model).fit(str(tmp_path / "x"))
        np.testing.assert_array_equal(on_disk.transform(X), from_memory)
        np.testing.assert_allclose(clone(model).fit(rows).transform(tmp_path / "x"), from_memory, atol=1e-5)
        assert on_disk.model_.data == dict(rows.descriptions[0])  # how they were read, for others to be read alike


def test_rows_that_do_not_fit():
    X = documents(n=200)[0]
    model = SketchAutoencoder(**TINY).fit(X)
    with pytest.raises(ValueError, match="301 features"):
        model.transform(sparse.csr_array((5, 301), dtype=np.float32))
    empty = model.transform(sparse.csr_array((5, 300), dtype=np.float32))
    assert np.isfinite(empty).all()
    assert np.ptp(empty, axis=0).max() == 0
    SketchAutoencoder(**TINY).fit(sparse.vstack([X, sparse.csr_array((20, 300), dtype=np.float32)]).tocsr())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_codes": 0}, "n_codes=0 is not possible"),
        ({"hidden": 5}, "hidden=5 is not possible"),
        ({"visible": "counts", "scheme": "count_sketch"}, "visible='counts' is not possible behind a projection"),
        ({"scheme": "hash"}, "scheme='hash' is not possible"),
        ({"options": 3}, "options=3 is not possible"),
        ({"epochs": 0}, "epochs=0 is not possible"),
        ({"epochs": "many"}, "epochs='many' is not possible"),
        ({"batch_size": "few"}, "batch_size='few' is not possible"),
        ({"pretrain": "yes"}, "pretrain='yes' is not possible"),
        ({"pretrain": -1}, "pretrain=-1 is not possible"),
        ({"noise": -1}, "noise=-1 is not possible"),
        ({"validation_fraction": 1.0}, "a validation fraction of 1.0 is not possible"),
        ({"device": "tpu"}, "device 'tpu' is not possible"),
        ({"memory": "much"}, "memory='much' is not a size"),
        ({"random_state": -1}, "random_state=-1 is not possible"),
    ],
)
def test_impossible_settings(settings, message):
    with pytest.raises(InputError, match=message):
        SketchAutoencoder(**{**TINY, **settings}).fit(documents(n=100)[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pretrain": True, "normalise": "none"}, "pretrain=True is not possible with normalise='none'"),
        ({"pretrain": "yes"}, "pretrain='yes' is not possible"),
    ],
)
def test_impossible_settings_of_pretrained_networks(settings, message):
    X, y = documents(n=100)
    with pytest.raises(InputError, match=message):
        SketchClassifier(n_components=8, hidden=(8,), **settings).fit(X, y)


def test_one_fraction_anywhere_makes_rows_real():
    """The kind of the rows does not hang on their order."""
    X = sparse.random_array((5000, 40), density=0.1, format="csr", rng=np.random.default_rng(0))
    X.data[:] = 1
    for row in (4950, 10):
        some = X.copy()
        some.data[some.indptr[row]] = 0.5
        model = SketchAutoencoder(n_codes=2, hidden=(4,), epochs=1, pretrain=False).fit(some)
        assert model.settings_["visible"] == "real"
        with pytest.raises(InputError, match=r"a count is 0.5; .* other values need visible='real'"):
            SketchAutoencoder(n_codes=2, hidden=(4,), epochs=1, pretrain=False, visible="counts").fit(some)


def test_large_counts_are_learnt_in_little_memory():
    X = np.random.default_rng(0).integers(0, 10**8, (200, 10)).astype(np.float64)
    before = anonymous_memory()
    codes = SketchAutoencoder(n_codes=2, hidden=(4,), epochs=1, pretrain=1).fit_transform(X)
    assert np.isfinite(codes).all()
    assert anonymous_memory() < before + 2**28
    with pytest.raises(InputError, match="counts: whole numbers from 0 to 2"):
        SketchAutoencoder(n_codes=2, hidden=(4,), epochs=1, pretrain=1).fit(X * 1e12)


def test_a_fit_that_fails_leaves_the_model_before_it():
    X, _ = documents()
    model = SketchAutoencoder(**TINY, visible="counts").fit(X[:300])
    before = model.transform(X[:5])
    for estimator in (model, SketchAutoencoder(**TINY, visible="counts")):
        with pytest.raises(InputError):
            estimator.fit(X[:300] * 0.5)
    assert np.array_equal(model.transform(X[:5]), before)
    assert not hasattr(estimator, "model_")


def test_pickles_have_the_network_once():
    X = documents()[0][:300].astype(np.float64)
    model = SketchAutoencoder(**TINY).fit(X)
    size = len(pickle.dumps(model))
    codes = model.transform(X)  # of float64, computed by a copy of the network
    assert len(pickle.dumps(model)) == size
    assert np.array_equal(pickle.loads(pickle.dumps(model)).transform(X), codes)


def test_flags_of_numpy():
    rows = as_csr(documents()[0][:300], 300)
    chosen = [build_autoencoder(rows, {"pretrain": flag}, 0).training.pretrain for flag in (np.True_, True, np.False_)]
    assert chosen[0] == chosen[1] > 0 == chosen[2]
