"""The logic of captured steps, without a GPU: its kernels are stood in for by the processor's, graphs by plain calls.

Products are then in float32, so the steps must be those of `PlainSteps` to rounding. tests/gpu has the real thing.
"""

import contextlib
import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sketchnet import SketchClassifier
from sketchnet.data import CsrBatch, Synthetic
from sketchnet.errors import Interrupted
from sketchnet.kernels import backend
from sketchnet.projection import on_device
from sketchnet.training import TrainingConfig, captured, course, gpu_layers, gpu_optimisers, gpu_rows
from sketchnet.training.defaults import choose_device
from sketchnet.training.examples import Examples
from sketchnet.training.loop import train
from sketchnet.training.processes import Processes
from sketchnet.training.steps import PlainSteps
from sketchnet.training.task import Task
from tests.training.toy import moved_in_epochs

CPU = backend("cpu")
FIXED = {"learn_projection": False}
SMALL = {"dropout": 0.0, "feature_dropout": 0.0, "n_components": 64, "hidden": (32, 16), "epochs": 3}


def taken(rows, csr):
    return CPU.gather_rows(*(tensor.numpy() for tensor in csr), rows.numpy())


def codes_of(where, n_weights, k):
    return where.numpy() if isinstance(where, torch.Tensor) else CPU.draw_buckets(where, np.arange(n_weights), k)


def sketch_forward(rows, csr, keys, rate, where, weight, bias, out):
    codes = codes_of(where, len(weight), out.shape[1])
    CPU.scatter_forward(*taken(rows, csr), None, codes, weight.numpy(), bias.detach().numpy(), out.numpy())


def sketch_backward(rows, csr, keys, rate, where, gradient, out):
    codes = codes_of(where, len(out), gradient.shape[1])
    out += torch.from_numpy(CPU.scatter_backward(*taken(rows, csr), None, codes, gradient.numpy()))


def adam_rows(rows, csr, gradient, weight, moments, rates, betas, epsilon):
    used = np.unique(taken(rows, csr)[1])
    used = used[gradient.view(len(gradient), -1).numpy()[used].any(axis=1)]  # as the GPU does
    tensors = [tensor.view(len(tensor), -1) for tensor in (weight, *moments)]
    table = np.hstack([tensor.numpy() for tensor in tensors])
    by_row = gradient.view(len(gradient), -1).numpy()[used]
    CPU.adam_step(table, used, by_row, float(rates[0]), *betas, epsilon, float(rates[1]), float(rates[2]))
    for tensor, part in zip(tensors, np.split(table, 3, axis=1)):
        tensor.copy_(torch.from_numpy(part.copy()))
    gradient.zero_()


def adam_all(weight, shadow, gradient, moments, rates, betas, epsilon, decays):
    table = torch.stack([tensor.reshape(-1) for tensor in (weight, *moments)], dim=1).numpy()
    rate, correction, decay = rates[:3].tolist()
    how = *betas, epsilon, correction, decay if decays else 0.0
    CPU.adam_step(table, np.arange(len(table)), gradient.reshape(-1, 1).numpy(), rate, *how)
    for tensor, part in zip((weight, *moments), table.T):
        tensor.copy_(torch.from_numpy(part.copy()).view(tensor.shape))
    if shadow is not None:
        shadow.copy_(weight)


def moments(rows):
    rows = rows.double()
    return rows.mean(dim=0), (rows - rows.mean(dim=0)).square().sum(dim=0), rows.abs().amax(dim=0)


def normalise(rows, shift, scale, out):
    out.copy_((rows - shift) * scale)


def project_on_device(operator, rows, out=None, device=None):
    result = torch.from_numpy(operator.apply(rows))
    return result if out is None else out.copy_(result)


def product_on(operator, gpu):
    def product(indptr, indices, values, out):
        arrays = (tensor.numpy() for tensor in (indptr, indices, values))
        out.copy_(torch.from_numpy(operator.apply(CsrBatch(*arrays, operator.d))))

    return product


class Slot:
    """Copies at once; what was brought before is overwritten."""

    def __init__(self, n_rows, n_entries, ids, gpu):
        ids = torch.int32 if ids == np.int32 else torch.int64
        self.brought = [torch.empty(n_rows + 1, dtype=torch.int64), torch.empty(n_entries, dtype=ids)]
        self.brought.append(torch.empty(n_entries))
        self.uploaded = self.computed = SimpleNamespace(record=lambda stream: None)

    def bring(self, part, stream):
        return [mine[: len(array)].copy_(torch.from_numpy(array)) for mine, array in zip(self.brought, part.arrays)]


