"""Figures of merit against values worked out by hand and scikit-learn's; what is not defined is left out."""

import json

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, softmax
from sklearn import metrics as reference

from sketchnet.errors import InputError
from sketchnet.metrics import measure
from sketchnet.training import Task

BINARY = Task("binary", ("no", "yes"))
THREE = Task("multiclass", ("a", "b", "c"))
LABELS = Task("multilabel", (0, 1, 2))


def column(*logits):
    return np.array(logits, np.float32)[:, None]


def test_two_classes_by_hand():
    # Probabilities 0.9, 0.8, 0.3, 0.6; true 1, 0, 0, 1.
    probabilities = np.array([0.9, 0.8, 0.3, 0.6])
    outputs = np.log(probabilities / (1 - probabilities))[:, None]
    found = measure(BINARY, outputs, np.array([1, 0, 0, 1]))
    assert found["error"] == 0.25
    assert found["log_loss"] == pytest.approx(-np.log([0.9, 0.2, 0.7, 0.6]).mean())
    assert found["roc_auc"] == 0.75  # of the four pairs, only 0.8 before 0.6 is wrong
    assert found["pr_auc"] == pytest.approx((1 + 2 / 3) / 2)
    assert found["confusion"] == [[1, 1], [0, 2]]
    # Four bins with one row each.
    assert found["calibration_error"] == pytest.approx((0.1 + 0.8 + 0.3 + 0.4) / 4)
    assert [b["count"] for b in found["calibration"]] == [1, 1, 1, 1]
    assert [b["share_positive"] for b in found["calibration"]] == [0, 1, 0, 1]
    assert [b["mean_probability"] for b in found["calibration"]] == pytest.approx([0.3, 0.6, 0.8, 0.9])


def test_calibration_bins_cover_both_ends():
    found = measure(BINARY, column(-1000, 1000, 1000, 0), np.array([0, 1, 0, 1]))
    assert [(b["mean_probability"], b["count"]) for b in found["calibration"]] == [(0, 1), (0.5, 1), (1, 2)]
    assert found["calibration_error"] == pytest.approx((0 + 0.5 + 2 * 0.5) / 4)


def test_a_calibrated_model_has_little_error():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=100_000)
    targets = (rng.random(100_000) < expit(logits)).astype(int)
    # A bin's share deviates by about 0.5 / sqrt(count): 15 bins of 100,000 rows are off by less than 0.01 on average.
    assert measure(BINARY, logits[:, None], targets)["calibration_error"] < 0.01
    assert measure(BINARY, 3 * logits[:, None], targets)["calibration_error"] > 0.1


def test_several_classes_as_scikit_learn():
    rng = np.random.default_rng(1)
    outputs, targets = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
    found, p = measure(THREE, outputs, targets), softmax(outputs, axis=1)
    assert found["error"] == pytest.approx(np.mean(outputs.argmax(axis=1) != targets))
    assert found["log_loss"] == pytest.approx(-np.log(p[np.arange(300), targets]).mean())
    one_against_rest = [reference.roc_auc_score(targets == c, p[:, c]) for c in range(3)]
    assert found["roc_auc"] == pytest.approx(np.mean(one_against_rest))
    assert np.sum(found["confusion"]) == 300
    assert found["confusion"][1][2] == np.sum((targets == 1) & (outputs.argmax(axis=1) == 2))
    right = sum(b["share_positive"] * b["count"] for b in found["calibration"])
    assert right == pytest.approx(300 * (1 - found["error"]))


def test_several_labels_by_hand():
    true = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0]])
    outputs = np.array([[2.0, -1, -3], [1, -2, -1], [-1, 4, -2]], np.float32)
    found = measure(LABELS, outputs, sparse.csr_array(true.astype(np.float32)))
    assert found["error"] == pytest.approx(2 / 9)
    assert found["subset_error"] == pytest.approx(2 / 3)
    assert found["micro_f1"] == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    assert found["macro_f1"] == pytest.approx((1 + 0) / 2)  # the third label is neither true nor predicted
    p = expit(outputs)
    assert found["log_loss"] == pytest.approx(-np.where(true, np.log(p), np.log(1 - p)).mean())


