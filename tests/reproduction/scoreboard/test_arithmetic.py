"""The bootstrap, the area under the curve and the losses, beside plain versions of them."""

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from reproduction.scoreboard.arithmetic import (
    Difference,
    Predictions,
    auc,
    auc_draws,
    bootstrap_counts,
    differences,
    mean_draws,
    row_errors,
    row_losses,
)


def predictions(rng, n: int, sharpness: float, labels: np.ndarray) -> Predictions:
    """Logits that say the label, the more the sharper, and noise."""
    logits = sharpness * (2 * labels - 1) + rng.normal(size=n)
    positive = 1 / (1 + np.exp(-logits))
    return Predictions((positive > 0.5).astype(int), np.column_stack([1 - positive, positive]), labels)


def test_losses_are_scikit_learns():
    rng = np.random.default_rng(0)
    chances, y = rng.dirichlet(np.ones(4), 50), rng.integers(0, 4, 50)
    assert row_losses(chances, y).mean() == pytest.approx(log_loss(y, chances, labels=range(4)))
    assert row_losses(np.array([[1.0, 0.0]]), np.array([1])) == pytest.approx(-np.log(1e-7))


def test_several_labels_are_means_over_labels():
    y = np.array([[1, 0, 0, 0], [1, 1, 0, 0]])
    assert row_errors(np.array([[1, 1, 0, 0], [0, 0, 0, 0]]), y).tolist() == [0.25, 0.5]
    assert row_losses(np.full((2, 4), 0.5), y) == pytest.approx(np.log(2))
    assert row_losses(np.array([[0.9, 0.1, 0.1, 0.1]]), y[:1]) == pytest.approx(-np.log(0.9))


@pytest.mark.parametrize("places", [8, 1])
def test_areas_are_scikit_learns_also_of_equal_scores(places):
    rng = np.random.default_rng(1)
    y, scores = np.arange(300) % 2, rng.random(300).round(places)
    scores += 0.1 * y
    assert auc(scores, y) == pytest.approx(roc_auc_score(y, scores))
    counts = bootstrap_counts(300, 5)
    wanted = [roc_auc_score(np.repeat(y, drawn), np.repeat(scores, drawn)) for drawn in counts]
    assert auc_draws(scores, y, counts) == pytest.approx(wanted)


def test_draws_are_of_as_many_rows_and_the_same_for_a_seed():
    counts = bootstrap_counts(40, 200)
    assert counts.shape == (200, 40)
    assert (counts.sum(axis=1) == 40).all()
    assert np.array_equal(counts, bootstrap_counts(40, 200))
    assert not np.array_equal(counts, bootstrap_counts(40, 200, seed=1))
    values = np.arange(40.0)
    assert mean_draws(values, counts)[7] == pytest.approx(np.repeat(values, counts[7]).mean())


def test_the_interval_is_as_wide_as_theory_says():
    """Of 5,000 standard normal differences: 1.96 standard errors, 0.0277, to each side; draws know that to a tenth."""
    values = np.random.default_rng(2).normal(size=5000)
    low, high = np.quantile(mean_draws(values, bootstrap_counts(5000)), [0.025, 0.975])
    assert (high - low) / 2 == pytest.approx(1.96 / np.sqrt(5000), rel=0.1)


def test_a_verdict_needs_the_whole_interval_on_one_side():
    assert Difference(-1, -2, -0.1, better=-1).verdict == 1
    assert Difference(1, 0.1, 2, better=-1).verdict == -1
    assert Difference(1, -0.1, 2, better=-1).verdict == 0
    assert Difference(1, 0.1, 2, better=1).verdict == 1
    assert Difference(-1, -2, -0.1, better=1).verdict == -1


def test_differences_know_the_better_one():
    rng = np.random.default_rng(3)
    y = np.arange(4000) % 2
    good, bad = ([predictions(rng, 4000, sharpness, y) for _ in range(2)] for sharpness in (2.0, 1.0))
    counts = bootstrap_counts(4000, 200)
    found = differences(good, bad, counts)
    assert {name: each.verdict for name, each in found.items()} == {"error": 1, "log_loss": 1, "auc": 1}
    back = differences(bad, good, counts)
    assert {name: each.verdict for name, each in back.items()} == {"error": -1, "log_loss": -1, "auc": -1}
    assert back["error"].value == pytest.approx(-found["error"].value)
    assert {each.verdict for each in differences(good, good, counts).values()} == {0}
    means = [np.mean([run.figures()["error"] for run in runs]) for runs in (good, bad)]
    assert found["error"].value == pytest.approx(means[0] - means[1])


def test_pairing_makes_small_differences_certain():
    """Both are wrong in a third of the rows, one in five rows more: unpaired, an interval would be 40 times as wide."""
    y = np.zeros(3000, int)
    ours = np.arange(3000) % 3 == 0
    theirs = ours.copy()
    theirs[[1, 2, 4, 5, 7, 8, 10, 11, 13]] = True
    runs = [[Predictions(wrong.astype(int), np.eye(3)[wrong.astype(int)], y)] for wrong in (ours, theirs)]
    found = differences(*runs, bootstrap_counts(3000))
    assert "auc" not in found
    assert found["error"].verdict == 1
    assert found["error"].value == pytest.approx(-0.3)
