"""Rivals behind one face: probabilities of all classes, labels that cannot be learnt, settings by random search."""

import numpy as np
import pytest
from scipy import sparse

from reproduction.rivals.fields import Fields
from reproduction.rivals.linear import LinearSvm, LogisticRegression
from reproduction.rivals.naive_bayes_svm import NaiveBayesSvm, log_ratios
from reproduction.scoreboard.arithmetic import row_losses
from reproduction.scoreboard.contestant import Calibration, Contestant, calibrate
from reproduction.scoreboard.parts import Part, read_part, write_part
from reproduction.scoreboard.plan import RIVALS
from reproduction.scoreboard.search import draw_settings, search, split_held_back
from reproduction.scoreboard.tables import cut_at_fields, number_values, one_hot
from tests.reproduction.rivals.separable import separable

SHORT = {
    "embedding": {"bits": 12, "epochs": 10, "batch": 32},
    "fm": {"factors": 4, "batch": 32, "table_rate": 0.03, "epochs": 20},
    "lightgbm": {"rounds": 60},
    "catboost": {"rounds": 60},
}  # what is quick to learn in tests
HERE = [key for key in RIVALS if key != "fasttext" and not RIVALS[key].missing]


def part(n: int, n_classes: int, seed: int) -> Part:
    X, y = separable(n, n_classes, seed)
    return Part(X, y)


def labelled(n: int, seed: int) -> Part:
    """Three labels: the class is one, another says the opposite of one class, and the last is never given."""
    X, y = separable(n, 3, seed)
    return Part(X, np.column_stack([y == 0, y != 1, y == 2, np.zeros(n)]).astype(np.uint8))