def test_several_labels_as_scikit_learn():
    rng = np.random.default_rng(2)
    outputs, true = rng.normal(size=(200, 3)).astype(np.float32), rng.random((200, 3)) < 0.3
    found, predicted = measure(LABELS, outputs, sparse.csr_array(true.astype(np.float32))), outputs > 0
    assert found["error"] == pytest.approx(reference.hamming_loss(true, predicted))
    for average in ("micro", "macro"):
        assert found[f"{average}_f1"] == pytest.approx(reference.f1_score(true, predicted, average=average))


def test_a_label_named_twice_counts_once():
    twice = sparse.csr_array((np.ones(3, np.float32), [1, 1, 0], [0, 2, 3]), shape=(2, 3))
    once = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 0]], np.float32))
    outputs = np.array([[-1, 1, -1], [1, -1, -2]], np.float32)
    assert measure(LABELS, outputs, twice) == measure(LABELS, outputs, once)


def test_regression_in_the_units_of_the_data():
    labels = np.array([10.0, 14, 18])
    task = Task.of_labels(labels, regression=True)
    outputs = ((np.array([11.0, 14, 16]) - task.mean) / task.deviation)[:, None]
    found = measure(task, outputs, task.encode(labels))
    assert found["rmse"] == pytest.approx(np.sqrt((1 + 0 + 4) / 3), rel=1e-5)
    assert found["mae"] == pytest.approx(1, rel=1e-5)
    assert found["r2"] == pytest.approx(1 - 5 / 32, rel=1e-5)


@pytest.mark.parametrize("power", [-1000, 1000])
def test_regression_in_units_of_any_size(power):
    """Squares of such numbers are beyond float64."""
    outputs = column(-1, 0.5, 1)
    plain, far = (Task.of_labels(np.array([10.0, 14, 18]) * unit, regression=True) for unit in (1, 2.0**power))
    known, found = (measure(task, outputs, np.array([-1, 0, 1], np.float32)) for task in (plain, far))
    assert found == {name: value * (1 if name == "r2" else 2.0**power) for name, value in known.items()}


@pytest.mark.parametrize(
    ("task", "outputs", "targets", "absent"),
    [
        (BINARY, column(1, -1), np.array([1, 1]), {"roc_auc"}),
        (BINARY, column(1, -1), np.array([0, 0]), {"roc_auc", "pr_auc"}),
        (THREE, np.eye(3), np.array([0, 1, 1]), {"roc_auc"}),
        (THREE, np.eye(3)[:1], np.array([2]), {"roc_auc"}),
        (Task("regression"), column(1, 2), np.zeros(2, np.float32), {"r2"}),
        (Task("regression"), column(1), np.zeros(1, np.float32), {"r2"}),
        (LABELS, -np.ones((2, 3)), sparse.csr_array((2, 3), dtype=np.float32), {"micro_f1", "macro_f1"}),
    ],
)
def test_what_is_not_defined_is_left_out(task, outputs, targets, absent):
    every = {
        "binary": {"error", "log_loss", "roc_auc", "pr_auc", "confusion", "calibration", "calibration_error"},
        "multiclass": {"error", "log_loss", "roc_auc", "confusion", "calibration", "calibration_error"},
        "multilabel": {"error", "subset_error", "micro_f1", "macro_f1", "log_loss"},
        "regression": {"rmse", "mae", "r2"},
    }[task.kind]
    assert set(measure(task, outputs, targets)) == every - absent


@pytest.mark.parametrize(
    ("task", "n_outputs", "targets"),
    [
        (BINARY, 1, np.arange(10) % 2),
        (THREE, 3, np.arange(10) % 3),
        (LABELS, 3, sparse.csr_array(np.eye(10, 3, dtype=np.float32))),
        (Task("regression"), 1, np.arange(10, dtype=np.float32)),
    ],
)
def test_plain_values(task, n_outputs, targets):
    outputs = np.random.default_rng(0).normal(size=(10, n_outputs)).astype(np.float32)
    found = measure(task, outputs, targets)
    assert json.loads(json.dumps(found)) == found
    assert measure(task, outputs[:0], targets[:0]) == {}


def test_many_classes_have_no_confusion_matrix():
    task = Task("multiclass", tuple(range(2000)))
    assert "confusion" not in measure(task, np.zeros((3, 2000), np.float32), np.arange(3))


def test_infinite_outputs_are_an_error():
    with pytest.raises(InputError, match="output for row 1 is not a finite number"):
        measure(BINARY, column(1, np.inf), np.array([0, 1]))
