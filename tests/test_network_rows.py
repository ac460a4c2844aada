"""SketchClassifier and SketchRegressor: the kinds of rows and labels that they take."""

import numpy as np
import pytest
from scipy import sparse

from sketchnet import SketchClassifier, SketchRegressor
from sketchnet.data import CsrBatch, ingest, open_shards, read_svmlight
from sketchnet.data.sources import SvmlightSource
from sketchnet.errors import InputError

TINY = {"n_components": 8, "hidden": (4,), "epochs": 1}


@pytest.fixture
def files(tmp_path):
    """svmlight files with one label a row and with several, in which column 1 decides."""
    rng = np.random.default_rng(0)
    lines = {"one": [], "several": []}
    for _ in range(60):
        y = rng.integers(2)
        entries = " ".join(f"{i}:{1 + i % 3}" for i in [*([1] if y else []), *range(2 + rng.integers(5), 20, 4)])
        lines["one"].append(f"{3 * y} {entries}\n")
        lines["several"].append(f"{'0,2' if y else '1'} {entries}\n")
    for name, text in lines.items():
        (tmp_path / f"{name}.svm").write_text("".join(text))
        ingest(SvmlightSource([tmp_path / f"{name}.svm"]), tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("estimator", [SketchClassifier, SketchRegressor])
def test_rows_as_the_reader_gives_them(estimator, files):
    rows = read_svmlight(files / "one.svm")
    wanted = estimator(**TINY).fit(files / "one").predict(rows.scipy())
    for labels in ((), (rows.labels,)):
        model = estimator(**TINY).fit(rows, *labels, valid=None)
        assert np.array_equal(model.predict(rows), wanted)
        assert model.history_[0]["stage"] == "load"
        model.partial_fit(rows, *labels)
    assert estimator(**TINY).fit(rows, valid=(rows, None)).best_epoch_ == 1
    bare = CsrBatch(*rows.arrays, rows.n_columns)
    with pytest.raises(InputError, match="X has no labels of its own; give y"):
        estimator(**TINY).fit(bare)
    with pytest.raises(InputError, match="there are no rows to learn from"):
        estimator(**TINY).fit(rows.rows(slice(0, 0)))


def test_several_labels_a_row_as_the_reader_gives_them(files):
    rows = read_svmlight(files / "several.svm")
    model = SketchClassifier(**TINY).fit(rows)
    assert model.classes_.tolist() == [0, 1, 2]
    from_disk = SketchClassifier(**TINY).fit(files / "several")
    assert np.array_equal(model.predict_proba(rows), from_disk.predict_proba(rows))
    for X, y in ((rows, None), (rows.scipy(), open_shards(files / "several").labels)):
        with pytest.raises(InputError, match=r"y has shape \(60, 3\); SketchRegressor predicts one number a row"):
            SketchRegressor(**TINY).fit(X, y)


def test_any_id_is_allowed_where_ids_are_hashed():
    rng = np.random.default_rng(0)
    X, y = sparse.random_array((90, 500), density=0.05, format="csr", rng=rng), np.arange(90) % 2
    wide = sparse.csr_array((X.data, X.indices, X.indptr), shape=(90, 6000))
    plain, model = SketchClassifier(**TINY).fit(X, y), SketchClassifier(**TINY, hashed_columns=64).fit(X, y)
    for other in (wide, wide.astype(np.float32).tocsc(), wide[:, :300]):
        with pytest.raises(ValueError, match="features, but SketchClassifier is expecting 500"):
            plain.predict(other)
        assert model.predict(other).shape == (90,)
        assert model.explain(other).shape == other.shape
        assert model.get_feature_importance(other).shape == (1, other.shape[1])
    assert np.array_equal(model.predict_proba(wide), model.predict_proba(X))
    far = sparse.csr_array(([1.0], [2**40], [0, 1]), shape=(1, 2**62))
    assert np.isfinite(model.predict_proba(far)).all()
    model.partial_fit(wide, y).fit(X, y, valid=(wide, y))
    with pytest.raises(ValueError, match="6000 features, but SketchClassifier is expecting 500"):
        model.predict(np.zeros((2, 6000)))  # an array has no ids, but places
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(wide * np.nan)


@pytest.mark.parametrize("estimator", [SketchClassifier, SketchRegressor])
def test_labels_that_do_not_fit_the_rows(estimator, files):
    rows, disk = read_svmlight(files / "one.svm"), open_shards(files / "one")
    for y, given in ((rows.labels[:50], r"ndarray of \(50,\)"), ([0, 1] * 40, "list of 80"), (1.0, "float")):
        for X in (rows, disk, str(files / "one")):
            message = f"y is {given}; X has 60 rows, and y must have a label for each"
            for learn in (estimator.fit, estimator.partial_fit):
                more = {"classes": [0, 3]} if learn is SketchClassifier.partial_fit else {}
                with pytest.raises(InputError, match=message):
                    learn(estimator(**TINY), X, y, **more)
            with pytest.raises(InputError, match=message):
                estimator(**TINY).fit(rows, valid=(X, y))
    for valid, given in ((rows.scipy(), r"csr_array of \(60, 19\)"), (disk, "ShardSet"), ((disk,), "tuple of 1")):
        with pytest.raises(InputError, match=rf"valid is {given}.*; it is a pair \(X, y\)"):
            estimator(**TINY).fit(rows, valid=valid)


def test_hashed_columns_that_collide_leave_outputs_finite():
    rng = np.random.default_rng(0)
    X = sparse.random_array((600, 20_000), density=0.02, format="csr", dtype=np.float32, rng=rng)
    y = (X @ rng.normal(size=20_000) > 0).astype(int)
    model = SketchClassifier(n_components=16, hidden=(8,), epochs=2, hashed_columns=64).fit(X, y)
    assert np.abs(model.decision_function(X)).max() < 100