def table(n: int, seed: int) -> Part:
    """Two fields that decide together, and a number that says nothing."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (n, 2)).astype(np.int32)
    numbers = rng.normal(size=(n, 1)).astype(np.float32)
    hot = one_hot(list(codes.T), np.arange(n))
    return Part(hot, (codes.sum(axis=1) > 2).astype(np.int64), Fields(codes, numbers, hot))


@pytest.mark.parametrize("key", [key for key in HERE if "sparse" in RIVALS[key].kinds])
@pytest.mark.parametrize("make", [lambda n, seed: part(n, 2, seed), lambda n, seed: part(n, 3, seed), labelled])
def test_rivals_have_good_probabilities(key, make):
    train, test = make(300, 0), make(200, 1)
    rest, held = split_held_back(train)
    n_classes = test.y.shape[1] if test.y.ndim == 2 else int(test.y.max()) + 1
    model = Contestant(RIVALS[key].rival, 0, n_classes).fit(rest, SHORT.get(key), valid=held)
    found = model.predict(test)
    assert found.probabilities.shape == (200, n_classes)
    if test.y.ndim == 1:
        assert found.probabilities.sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert found.figures()["error"] < 8
    assert found.figures()["log_loss"] < (0.15 if n_classes == 4 else 0.4)


@pytest.mark.parametrize("key", ["lightgbm", *(key for key in HERE if key in ("catboost", "realmlp", "tabm"))])
def test_rivals_of_tables(key):
    train, test = table(600, 0), table(200, 1)
    rest, held = split_held_back(train)
    native = {"native": True} if key == "lightgbm" else {"epochs": 20} if key == "realmlp" else {}
    model = Contestant(RIVALS[key].rival, 0, 2).fit(rest, native, valid=held)
    assert model.predict(test).figures()["error"] < 5


@pytest.mark.skipif(bool(RIVALS["fasttext"].missing), reason="fastText is not installed")
def test_fasttext():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    texts = [" ".join(rng.choice(["tea", "milk", "so"] if label else ["rum", "gin", "so"], 6)) for label in y]
    rows = Part(separable(400, 2, 0)[0], y, None, np.array(texts, object))
    model = Contestant(RIVALS["fasttext"].rival, 0, 2).fit(rows.take(np.arange(300)), None)
    assert model.predict(rows.take(np.arange(300, 400))).figures()["error"] < 3


def test_classes_that_training_rows_lack_have_hardly_any_chance():
    train, test = part(200, 2, 0), part(90, 3, 1)
    model = Contestant(LogisticRegression, 0, 3).fit(train, None)
    assert model.predict(test).probabilities[:, 2].max() < 1e-6


def test_labels_of_no_row_have_the_share_of_one_in_all():
    model = Contestant(LinearSvm, 0, 4).fit(labelled(150, 0), None, valid=labelled(60, 2))
    found = model.predict(labelled(30, 1))
    assert found.probabilities[:, 3] == pytest.approx(1 / 152)
    assert not found.decisions[:, 3].any()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_calibration_finds_the_law(n_classes):
    rng = np.random.default_rng(0)
    margins = rng.normal(scale=3, size=(8000, 1 if n_classes == 2 else n_classes))
    law = Calibration(0.7, 0.4 if n_classes == 2 else 0.0)
    chances = law.apply(margins, False)
    y = np.array([rng.choice(n_classes, p=row) for row in chances])
    found = calibrate(margins, y)
    assert found.slope == pytest.approx(0.7, abs=0.05)
    assert found.bias == pytest.approx(law.bias, abs=0.1)
    assert row_losses(found.apply(margins, False), y).mean() <= row_losses(chances, y).mean() + 1e-5


def test_log_ratios_by_hand():
    X = sparse.csr_array(np.array([[2.0, 0, 1], [1, 0, 0], [0, 5, 0]]))
    found = log_ratios(X, np.array([True, True, False]), prior=1.0)
    assert found == pytest.approx(np.log([3 / 6 * 4, 1 / 6 * 4 / 2, 2 / 6 * 4]))


def test_the_search_draws_each_setting_once_and_the_usual_ones_first():
    drawn = draw_settings(NaiveBayesSvm, seed=0)
    assert drawn[0] == NaiveBayesSvm.defaults
    assert len(drawn) == 20 == len({repr(settings) for settings in drawn})
    assert drawn == draw_settings(NaiveBayesSvm, seed=0) != draw_settings(NaiveBayesSvm, seed=1)
    assert len(draw_settings(LinearSvm, seed=0)) == len(LinearSvm.space["strength"])


def test_the_search_takes_the_least_held_back_loss():
    train = part(400, 3, 0)
    choice = search(LogisticRegression, train, 3, seed=0, budget=60)
    assert choice.trials == len(LogisticRegression.space["strength"])
    rest, held = split_held_back(train)
    losses = {
        strength: Contestant(LogisticRegression, 0, 3).fit(rest, {"strength": strength}).predict(held).figures()
        for strength in LogisticRegression.space["strength"]
    }
    best = min(losses, key=lambda strength: losses[strength]["log_loss"])
    assert choice.settings == {"strength": best}
    assert choice.valid_log_loss == pytest.approx(losses[best]["log_loss"])
    assert search(LogisticRegression, train, 3, seed=0, budget=0).trials == 1


def test_parts_come_back(tmp_path):
    rows = table(20, 0)
    rows = Part(rows.X, rows.y, rows.fields, np.array([f"ä {row}" for row in range(20)], object))
    write_part(tmp_path, "train", rows)
    fields = read_part(tmp_path, "train", "fields")
    assert np.array_equal(fields.fields.codes, rows.fields.codes)
    assert (fields.X != rows.X).nnz == 0
    assert fields.texts is None
    texts = read_part(tmp_path, "train", "texts").take(np.array([3, 1]))
    assert texts.view("texts").tolist() == ["ä 3", "ä 1"]
    assert texts.y.tolist() == rows.y[[3, 1]].tolist()


def test_tables_are_numbered_by_training_rows():
    column, train = np.array(["b", "c", "a", "b"]), np.array([0, 1])
    assert number_values([column], train).ravel().tolist() == [0, 1, -1, 0]
    X = one_hot([column], train, several=[["x"], ["y", "x"], [], ["z"]])
    assert X.toarray().tolist() == [[1, 0, 1, 0], [0, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]]


def test_fields_of_one_hot_rows_are_found():
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, size, 500) for size in (5, 3, 7)])
    X = one_hot(list(codes.T), np.arange(500))
    assert np.array_equal(cut_at_fields(X, np.arange(500)), codes + 1)


@pytest.mark.parametrize("key", ["lightgbm", "vw", "liblinear"])
def test_labels_that_only_the_held_back_rows_have(key):
    """All rows have more labels to learn than those that chose the settings, and know nothing of."""
    if RIVALS[key].missing:
        pytest.skip("it is not installed")
    train = labelled(200, 0)
    rest, held = split_held_back(train)
    rest.y[:, 1] = 0
    found = Contestant(RIVALS[key].rival, 0, 4).fit(rest, SHORT.get(key), valid=held)
    again = Contestant(RIVALS[key].rival, 0, 4).fit(train, found.rival.settings_)
    again.calibration = found.calibration
    assert again.predict(labelled(100, 1)).figures()["error"] < 8
