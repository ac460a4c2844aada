"""Where a projection runs: what can be said about it on any machine."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy import sparse

from sketchnet import RandomProjection
from sketchnet.data import CsrBatch
from sketchnet.errors import InputError
from sketchnet.evaluation.retrieval import retrieval
from sketchnet.kernels import backend
from sketchnet.projection import CountSketch
from sketchnet.projection.device_choice import gpu_for
from sketchnet.projection.on_disk import project_to_file
from sketchnet.training.defaults import choose_device

WITHOUT = "torch finds no CUDA device"


@pytest.fixture
def no_gpu(monkeypatch):
    for place in ("kernels.registry", "projection.device_choice"):
        monkeypatch.setattr(f"sketchnet.{place}.gpu_missing", lambda *_: WITHOUT)
    monkeypatch.setattr("sketchnet.projection.device_choice._WORTHWHILE", 1)


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr("sketchnet.projection.device_choice.gpu_missing", lambda *_: None)


def rows(n=20):
    return sparse.random_array((n, 1000), density=0.1, format="csr", rng=np.random.default_rng(0), dtype=np.float32)


def batch(X):
    return CsrBatch(X.indptr, X.indices, X.data, X.shape[1])


def test_cuda_where_there_is_none(no_gpu, tmp_path):
    operator = CountSketch(10).sample(1000, 0)
    for work in (
        lambda: operator.apply(rows(), device="cuda"),
        lambda: RandomProjection(n_components=10, device="cuda").fit_transform(rows()),
        lambda: project_to_file(operator, batch(rows()), tmp_path / "y.npy", device="cuda"),
    ):
        with pytest.raises(InputError, match=f"device 'cuda' is not possible here: {WITHOUT}"):
            work()
    assert not (tmp_path / "y.npy").exists()
    with pytest.raises(InputError, match=f"kernel backend 'gpu' is not possible here: {WITHOUT}"):
        backend("gpu")


def test_auto_falls_back(no_gpu, tmp_path):
    operator = CountSketch(10).sample(1000, 0)
    here = operator.apply(rows())
    assert np.array_equal(operator.apply(rows(), device="auto"), here)
    assert np.array_equal(RandomProjection(n_components=10).fit_transform(rows()), here)
    assert np.array_equal(project_to_file(operator, batch(rows()), tmp_path / "y.npy", device="auto"), here)


def test_auto_takes_the_gpu_where_it_pays(gpu):
    much = CsrBatch(np.arange(2**19), np.zeros(2**19 - 1, np.int64), np.ones(2**19 - 1, np.float32), 1000)
    assert gpu_for("auto", much, 1000, np.float32) == "cuda"
    assert gpu_for("auto", much, 1000, np.float32, per_entry=1) is None  # Count Sketch is quick anywhere
    assert gpu_for("auto", much, 100, np.float32) is None  # little to do
    assert gpu_for("auto", much, 1000, np.float64) is None
    assert gpu_for("auto", much, 1000, np.float32, sparse_output=True) is None
    assert gpu_for("auto", np.zeros((2**19, 1)), 1000, np.float32) is None  # dense
    assert gpu_for("cpu", much, 1000, np.float32) is gpu_for(None, much, 1000, np.float32) is None
    assert gpu_for("cuda:1", batch(rows()), 10, np.float32) == "cuda:1"


def test_what_no_gpu_can_do(gpu):
    for how in ({"dtype": np.float64}, {"sparse_output": True}):
        with pytest.raises(InputError, match="device 'cuda' gives dense float32 results"):
            CountSketch(10).sample(1000, 0).apply(rows(), device="cuda", **how)
    for device in ("gpu", "cuda:x", 0):
        with pytest.raises(InputError, match="it is auto, cpu or cuda"):
            CountSketch(10).sample(1000, 0).apply(rows(), device=device)


def test_devices_of_torch_are_known_by_their_names(gpu):
    """One that is no text equals none."""
    assert gpu_for(torch.device("cpu"), batch(rows()), 10, np.float32) is None
    assert gpu_for(torch.device("cuda", 1), batch(rows()), 10, np.float32) == "cuda:1"
    assert choose_device(torch.device("cpu")) == torch.device("cpu")
    codes = np.eye(4, dtype=np.float32)
    assert retrieval(codes, [0, 1, 0, 1], device=torch.device("cpu")).n_queries == 4


def test_asking_does_not_load_torch_without_need():
    code = """
import sys
from scipy.sparse import csr_array
from sketchnet import RandomProjection
RandomProjection(n_components=2).fit_transform(csr_array([[1.0, 2.0]]))
sys.exit("torch" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_device_beyond_the_last(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda number: (9, 0))
    monkeypatch.setattr("sketchnet.kernels.registry.find_spec", lambda name: True)
    with pytest.raises(InputError, match="'cuda:2' is not possible here: torch finds CUDA devices 0 to 1 only"):
        gpu_for("cuda:2", batch(rows()), 10, np.float32)
    with pytest.raises(InputError, match="'cuda:2' is not possible here: torch finds CUDA devices 0 to 1 only"):
        choose_device("cuda:2")
    with pytest.raises(InputError, match="'cuda:2' is not possible here: torch finds CUDA devices 0 to 1 only"):
        retrieval(np.eye(3, dtype=np.float32), np.zeros(3, int), device="cuda:2")
    for name in ("cuda:128", "cuda:01"):
        with pytest.raises(InputError, match=f"device '{name}' is not possible; it is auto, cpu or cuda"):
            choose_device(name)
    assert choose_device("cuda:1") == torch.device("cuda:1")
