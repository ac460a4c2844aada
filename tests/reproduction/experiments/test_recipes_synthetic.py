"""Recipes on synthetic data reach what the law of the data lets them reach."""

import numpy as np
import pytest

from reproduction.experiments import sizes
from reproduction.experiments.recipes.linear_models import synthetic_linear
from reproduction.experiments.recipes.reduction import synthetic_reduced
from reproduction.experiments.recipes.row_lengths import synthetic_row_lengths
from reproduction.experiments.recipes.synthetic import (
    synthetic_bayes,
    synthetic_network,
    synthetic_norm,
    synthetic_rows,
)
from reproduction.experiments.recipes.timing import cost_slopes, learning_slopes, projection_time

ONCE = {"seed": 0, "device": "cpu"}
SMALL = sizes.synthetic("small")  # 6250 test rows: the standard error of an error of 20 % is 0.5 points
NETWORK = {"hidden": [128, 128], "epochs": 6, "batch_size": 256, "patience": 3, "wide": False}


@pytest.mark.parametrize(("density", "norm", "bayes"), [(3e-6, 35.58, 31.72), (1e-5, 21.04, 11.07), (3e-5, 7.36, 0.72)])
def test_yardsticks_are_those_of_full_size(density, norm, bayes):
    data = sizes.synthetic("small", density)
    assert synthetic_norm(**ONCE, **data)["error"] == pytest.approx(norm, abs=2.0)
    assert synthetic_bayes(**ONCE, **data)["error"] == pytest.approx(bayes, abs=2.0)


def test_yardsticks_need_their_knowledge():
    """Where the columns of the test rows are others than those learnt, only the norm is left to know."""
    _, test = synthetic_rows(*SMALL.values())  # as the recipes ask for them: the same arrays
    kept = test.indices.copy()
    try:
        test.indices[:] = np.random.default_rng(0).permutation(SMALL["d"])[kept]
        assert synthetic_bayes(**ONCE, **SMALL)["error"] > 15
        assert synthetic_norm(**ONCE, **SMALL)["error"] < 23
    finally:
        test.indices[:] = kept


def test_network_behind_a_projection_reads_the_norm():
    """By the norm alone the error is 7.4 %, by the linear model 25.7."""
    data = sizes.synthetic("small", 3e-5)
    found = synthetic_network(**ONCE, **data, **NETWORK, scheme="count_sketch", n_components=300, learn=False)
    assert found["error"] < 13
    assert abs(found["error"] - found["valid_error"]) < 4
    assert 0 < found["reduce_seconds"] < found["total_seconds"] <= found["seconds"]
    assert 1 <= found["best_epoch"] <= found["epochs"] <= 6


def test_selection_cannot_tell_and_svd_can():
    columns = sizes.share_of_columns("small")
    found = synthetic_reduced(**ONCE, **SMALL, **NETWORK, method="chi2", n_columns=columns)
    assert found["error"] > 45
    assert synthetic_reduced(**ONCE, **SMALL, **NETWORK, method="pca", n_columns=columns)["error"] < 32


@pytest.mark.parametrize("model", ["lr", "svm"])
def test_linear_models_without_bias(model):
    found = synthetic_linear(**ONCE, **SMALL, model=model)
    assert found["error"] == pytest.approx(33.73, abs=2.0)
    assert synthetic_linear(**ONCE, **SMALL, model=model, bias=True)["error"] < found["error"] - 2


def test_row_lengths():
    found = synthetic_row_lengths(**ONCE, **sizes.synthetic("small", 1e-4))
    assert found["average"] == pytest.approx(100, abs=0.5)
    assert 130 < found["maximum"] < 160


@pytest.mark.parametrize("scheme", ["gaussian", "count_sketch"])
def test_times(scheme):
    how = {**SMALL, "scheme": scheme, "options": {}, "n_components": 100, "repeats": 1}
    found = projection_time(**ONCE, **how)
    assert min(found.values()) > 0
    assert set(found) == {"seconds", "generation", "multiplication"}


def test_slopes_tell_growth():
    how = {"n": 5000, "d": 50_000, "density": 2e-4, "significant": 0.2, "scheme": "gaussian", "options": {}}
    found = cost_slopes(**ONCE, **how, n_components=64, repeats=3)
    assert found["generation_by_d"] > 0.5
    assert found["generation_by_k"] > 0.5
    step = learning_slopes(**ONCE, **{**how, "scheme": "count_sketch"}, n_components=64, repeats=3)
    assert step["by_d"] < 0.6
