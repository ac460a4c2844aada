"""Networks whose dense part lies on a CUDA device: the same results as on the processor, to rounding."""

import numpy as np
import pytest
import torch

from sketchnet import SketchClassifier
from sketchnet.data import Synthetic

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

FIXED = {"learn_projection": False, "wide": False}


def rows(n=4000):
    batch = Synthetic(n=n, d=20_000, density=2e-3).rows(slice(0, n))
    return batch.scipy(), batch.labels


@pytest.mark.parametrize(
    "settings", [{}, FIXED, {**FIXED, "scheme": "srht"}, {"optimiser": "sgd", "learning_rate": 0.01}]
)
def test_trains_as_on_the_processor(settings):
    X, y = rows()
    masks = {"dropout": 0.0, "feature_dropout": 0.0}  # they differ
    settings = {"n_components": 128, "hidden": (64,), "epochs": 3, **masks, **settings}
    here = SketchClassifier(device="cpu", **settings).fit(X, y)
    there = SketchClassifier(device="cuda", **settings).fit(X, y)
    assert there.model_.network.device.type == "cuda"
    assert np.abs(there.predict_proba(X) - here.predict_proba(X)).mean() < 0.02


def test_a_model_of_the_card_is_saved_for_everybody(tmp_path):
    X, y = rows(1000)
    model = SketchClassifier(device="cuda", n_components=64, hidden=(32,), epochs=2).fit(X, y)
    model.save(tmp_path / "model")
    loaded = SketchClassifier.load(tmp_path / "model")
    assert loaded.model_.network.device.type == "cpu"
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), atol=1e-3)


def test_the_same_seed_gives_the_same_network():
    X, y = rows(2000)
    models = [SketchClassifier(device="cuda", n_components=64, hidden=(32,), epochs=3).fit(X, y) for _ in range(2)]
    np.testing.assert_allclose(*(model.predict_proba(X) for model in models), atol=1e-3)
