"""Captured steps that add up gradients and sums over processes by NCCL. One GPU has room for one process of a team, so
what is shown is that these sums can be captured, and change nothing where there is nobody else.
"""

import os

import numpy as np
import pytest
import torch
from torch import distributed

from sketchnet import SketchClassifier
from sketchnet.data import Synthetic
from sketchnet.kernels.registry import gpu_missing
from sketchnet.training import captured, loop
from sketchnet.training.processes import Processes

pytestmark = pytest.mark.skipif(gpu_missing() is not None, reason="there is no CUDA device")


class Team(Processes):
    alone = False  # so that it does all that several would do


@pytest.fixture
def team(tmp_path):
    """Where LOCAL_RANK is set, the GPU is named by it."""
    distributed.init_process_group("cpu:gloo,cuda:nccl", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    os.environ["LOCAL_RANK"] = "0"
    yield Team(0, 1)
    del os.environ["LOCAL_RANK"]
    distributed.destroy_process_group()


@pytest.mark.parametrize("settings", [{}, {"learn_projection": False}])
def test_sums_over_processes_are_captured(settings, team, monkeypatch):
    data = Synthetic(n=4000, d=20_000, density=2e-3).rows(slice(0, 4000))
    X, y = data.scipy(), data.labels
    plain = {"dropout": 0.0, "feature_dropout": 0.0, "n_components": 128, "hidden": (64, 32), "epochs": 3}
    alone = SketchClassifier(device="cuda", **{**plain, **settings}).fit(X, y)
    monkeypatch.setattr(loop.Processes, "found", lambda: team)
    monkeypatch.setattr(captured, "PlainSteps", None)  # which nobody may fall back to
    together = SketchClassifier(device="cuda", **{**plain, **settings}).fit(X, y)
    assert together.model_.network.device == torch.device("cuda", 0)
    assert np.abs(together.predict_proba(X) - alone.predict_proba(X)).mean() < 0.02
