"""Captured training steps on a CUDA device against the processor's: kernels, whole runs, checkpoints."""

import numpy as np
import pytest
import torch

from sketchnet import SketchClassifier, SketchRegressor, random
from sketchnet.data import Synthetic
from sketchnet.errors import Interrupted
from sketchnet.kernels import backend
from sketchnet.kernels.registry import gpu_missing
from sketchnet.nn.norm import BatchNorm
from sketchnet.training import captured, gpu_layers, gpu_rows
from sketchnet.training.examples import Examples
from sketchnet.training.loop import train
from sketchnet.training.task import Task

pytestmark = pytest.mark.skipif(gpu_missing() is not None, reason="there is no CUDA device")

CPU = backend("cpu")
FIXED = {"learn_projection": False}
PLAIN = {"dropout": 0.0, "feature_dropout": 0.0, "n_components": 128, "hidden": (64, 32), "epochs": 3}


def gpu(*arrays):
    return [torch.from_numpy(np.ascontiguousarray(array)).cuda() for array in arrays]


def batch(n=50, d=300, k=37, width=5, seed=0, index=np.int32):
    """CSR arrays with rows of very different length, and rows of them with repetitions."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 60, n) * (rng.random(n) < 0.8)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = rng.integers(0, d, indptr[-1]).astype(index)
    values = rng.standard_normal(indptr[-1]).astype(np.float32)
    normal = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    return (indptr, indices, values), rng.permutation(n)[: n // 2], normal(d), normal(k), normal(d, width)


def taken(csr, rows):
    return CPU.gather_rows(*csr, rows)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("k", [1, 37, 1000, 2500])
@pytest.mark.parametrize("look_up", [False, True])
def test_sketch_and_its_gradient(k, index, look_up):
    csr, rows, weight, _, _ = batch(k=k, index=index)
    bias, key = np.random.default_rng(1).standard_normal(k).astype(np.float32), random.hash_key(3, 4)
    indptr, indices, values = taken(csr, rows)
    codes = CPU.draw_buckets(key, np.arange(len(weight)), k)
    expected = np.empty((len(rows), k), np.float32)
    CPU.scatter_forward(indptr, indices, values, None, codes, weight, bias, expected)
    on_gpu, (numbers, w, b) = gpu(*csr), gpu(rows, weight, bias)
    where = gpu(np.where(codes < 0, ~codes, codes).astype(np.int32))[0] if look_up else key
    out = torch.empty(len(rows), k, device="cuda")
    backend("gpu").sketch_forward(numbers, on_gpu, None, 0.0, where, w, b, out)
    np.testing.assert_allclose(out.cpu(), expected, rtol=1e-5, atol=1e-5)
    gradient = np.random.default_rng(2).standard_normal(expected.shape).astype(np.float32)
    found = torch.zeros_like(w)
    backend("gpu").sketch_backward(numbers, on_gpu, None, 0.0, where, *gpu(gradient), found)
    expected = CPU.scatter_backward(indptr, indices, values, None, codes, gradient)
    np.testing.assert_allclose(found.cpu(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("width", [1, 5])
def test_adam_moves_the_columns_of_the_batch_alone(width):
    csr, rows, _, _, table = batch(width=width)
    indices = taken(csr, rows)[1]
    used = np.unique(indices)
    rng = np.random.default_rng(5)
    first, second = rng.standard_normal((2, *table.shape)).astype(np.float32)
    second, gradient = second**2, np.zeros_like(table)
    gradient[used] = rng.standard_normal((len(used), width))
    long = np.hstack([table, first, second])
    CPU.adam_step(long, used, gradient[used], 0.1, 0.9, 0.99, 1e-8, 1.5, 0.01)
    g, w, m, v = gpu(gradient, table, first, second)
    rates = torch.tensor([0.1, 1.5, 0.01], device="cuda")
    backend("gpu").adam_rows(*gpu(rows), gpu(*csr), g, w, (m, v), rates, (0.9, 0.99), 1e-8)
    assert not g.any()
    for found, expected in zip((w, m, v), np.split(long, 3, axis=1)):
        np.testing.assert_allclose(found.cpu(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rate", [0.3, 0.5, 0.9])
def test_relu_dropout(rate):
    """The share kept is right to five standard deviations; the backward pass drops the same."""
    x = torch.randn(2000, 500, device="cuda", dtype=torch.bfloat16).requires_grad_()
    keys = torch.tensor([0x9E3779B97F4A7C15 - 2**64, 12345], device="cuda")
    out = gpu_layers.ReluDropout.apply(x, keys, 1, rate)
    positive = x > 0
    kept = (out > 0)[positive].double().mean()
    assert abs(kept - (1 - rate)) < 5 * (rate * (1 - rate) / int(positive.sum())) ** 0.5
    assert not out[~positive].any()
    torch.testing.assert_close(out[out > 0].float(), (x[out > 0] / (1 - rate)).float(), rtol=1e-2, atol=1e-3)
    out.sum().backward()
    assert torch.equal(x.grad != 0, out > 0)
    assert not torch.equal(gpu_layers.ReluDropout.apply(x, keys, 2, rate) > 0, out > 0)  # another layer, another mask


@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 37), (100, 1000), (1024, 1000), (3000, 130)])
def test_batch_norm(n, k):
    """Against torch's in float64, of columns whose means are far from zero."""
    x = torch.randn(n, k, device="cuda") * 2 + 30
    gradient = torch.randn(n, k, device="cuda").bfloat16()
    found = []
    for kind, join in ((torch.float32, gpu_layers.BatchNormalised.apply), (torch.float64, None)):
        norm = BatchNorm(k).cuda().to(kind)
        with torch.no_grad():
            norm.weight.copy_(torch.linspace(0.5, 1.5, k))
            norm.bias.copy_(torch.linspace(-1, 1, k))
        leaf = x.to(kind, copy=True).requires_grad_()
        out = norm(leaf) if join is None else join(leaf, norm.weight, norm.bias, norm)
        out.backward(gradient.to(out.dtype))
        found.append([leaf.grad, norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_var, out.detach()])
    for ours, theirs in zip(*found):
        close = 1e-2 if ours.dtype == torch.bfloat16 else 1e-4
        assert float((ours.double() - theirs).norm()) <= close * float(theirs.norm()) + 1e-4


