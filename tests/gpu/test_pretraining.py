"""Machines, pretrained networks and autoencoders on a CUDA device learn what they learn on the processor."""

import numpy as np
import pytest
import torch
from scipy import sparse

from sketchnet import SketchAutoencoder, SketchClassifier
from sketchnet.data import Synthetic
from sketchnet.evaluation.retrieval import retrieval
from sketchnet.kernels.registry import gpu_missing
from sketchnet.pretraining import RBM, RBMConfig, RBMTrainingConfig, make_rows, train_rbm

pytestmark = pytest.mark.skipif(gpu_missing() is not None, reason="there is no CUDA device")


@pytest.mark.parametrize("visible", ["binary", "gaussian", "poisson"])
@pytest.mark.parametrize("hidden", ["binary", "gaussian", "relu"])
def test_rbms_reconstruct_as_well(visible, hidden):
    """Of rows with five patterns; random numbers differ between devices, so errors agree to a few percent."""
    rng = np.random.default_rng(0)
    patterns = rng.random((5, 30)) < 0.4
    rows = np.abs(patterns[rng.integers(0, 5, 2000)] ^ (rng.random((2000, 30)) < 0.02)).astype(np.float32)
    if visible == "gaussian":
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    errors = []
    for device in ("cpu", "cuda"):
        rbm = RBM(RBMConfig(30, 20, visible, hidden)).to(device)
        train_rbm(rbm, make_rows(torch.from_numpy(rows), 100, 0, device), RBMTrainingConfig(epochs=10))
        errors.append(rbm.history[-1]["reconstruction"])
    assert errors[1] == pytest.approx(errors[0], rel=0.1)


def test_pretrained_networks_learn_there():
    data = Synthetic(n=4000, d=20_000, density=2e-3).rows(slice(0, 4000))
    X, y = data.scipy(), data.labels
    settings = {"learn_projection": False, "n_components": 128, "hidden": (64, 32), "pretrain": 3}
    here, there = (SketchClassifier(device=device, epochs=5, **settings).fit(X, y) for device in ("cpu", "cuda"))
    assert abs(here.score(X, y) - there.score(X, y)) < 0.05


@pytest.mark.parametrize("front", [{}, {"scheme": "count_sketch", "n_components": 200}], ids=["counts", "sketched"])
def test_codes_find_as_much(front):
    rng = np.random.default_rng(1)
    topics, labels = rng.dirichlet(np.full(400, 0.05), 8), rng.integers(0, 8, 3000)
    counts = np.stack([rng.multinomial(40, topics[label]) for label in labels])
    X = sparse.csr_array(counts.astype(np.float32))
    settings = {"n_codes": 8, "hidden": (64,), "pretrain": 5, "epochs": 10, **front}
    models = [SketchAutoencoder(device=device, **settings).fit(X[:2500]) for device in ("cpu", "cuda")]
    areas = [retrieval(model.transform(X[2500:]), labels[2500:]).area for model in models]
    assert areas[1] > areas[0] - 0.05