def batch_norm(x, weight, bias, running_mean, running_var, momentum, epsilon, dtype):
    mean, variance = x.mean(dim=0), x.var(dim=0, correction=0)
    inverse = (variance + epsilon).rsqrt()
    running_mean.lerp_(mean, momentum)
    running_var.lerp_(variance * len(x) / (len(x) - 1), momentum)
    return (x - mean) * inverse * weight + bias, torch.stack([mean, inverse])


def batch_norm_backward(gradient, x, weight, saved):
    normal = (x - saved[0]) * saved[1]
    total, products = gradient.sum(dim=0), (gradient * normal).sum(dim=0)
    inside = gradient - total / len(x) - normal * products / len(x)
    return inside * weight * saved[1], products, total


@pytest.fixture
def gpu(monkeypatch):
    """Make captured steps possible here, and take them."""
    kernels = (sketch_forward, sketch_backward, adam_rows, adam_all, moments, normalise)
    kernels += (batch_norm, batch_norm_backward)
    stand_in = SimpleNamespace(**{kernel.__name__: kernel for kernel in kernels})
    for module in (gpu_rows, gpu_layers, gpu_optimisers):
        monkeypatch.setattr(module, "backend", lambda name="cpu": stand_in if name == "gpu" else CPU)
    for what in (project_on_device, product_on, Slot):
        monkeypatch.setattr(on_device, what.__name__, what)
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda tensor: tensor.float().clone())
    monkeypatch.setattr(gpu_rows, "NARROW", torch.float32)
    stream = SimpleNamespace(wait_stream=lambda other: None, wait_event=lambda event: None, synchronize=lambda: None)
    for name in ("device", "stream", "graph"):
        monkeypatch.setattr(torch.cuda, name, lambda what: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "Stream", lambda device=None: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", SimpleNamespace)
    capture = captured.CapturedSteps._capture

    def captured_steps(network, task, examples, config, budget, note, team):
        return captured.CapturedSteps(network, task, examples, config, gpu.room, note, team)

    def with_replay(steps):
        graph = capture(steps)
        graph.replay = lambda: steps._step(steps._batch)
        return graph

    monkeypatch.setattr(captured.CapturedSteps, "_capture", with_replay)
    monkeypatch.setattr(course, "make_steps", captured_steps)
    gpu = SimpleNamespace(
        off=lambda: monkeypatch.setattr(course, "make_steps", PlainSteps),
        on=lambda: monkeypatch.setattr(course, "make_steps", captured_steps),
        room=float("inf"),
    )
    return gpu


def rows(n=500):
    data = Synthetic(n=n, d=3000, density=1e-2).rows(slice(0, n))
    return data.scipy(), data.labels


def stop_at(step):
    def tick(done, total, note):
        if done == step:
            os.kill(os.getpid(), signal.SIGINT)

    return tick


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"l2": 0.01},
        {"hashed_columns": 500, "hidden": ()},
        {"scale_input": "max_abs", "batch_size": 64},
        {"eta": 0.5, "normalise": "none", "hidden_norm": False},
        {"frozen_epochs": 1, "normalise": "none", "hidden_norm": False},
        {"scheme": "li", "options": {"s": 20}},
        {"scheme": "li", "eta": 0.3},
        FIXED,
        {**FIXED, "normalise": "batch"},
        {**FIXED, "scheme": "gaussian", "normalise": "max_abs", "optimiser": "sgd", "learning_rate": 0.05, "l2": 1e-3},
    ],
)
@pytest.mark.parametrize(("n_classes", "room"), [(2, float("inf")), (4, float("inf")), (2, 0)])
def test_the_same_steps(gpu, settings, n_classes, room, monkeypatch):
    """Also where rows do not fit the GPU, and windows hold a few batches, or, of long rows, just one."""
    monkeypatch.setattr(gpu_rows, "_WINDOW", 30_000 if settings == FIXED else 8_000)
    gpu.room = room
    X, y = rows()
    y = (y + 2 * (np.arange(len(y)) % 2)) % n_classes
    weights = np.where(y == 1, 2.0, 1.0) if settings == FIXED else None
    ours = SketchClassifier(device="cpu", **{**SMALL, **settings}).fit(X, y, weights)
    gpu.off()
    theirs = SketchClassifier(device="cpu", **{**SMALL, **settings}).fit(X, y, weights)
    close = 5e-3 if "eta" in settings else 2e-3  # corrections of a gated bias count other steps
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=close)
    losses = [[record["loss"] for record in model.history_ if "loss" in record] for model in (ours, theirs)]
    np.testing.assert_allclose(*losses, rtol=1e-3)
    stages = [[record["stage"] for record in model.history_ if "stage" in record] for model in (ours, theirs)]
    assert stages[0] == stages[1] or settings.get("normalise") == "batch"  # then rows are projected once, or not at all
    assert all(p.is_contiguous() for model in (ours, theirs) for p in model.model_.network.parameters())