def rows(n=4000, d=20_000):
    data = Synthetic(n=n, d=d, density=2e-3).rows(slice(0, n))
    return data.scipy(), data.labels


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"hashed_columns": 5000},
        {"eta": 0.5},
        {"scheme": "li"},
        FIXED,
        {**FIXED, "scheme": "gaussian", "normalise": "max_abs"},
        {**FIXED, "optimiser": "sgd", "learning_rate": 0.05, "l2": 1e-3},
        {"scale_input": "max_abs", "batch_size": 100, "l2": 0.01},
    ],
)
def test_trains_as_the_processor_does(settings):
    """Without dropout both make the same steps, one in bfloat16: the same probabilities, nearly, and error."""
    X, y = rows()
    here = SketchClassifier(device="cpu", **{**PLAIN, **settings}).fit(X, y)
    there = SketchClassifier(device="cuda", **{**PLAIN, **settings}).fit(X, y)
    assert captured.can_capture(there.model_.network, there.model_.task, there.model_.training)
    assert np.abs(there.predict_proba(X) - here.predict_proba(X)).mean() < 0.05
    assert abs(there.score(X, y) - here.score(X, y)) < 0.03


@pytest.mark.parametrize(
    "settings", [{}, {"feature_dropout": 0.5}, FIXED, {**FIXED, "scheme": "srht", "normalise": "batch"}]
)
def test_rows_that_do_not_fit_come_in_windows(settings, monkeypatch):
    """The same steps on the same rows, whether they lie on the GPU or not; sums there have no fixed order."""
    X, y = rows()
    whole = SketchClassifier(device="cuda", **{**PLAIN, **settings}).fit(X, y)
    windows = []

    def counted(rows, epoch, skip):
        for window in plain(rows, epoch, skip):
            windows.append(window)
            yield window

    plain = gpu_rows.StreamedRows.windows
    monkeypatch.setattr(gpu_rows.StreamedRows, "windows", counted)
    monkeypatch.setattr(gpu_rows, "_WINDOW", 200_000)
    monkeypatch.setattr(captured, "can_capture", lambda *of: True)
    monkeypatch.setattr(captured, "_room", lambda network: 0)
    parts = SketchClassifier(device="cuda", **{**PLAIN, **settings}).fit(X, y)
    assert len(windows) > 3 * 5  # in each of three epochs
    assert np.abs(parts.predict_proba(X) - whole.predict_proba(X)).mean() < 0.02


def test_many_classes_weights_and_regression():
    X, y = rows()
    y = y + 2 * (np.asarray(X.sum(axis=1)).ravel() > np.median(np.asarray(X.sum(axis=1))))
    weight = np.where(y == 0, 3.0, 1.0)
    scores = [SketchClassifier(device=device, **PLAIN).fit(X, y, weight).score(X, y) for device in ("cpu", "cuda")]
    assert abs(scores[0] - scores[1]) < 0.05
    target = np.asarray(X.sum(axis=1)).ravel()
    scores = [SketchRegressor(device=device, **PLAIN).fit(X, target).score(X, target) for device in ("cpu", "cuda")]
    assert abs(scores[0] - scores[1]) < 0.1


def test_with_dropout_it_still_learns():
    X, y = rows()
    settings = {"n_components": 256, "hidden": (128, 128), "epochs": 5}
    here, there = (SketchClassifier(device=device, **settings).fit(X, y) for device in ("cpu", "cuda"))
    errors = [min(r["valid_error"] for r in model.history_ if "valid_error" in r) for model in (here, there)]
    assert abs(errors[0] - errors[1]) < 0.1


@pytest.mark.parametrize("settings", [{}, FIXED, {**FIXED, "optimiser": "sgd", "learning_rate": 0.01}])
def test_a_stopped_run_goes_on(settings, tmp_path):
    """In the middle of an epoch, to weights that differ by rounding at most: sums on the GPU have no fixed order."""
    X, y = rows(2000)
    estimator = SketchClassifier(device="cuda", **{**PLAIN, **settings, "sparse_learning_rate": 0.01})
    task = Task.of_labels(y)
    examples = Examples(estimator._batch(X), task.encode(y))

    def model():
        return estimator._build(task, examples.data, 2000)

    whole, cut = model(), model()
    train(whole, examples, None)

    def stop(done, total, note):
        if done == 29:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        train(cut, examples, None, folder=tmp_path, tick=stop)
    again = model()
    train(again, examples, None, folder=tmp_path)
    for name, tensor in whole.network.state_dict().items():
        torch.testing.assert_close(again.network.state_dict()[name].float(), tensor.float(), rtol=0.02, atol=0.02)
