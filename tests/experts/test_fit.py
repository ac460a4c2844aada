"""From rows to a blend: which rows are held back, which experts stay, what is kept, what goes on."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from sketchnet import SketchClassifier, SketchRegressor
from sketchnet.data import CsrBatch, Synthetic, ingest, open_shards
from sketchnet.data.sources import SyntheticSource
from sketchnet.errors import InputError, Interrupted
from sketchnet.experts import folder as fitting
from sketchnet.experts.choice import HeldBack, choose_experts
from sketchnet.experts.folder import train_blend_in
from sketchnet.experts.linear import LinearExpert
from sketchnet.experts.model import load_model
from sketchnet.experts.settings import BlendSettings
from sketchnet.experts.splits import FOLDS, split_rows
from sketchnet.training.examples import Examples
from sketchnet.training.task import Task


def rows_of(kind, n=400, d=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, d), density=0.01, format="csr", rng=rng, dtype=np.float32)
    X = sparse.csr_array(sparse.hstack([X, rng.integers(0, 2, (n, 4))]).astype(np.float32))
    scores = X[:, -4:].toarray() @ rng.standard_normal((4, 3)) * 3
    y = {
        "binary": scores[:, 0] > np.median(scores[:, 0]),
        "multiclass": scores.argmax(axis=1),
        "multilabel": (scores > 0).astype(int),
        "regression": 100 + scores[:, 0],
    }[kind]
    return X, y


class TestSplits:
    def test_a_share_of_many_rows_is_held_back(self):
        ((train, valid),) = split_rows(50_000, 10**9, 0.1, seed=3)
        assert len(valid) == 5000
        assert np.array_equal(np.sort(np.r_[train, valid]), np.arange(50_000))
        ((_, other),) = split_rows(50_000, 10**9, 0.1, seed=4)
        assert len(np.intersect1d(valid, other)) < 700  # expected 500, deviation 20

    def test_of_few_rows_each_is_held_back_once(self):
        splits = split_rows(103, 1, 0.1, seed=0)
        assert len(splits) == FOLDS
        assert np.array_equal(np.sort(np.concatenate([valid for _, valid in splits])), np.arange(103))
        assert all(len(np.intersect1d(train, valid)) == 0 for train, valid in splits)

    @pytest.mark.parametrize("n", [500, 20_000])
    def test_rows_of_a_group_stay_together(self, n):
        groups = np.random.default_rng(0).integers(0, n // 10, n)
        for train, valid in split_rows(n, n, 0.1, 0, groups):
            assert len(valid)
            assert not set(groups[train]) & set(groups[valid])

    def test_the_last_rows_and_none(self):
        ((train, valid),) = split_rows(1000, 1, 0.1, 0, last=0.25)
        assert (train[-1], valid[0], valid[-1]) == (749, 750, 999)
        assert split_rows(1000, 1, 0, 0) == []
        assert split_rows(10, 1, 0.1, 0) == []
        with pytest.raises(InputError, match="valid_last=1 is not possible"):
            BlendSettings(valid_last=1)


class TestChoice:
    def test_an_expert_stays_only_if_it_helps(self):
        rng = np.random.default_rng(0)
        truth = rng.standard_normal(3000)
        targets = (truth + rng.logistic(size=3000) > 0).astype(int)
        logits = {"good": truth + 0.7 * rng.standard_normal(3000), "also": truth + 0.7 * rng.standard_normal(3000)}
        logits |= {f"noise{i}": rng.standard_normal(3000) for i in range(3)}
        logits = {name: part[:, None].astype(np.float32) for name, part in logits.items()}
        rows = HeldBack(Task("binary", (0, 1)), targets, None)
        names, blend = choose_experts(rows, logits, "auto")
        assert set(names) == {"good", "also"}
        assert blend.loss < rows.blend([logits["good"]]).loss
        for metric in ("roc_auc", "error"):
            assert choose_experts(rows, logits, metric)[0][0] == "good"

    def test_a_metric_that_these_labels_have_not(self):
        rows = HeldBack(Task("regression"), np.linspace(0, 1, 50), None)
        with pytest.raises(InputError, match="metric='roc_auc' is not possible for such labels"):
            choose_experts(rows, {"linear": np.ones((50, 1)) * np.linspace(0, 1, 50)[:, None]}, "roc_auc")

    def test_a_metric_that_nobody_knows(self):
        with pytest.raises(InputError, match="metric='speed' is not possible; it is auto, error"):
            BlendSettings(metric="speed")


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel"])
def test_never_worse_than_the_linear_model_and_calibrated(kind):
    X, y = rows_of(kind, 1500)
    model = SketchClassifier().fit(X[:1000], y[:1000])
    linear = SketchClassifier(experts="linear").fit(X[:1000], y[:1000])
    assert "linear" in linear.model_.experts
    assert model.score(X[1000:], y[1000:]) >= linear.score(X[1000:], y[1000:]) - 0.02
    assert model.score(X[1000:], y[1000:]) > 0.9
    if kind == "binary":
        peer = LogisticRegression(C=10).fit(X[:1000], y[:1000])
        losses = [log_loss(y[1000:], each.predict_proba(X[1000:])) for each in (model, peer)]
        assert losses[0] < losses[1] + 0.02


def test_numbers_are_learnt():
    X, y = rows_of("regression", 1500)
    assert SketchRegressor().fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.95


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "regression"])
def test_saved_and_loaded(kind, tmp_path):
    X, y = rows_of(kind)
    estimator = (SketchRegressor if kind == "regression" else SketchClassifier)(effort="quick")
    estimator.fit(X, y).save(tmp_path / "model")
    loaded = type(estimator).load(tmp_path / "model")
    assert np.array_equal(loaded.predict(X), estimator.predict(X))
    assert np.array_equal(loaded.model_.outputs(CsrBatch(X.indptr, X.indices, X.data, X.shape[1])),
                          estimator.model_.outputs(CsrBatch(X.indptr, X.indices, X.data, X.shape[1])))  # fmt: skip
    assert loaded.get_params()["effort"] == "quick"
    assert loaded.history_ == estimator.history_


def test_contributions_add_up_to_the_answer_of_the_linear_expert():
    X, y = rows_of("binary")
    model = SketchClassifier(experts="linear").fit(X, y)
    parts = model.explain(X, output=True).sum(axis=1)
    offsets = model.decision_function(X) - parts
    np.testing.assert_allclose(offsets, offsets[0], atol=1e-5)


def test_the_network_is_an_expert_too(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.integers(0, 2, (1200, 12)).astype(np.float32))
    y = X.toarray()[:, 0].astype(int) ^ X.toarray()[:, 1].astype(int)
    held_back = X[800:1000], y[800:1000]
    model = SketchClassifier(experts=("linear", "sketch")).fit(X[:800], y[:800], valid=held_back)
    assert model.score(X[1000:], y[1000:]) > 0.9
    model.save(tmp_path / "m")
    assert np.array_equal(SketchClassifier.load(tmp_path / "m").predict_proba(X), model.predict_proba(X))
    assert abs(model.explain(X[:50])).mean(axis=0)[:2].min() > abs(model.explain(X[:50])).mean(axis=0)[2:].max()


def test_groups_are_held_back_together():
    """Rows of a group are equal: if they were split, a column that names the group would look perfect."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(200), 10)
    names = sparse.csr_array((np.ones(2000), (np.arange(2000), group)), shape=(2000, 200))
    y = rng.integers(0, 2, 200)[group]
    apart = SketchClassifier(experts="linear").fit(names, y, groups=group)
    together = SketchClassifier(experts="linear").fit(names, y)
    losses = [next(r["valid_loss"] for r in m.history_ if r.get("stage") == "linear") for m in (apart, together)]
    assert losses[0] > 0.68 > 0.1 > losses[1]
    with pytest.raises(InputError, match="there must be a group for each"):
        apart.fit(names, y, groups=group[:-1])