@pytest.mark.parametrize(
    "settings", [{}, {"frozen_epochs": 2}, FIXED, {**FIXED, "optimiser": "sgd", "learning_rate": 0.01}]
)
@pytest.mark.parametrize(("moved", "room"), [(False, float("inf")), (True, float("inf")), (False, 0)])
def test_a_stopped_run_goes_on(gpu, settings, moved, room, tmp_path, monkeypatch):
    """In the middle of an epoch, here or as plain steps elsewhere, to the same weights."""
    monkeypatch.setattr(gpu_rows, "_WINDOW", 100_000)
    gpu.room = room
    X, y = rows()
    task = Task.of_labels(y)
    rates = {"sparse_learning_rate": 0.01}
    estimator = SketchClassifier(**{**SMALL, **settings, **rates, "batch_size": 64})
    examples = Examples(estimator._batch(X), task.encode(y))

    def model():
        return estimator._build(task, examples.data, 0)

    whole, cut, again = model(), model(), model()
    train(whole, examples, None)
    with pytest.raises(Interrupted):
        train(cut, examples, None, folder=tmp_path, tick=stop_at(11))
    if moved:
        gpu.off()
    train(again, examples, None, folder=tmp_path)
    for name, tensor in whole.network.state_dict().items():
        if not name.endswith("num_batches_tracked"):  # which captured steps leave alone
            torch.testing.assert_close(again.network.state_dict()[name], tensor, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("eta", [1.0, 0.5])
def test_a_frozen_projection_stays_as_it_was_drawn_and_then_learns(gpu, eta, tmp_path):
    X, y = rows()
    task = Task.of_labels(y)
    estimator = SketchClassifier(**{**SMALL, "epochs": 4, "eta": eta, "frozen_epochs": 2, "normalise": "none"})
    estimator.set_params(sparse_learning_rate=0.01, hidden_norm=False)
    examples = Examples(estimator._batch(X), task.encode(y))
    ours, theirs, cut, resumed = (estimator._build(task, examples.data, 0) for _ in range(4))
    assert moved_in_epochs(ours, examples) == [{"last"}] * 2 + [{"weight", "bias", "last"}] * 2
    gpu.off()
    train(theirs, examples, None)
    if eta == 1:  # corrections of the bias's moments begin when it does
        torch.testing.assert_close(ours.network.projection.bias, theirs.network.projection.bias, rtol=1e-2, atol=1e-4)
    with pytest.raises(Interrupted):  # in the first epoch, when there is nothing yet of the bias in a checkpoint
        train(cut, examples, None, folder=tmp_path, tick=stop_at(3))
    gpu.on()
    train(resumed, examples, None, folder=tmp_path)
    torch.testing.assert_close(ours.network.projection.bias, resumed.network.projection.bias, rtol=1e-2, atol=1e-4)


def test_what_goes_wrong_at_the_start_leaves_the_network_as_it_was(gpu, monkeypatch):
    X, y = rows()
    estimator = SketchClassifier(**SMALL)
    task = Task.of_labels(y)
    examples = Examples(estimator._batch(X), task.encode(y))
    model = estimator._build(task, examples.data, 0)
    network = model.network
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}

    def fails(steps):
        raise torch.cuda.OutOfMemoryError("no room")

    monkeypatch.setattr(captured.CapturedSteps, "_capture", fails)
    monkeypatch.setattr(captured, "can_capture", lambda *of: True)
    monkeypatch.setattr(captured, "_room", lambda network: float("inf"))
    how = model.training, 2**30, lambda record: None, Processes()
    steps = captured.make_steps(network, task, examples, *how)
    assert isinstance(steps, PlainSteps)
    steps.close()
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


def test_a_gpu_is_taken_where_it_helps(monkeypatch):
    monkeypatch.setattr("sketchnet.training.defaults.gpu_missing", lambda: None)
    X, y = rows()
    task = Task.of_labels(y)

    def device(n_rows, name="auto", **settings):
        estimator = SketchClassifier(**{**SMALL, **settings}, device="cpu")
        return choose_device(name, estimator._build(task, estimator._batch(X), 0), n_rows).type

    assert device(10**6) == "cuda"
    assert device(1000) == "cpu"
    assert device(10**6, name="cpu") == "cpu"
    assert device(10**6, **FIXED) == "cuda"
    assert device(10**6, learn_projection=False, feature_dropout=0.3) == "cpu"
    assert device(10**6, eta=0.5) == device(10**6, scheme="li") == "cuda"
    assert device(10**6, scheme="li", feature_dropout=0.3) == device(10**6, optimiser="sgd") == "cpu"
    assert not captured.is_known(_settings(learn=True), Task("multilabel", (0, 1)), TrainingConfig())


def _settings(learn):
    return SimpleNamespace(learn=learn, scheme="count_sketch", eta=1, feature_dropout=0.0)
