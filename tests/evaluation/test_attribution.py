"""Contributions are gradients times values: against finite differences through the whole network, and by planting."""

import dataclasses

import numpy as np
import pytest
import torch
from scipy import sparse

from sketchnet.data import CsrBatch
from sketchnet.data.column_names import column_names
from sketchnet.data.ngrams import NgramHasher
from sketchnet.errors import InputError
from sketchnet.evaluation.attribution import contributions, top_columns
from sketchnet.nn import NetworkConfig, SketchNetwork
from sketchnet.training import Model, Task, TrainingConfig
from sketchnet.training.defaults import build_model
from sketchnet.training.loop import Examples, train
from tests.nn.conftest import one_thread

__all__ = ["one_thread"]

D, N = 25, 6
TASKS = {
    "binary": Task("binary", ("no", "yes")),
    "multiclass": Task("multiclass", ("a", "b", "c")),
    "regression": Task("regression", (), 5.0, 2.5),
}
FRONTS = {
    "learnable": {},
    "li": {"scheme": "li", "options": {"s": 4}},
    "gaussian": {"scheme": "gaussian", "learn": False, "normalise": "standard"},
    "srht": {"scheme": "srht", "learn": False, "normalise": "max_abs"},
    "scaled and hashed": {"scale_input": "max_abs", "hashed_columns": 12},
}


def model_of(task, **network):
    """A network with all its weights moved away from their beginnings."""
    config = NetworkConfig(n_columns=D, n_outputs=task.n_outputs, n_components=32, hidden=(16,), seed=3, **network)
    net = SketchNetwork(config)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            if tensor.is_floating_point():
                noise = 0.3 * torch.randn(tensor.shape, generator=generator)
                tensor += noise.abs() if name in ("norm.running_var", "scale", "input_scale") else noise
    return Model(net, task, TrainingConfig())


def dense_rows():
    values = np.random.default_rng(5).normal(size=(N, D))
    return CsrBatch(np.arange(N + 1) * D, np.tile(np.arange(D), N), values.ravel(), D)


def output_of(model, rows, chosen):
    """The number that is explained, for each row, in float64."""
    outputs = model.outputs(rows)
    if model.task.kind == "binary":
        return outputs[:, 0] * (1 if chosen == 1 else -1)
    return outputs[:, chosen] if model.task.kind == "multiclass" else outputs[:, 0] * model.task.deviation


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("kind", TASKS)
def test_against_finite_differences(kind, front):
    model, rows, step = model_of(TASKS[kind], **FRONTS[front]), dense_rows(), 1e-6
    for chosen, name in enumerate(model.task.classes or [None]):
        found = contributions(model, rows, name).toarray()
        expected = np.empty((N, D))
        for column in range(D):
            moved = [rows.values.copy() for _ in range(2)]
            for values, by in zip(moved, (step, -step)):
                values[column::D] += by
            up, down = (output_of(model, dataclasses.replace(rows, values=values), chosen) for values in moved)
            expected[:, column] = (up - down) / (2 * step) * rows.values[column::D]
        # The network that is explained computes in float32.
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_by_default_the_predicted_class_is_explained(kind):
    model, rows = model_of(TASKS[kind]), dense_rows()
    found, predicted = contributions(model, rows), model.task.decide(model.outputs(rows))
    assert len(set(predicted)) > 1
    for row, name in enumerate(predicted):
        by_name = contributions(model, rows.rows(slice(row, row + 1)), name)
        np.testing.assert_allclose(found[[row]].toarray(), by_name.toarray(), rtol=1e-4, atol=1e-6)


def test_unknown_class():
    with pytest.raises(InputError, match="there is no class 'maybe'; there are no, yes"):
        contributions(model_of(TASKS["binary"]), dense_rows(), "maybe")
    with pytest.raises(InputError, match="a regression has no classes"):
        contributions(model_of(TASKS["regression"]), dense_rows(), "yes")


def test_no_rows():
    found = contributions(model_of(TASKS["binary"]), dense_rows().rows(slice(0, 0)))
    assert found.shape == (0, D)
    assert [len(x) for x in top_columns(found, 5)] == [0, 0]


@pytest.mark.parametrize("settings", [{}, {"learn": False, "scheme": "gaussian"}])
def test_planted_columns_come_out_on_top(settings):
    rng = np.random.default_rng(7)
    X = sparse.random_array((600, 300), density=0.02, format="csr", rng=rng).toarray()
    labels = rng.integers(0, 2, 600)
    X[:, 42], X[:, 123] = labels, 1 - labels
    X = sparse.csr_array(X.astype(np.float32))
    rows, task = CsrBatch(X.indptr, X.indices, X.data, 300), Task.of_labels(labels)
    small = {"n_components": 32, "hidden": (16,), "epochs": 10, "batch_size": 32, "rate": 0.01}
    model = build_model(task, rows, {**small, **settings}, seed=0)
    train(model, Examples(rows, task.encode(labels)), None)
    columns, importance = top_columns(contributions(model, rows), 2)
    assert set(columns) == {42, 123}
    assert importance[0] >= importance[1] > 0
    signed = contributions(model, rows, 1).toarray()
    assert (signed[labels == 1, 42] > 0).mean() > 0.95
    assert (signed[labels == 0, 123] < 0).mean() > 0.95


# -- names


@pytest.mark.parametrize(
    "law",
    [
        {"analyzer": "char", "ngram_range": [1, 3]},
        {"analyzer": "char", "ngram_range": [2, 3], "lowercase": True},
        {"analyzer": "word", "ngram_range": [1, 2], "lowercase": True, "norm": "l2"},
        {"analyzer": "byte", "ngram_range": [1, 2], "counts": False},
    ],
)
def test_every_column_of_a_string_has_its_ngram(law):
    law = {"n_columns": 2**40, "seed": 3, **law}
    hasher, strings = NgramHasher(**law), ["Überall  gut", "zu Hause und überall", ""]
    columns = np.unique(hasher.batch(strings).indices)
    for column, name in zip(columns, column_names(columns, {"hasher": law}, strings=strings)):
        if law["analyzer"] != "byte":  # there, half a character is shown in another way
            assert hasher.column_of(name[1:-1]) == column
        assert name.startswith("'")


def test_ngrams_that_share_a_column_are_all_named():
    law = {"analyzer": "char", "ngram_range": [1, 1], "n_columns": 1}
    assert column_names(np.array([0]), {"hasher": law}, strings=["ab"]) == ["'a' or 'b'"]
    assert column_names(np.array([0]), {"hasher": law}, strings=["abcde"]) == ["'a' or 'b' or 'c' ..."]
    assert column_names(np.array([0]), {"hasher": law}) == ["0"]


def test_numbers_begin_at_the_base():
    assert column_names(np.array([0, 7]), {"base": 1}, base=1) == ["1", "8"]
