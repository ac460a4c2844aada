"""SketchClassifier and SketchRegressor learning in portions, by `partial_fit`."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sketchnet import SketchClassifier, SketchRegressor
from sketchnet.errors import InputError, TrainingError
from tests.test_network_estimators import RULE, TINY, planted


def test_partial_fit_learns_in_portions():
    X, y = planted(3000)
    model = SketchClassifier(**RULE)
    for _ in range(20):
        for start in range(0, 2000, 500):
            model.partial_fit(X[start : start + 500], y[start : start + 500], classes=[0, 1])
    assert model.score(X[2000:], y[2000:]) > 0.8
    with pytest.raises(InputError, match="label 7 of row 0 is not among the classes"):
        model.partial_fit(X[:1], [7])
    with pytest.raises(InputError, match="classes must be passed on the first call"):
        SketchClassifier().partial_fit(X, y)


@pytest.mark.parametrize("estimator", [SketchClassifier, SketchRegressor])
def test_what_is_known_after_portions_alone(estimator, tmp_path):
    X, y = planted()
    model = estimator(**TINY)
    model.partial_fit(X, y, **({"classes": [0, 1]} if estimator is SketchClassifier else {}))
    assert (model.history_, model.n_epochs_, model.best_epoch_) == ([], 0, None)
    assert model.settings_["n_components"] == 32
    model.save(tmp_path / "model")
    assert estimator.load(tmp_path / "model").settings_ == model.settings_
    model.fit(X, y).partial_fit(X, y)
    assert model.n_epochs_ > 0


def test_nothing_is_left_of_a_first_portion_that_failed():
    X, y = planted()
    for settings, labels, error in (({"dropout": 2.0}, y, InputError), ({}, y + 7, InputError),
                                    ({"learning_rate": 1e30}, y, TrainingError)):  # fmt: skip
        model = SketchClassifier(**{**TINY, **settings})
        with pytest.raises(error):
            model.partial_fit(X, labels, classes=[0, 1])
        with pytest.raises(InputError, match="classes must be passed on the first call"):
            model.partial_fit(X, y)
        with pytest.raises(NotFittedError):
            model.predict(X)
        again = model.set_params(dropout=0.5, learning_rate=0.001).partial_fit(X, y, classes=[0, 1])
        fresh = SketchClassifier(**TINY, dropout=0.5, learning_rate=0.001).partial_fit(X, y, classes=[0, 1])
        assert np.array_equal(again.predict_proba(X), fresh.predict_proba(X))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("normalise", "standard"),
        ("normalise", "max_abs"),
        ("scale_input", "max_abs"),
        ("pretrain", True),
        ("pretrain", 3),
        ("frozen_epochs", 2),
    ],
)
def test_what_needs_all_rows_is_not_for_portions(name, value):
    X, y = planted()
    fixed = SketchClassifier(**TINY, learn_projection=False, epochs=1)
    model = clone(fixed).set_params(**{name: value})
    for _ in range(2):  # nothing is left of the first try
        with pytest.raises(InputError, match=f"{name}={value!r} needs all rows at once; use fit"):
            model.partial_fit(X, y, classes=[0, 1])
    model.fit(X, y).partial_fit(X, y)  # fit has learnt it
    portions = fixed.partial_fit(X, y, classes=[0, 1]).model_.network
    assert portions.config.normalise == "batch"
    assert portions.norm.running_mean.any()
