"""Networks whose dense part lies on a CUDA device: the same results as on the processor, to rounding."""

import dataclasses

import numpy as np
import pytest
import torch

from sketchnet import SketchClassifier
from sketchnet.data import Synthetic
from sketchnet.kernels.registry import gpu_missing
from sketchnet.nn import NetworkConfig, SketchNetwork
from sketchnet.projection import SCHEMES
from sketchnet.training.config import TrainingConfig
from sketchnet.training.model import Model
from sketchnet.training.task import Task

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

FIXED = {"learn_projection": False}


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


def test_a_model_of_the_gpu_is_saved_for_everybody(tmp_path):
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


@pytest.mark.skipif(gpu_missing() is not None, reason=f"no GPU kernels: {gpu_missing()}")
@pytest.mark.parametrize("scheme", sorted(SCHEMES))
def test_rows_are_projected_where_the_network_is(scheme, monkeypatch):
    batch = Synthetic(n=2500, d=20_000, density=2e-3).rows(slice(0, 2500))
    options = {"density": 0.01} if scheme == "srht_sparse" else {}
    fixed = {"learn": False, "options": options, "n_components": 64}
    network = SketchNetwork(NetworkConfig(20_000, 3, scheme, **fixed, hidden=(32,)))
    model = Model(network, Task("multiclass", (0, 1, 2)), TrainingConfig())
    few = dataclasses.replace(batch.rows(slice(0, 9)), values=batch.rows(slice(0, 9)).values.astype(np.float64))
    here, in_double = model.outputs(batch), model.outputs(few)
    model = Model(network.to("cuda"), model.task, model.training)
    close = 1e-9 * np.abs(in_double).max()
    np.testing.assert_allclose(model.outputs(few), in_double, atol=close)  # which kernels of the GPU do not compute

    def refuse(*_, **__):
        raise AssertionError("rows were projected on the processor")

    monkeypatch.setattr(type(network.projection.operator), "apply", refuse)
    there = model.outputs(batch)
    assert there.dtype == np.float32
    np.testing.assert_allclose(there, here, rtol=1e-3, atol=1e-4 * np.abs(here).max())
    assert model.outputs(batch.rows(slice(0, 0))).shape == (0, 3)