def test_a_setting_of_the_network_asks_for_it_alone():
    X, y = rows_of("binary")
    assert hasattr(SketchClassifier(epochs=1, n_components=8, hidden=(8,)).fit(X, y).model_, "network")
    with pytest.raises(InputError, match="epochs is a setting of the network; give experts='sketch'"):
        SketchClassifier(experts="linear", epochs=1).fit(X, y)
    for wrong in ("forest", "linear,linear", ()):
        with pytest.raises(InputError, match="is not possible"):
            SketchClassifier(experts=wrong).fit(X, y)
    model = SketchClassifier(experts="linear").fit(X, y)
    with pytest.warns(UserWarning, match="partial_fit begins anew, with a network"):
        model.partial_fit(X, y, classes=[False, True])


def settings_of(X, y):
    task = Task.of_labels(y)
    rows = CsrBatch(X.indptr, X.indices, X.data, X.shape[1])
    return task, Examples(rows, task.encode(y)), None, BlendSettings(experts=("linear", "vectors"))


def test_a_run_that_was_cut_off_goes_on_to_the_same_model(tmp_path, monkeypatch):
    job = settings_of(*rows_of("binary"))
    whole = train_blend_in(tmp_path / "whole", False, *job)
    fits, fit = [], LinearExpert.fit

    def stop(expert, *parts):
        fits.append(expert)
        if len(fits) == 3:
            raise Interrupted("stopped")
        return fit(expert, *parts)

    monkeypatch.setattr(LinearExpert, "fit", stop)
    with pytest.raises(Interrupted):
        train_blend_in(tmp_path / "cut", False, *job, threads=1)
    assert not (tmp_path / "cut" / "config.json").exists()
    train_blend_in(tmp_path / "cut", False, *job, threads=1)
    assert len(fits) == 3 + FOLDS - 2  # two were finished
    for name in ("config.json", "weights.safetensors"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert sorted(path.name for path in (tmp_path / "cut").iterdir()) == ["config.json", "history.jsonl",
                                                                       "weights.safetensors"]  # fmt: skip
    assert load_model(tmp_path / "cut").n_columns == whole.n_columns


@pytest.mark.parametrize("n", [20, 40, 60])
def test_few_rows_of_a_table(n):
    rng = np.random.default_rng(n)
    codes = rng.integers(0, 3, (n, 4)) + 3 * np.arange(4)
    X = sparse.csr_array((np.ones(4 * n, np.float32), codes.ravel(), 4 * np.arange(n + 1)), shape=(n, 12))
    for experts in ("auto", ("linear", "trees", "vectors")):
        assert SketchClassifier(experts=experts).fit(X, codes[:, 0]).score(X, codes[:, 0]) > 0.8


def test_experts_that_cannot_learn_from_such_rows():
    X, y = rows_of("multilabel")
    with pytest.raises(InputError, match="experts='trees' is not possible for such rows"):
        SketchClassifier(experts="trees").fit(X, y)
    wide = sparse.random_array((200, 100_000), density=1e-3, format="csr", rng=0)
    with pytest.raises(InputError, match="experts='dense' is for at most 4,096 columns that occur"):
        SketchClassifier(experts="dense").fit(wide, np.arange(200) % 2)


def test_a_finished_run_is_loaded_and_another_refused(tmp_path, monkeypatch):
    task, examples, _, _ = settings_of(*rows_of("binary"))
    settings = BlendSettings(experts=("linear",))
    train_blend_in(tmp_path / "m", False, task, examples, None, settings)
    monkeypatch.setattr(fitting, "fit_blend_of_experts", None)  # which would fail if it were called
    train_blend_in(tmp_path / "m", False, task, examples, None, settings)
    with pytest.raises(InputError, match="has another model, with another training"):
        train_blend_in(tmp_path / "m", False, task, examples, None, BlendSettings(experts=("linear",), seed=1))


def test_damaged_models_are_refused(tmp_path):
    X, y = rows_of("binary")
    SketchClassifier(experts="linear").fit(X, y).save(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    for change in ({"experts": {"forest": {}}}, {"experts": {}}, {"experts": []}, {"task": None}, {"columns": -1}):
        (tmp_path / "m" / "config.json").write_text(json.dumps({**config, **change}))
        with pytest.raises(InputError, match=str(tmp_path)):
            load_model(tmp_path / "m")


def test_more_rows_than_memory_are_represented_by_some(tmp_path):
    ingest(SyntheticSource(Synthetic(n=5000, d=500, density=0.02), "train"), tmp_path / "rows")
    model = SketchClassifier(experts="linear", memory=200_000).fit(open_shards(tmp_path / "rows"))
    read = [record for record in model.history_ if record.get("stage") == "sample"]
    assert 0 < read[0]["rows"] < 4000 == read[0]["of"]


def test_rows_without_weight_are_as_if_they_were_not_there():
    X, y = rows_of("binary", 300)
    weights = (np.arange(300) < 200).astype(float)
    with_them = SketchClassifier(experts="linear").fit(X, y, sample_weight=weights)
    without = SketchClassifier(experts="linear").fit(X[:200], y[:200], sample_weight=np.ones(200))
    np.testing.assert_array_equal(with_them.predict_proba(X), without.predict_proba(X))
    few = SketchClassifier().fit(X, y, sample_weight=(np.arange(300) < 3).astype(float) + 0)
    assert np.isfinite(few.predict_proba(X)).all()


def test_held_back_rows_are_weighed_by_their_class_too():
    X, _ = rows_of("binary", 900)
    y = np.random.default_rng(0).random(900) < 0.1
    model = SketchClassifier(experts="linear", class_weight="balanced").fit(X[:500], y[:500], valid=(X[500:], y[500:]))
    assert abs(model.predict_proba(X)[:, 1].mean() - 0.5) < 0.1


@pytest.mark.parametrize("experts", ["columns", "dense"])
def test_rows_without_entries(experts):
    X, y = sparse.csr_array((100, 50)), np.arange(100) % 2
    assert np.isfinite(SketchClassifier().fit(X, y).predict_proba(X)).all()
    with pytest.raises(InputError, match=f"experts='{experts}' is not possible: no row has an entry"):
        SketchClassifier(experts=experts).fit(X, y)


def test_experts_with_other_columns_than_the_blend_are_refused(tmp_path):
    from safetensors.numpy import load_file, save_file

    X, y = rows_of("binary")
    SketchClassifier(experts="linear").fit(X, y).save(tmp_path / "m")
    arrays = load_file(tmp_path / "m" / "weights.safetensors")
    arrays["linear.weights"] = arrays["linear.weights"][:5].copy()
    save_file(arrays, tmp_path / "m" / "weights.safetensors", {"notes": "{}"})
    with pytest.raises(InputError, match="its expert linear has 5 columns"):
        load_model(tmp_path / "m")


def test_limits_of_blas_end_with_the_last_who_asked():
    from threadpoolctl import threadpool_info

    from sketchnet.experts.mlp import one_thread

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before, first, second = threads(), one_thread(), one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(threads()) == {1}
    second.__exit__(None, None, None)
    assert threads() == before
