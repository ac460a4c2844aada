"""Data with a rule that no linear model can learn, and networks small enough to learn it in a second."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch
from scipy import sparse

from sketchnet.data import CsrBatch
from sketchnet.nn import NetworkConfig, SketchNetwork
from sketchnet.training import Model, Task, TrainingConfig
from sketchnet.training.loop import Examples, train

D = 10_000
every_optimiser = pytest.mark.parametrize("optimiser", ["adamw", "sgd"])
RATES = {"adamw": {"rate": 5e-3}, "sgd": {"rate": 0.1, "sparse_rate": 1.0}}
# All that is drawn anew in every step, and all that is learnt from the data before the first.
EVERYTHING = {"scale_input": "max_abs", "dropout": 0.2, "feature_dropout": 0.2, "eta": 0.5}
_WEIGHTS = np.random.default_rng(99).choice([-1.0, 1.0], 60)


@dataclass(frozen=True)
class Toy:
    """Each row has one of the first six columns and one of the next six; whether their parities differ is `differ`.

    Four of the next sixty columns add up to `linear`, by hidden weights; four of all the others say nothing.
    """

    rows: CsrBatch
    differ: np.ndarray
    first: np.ndarray
    linear: np.ndarray

    def labels(self, kind):
        if kind == "binary":  # the rule of parities, but where the linear rule is as strong as it can be
            return np.where(2 * self.differ - 1 + 0.4 * self.linear > 0, "yes", "no")
        if kind == "multiclass":
            return 2 * self.differ + (self.linear > 0)
        if kind == "multilabel":
            return sparse.csr_array(np.stack([self.differ, self.linear > 0, self.first], axis=1).astype(np.float32))
        return 10 + 5 * self.differ + self.linear


@cache
def toy(n, seed=0):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 6, n), rng.integers(6, 12, n)
    chosen = rng.integers(0, 60, (n, 4))
    ids = np.column_stack([rng.integers(72, D, (n, 4)), first, 12 + chosen, second])
    values = np.tile(np.array([1, 1, 1, 1, 2, 1, 1, 1, 1, 2], np.float32), n)
    rows = CsrBatch(np.arange(n + 1) * 10, ids.ravel(), values, D)
    return Toy(rows, (first + second) % 2, first % 2, _WEIGHTS[chosen].sum(axis=1))


def examples(kind, n, seed=0, task=None):
    data = toy(n, seed)
    task = task or Task.of_labels(data.labels(kind), regression=kind == "regression")
    return Examples(data.rows, task.encode(data.labels(kind))), task


def make_model(task, training=None, **network):
    settings = {"n_components": 64, "hidden": (32,), "seed": 1, **network}
    config = NetworkConfig(n_columns=D, n_outputs=task.n_outputs, **settings)
    chosen = {"batch_size": 50, "epochs": 3, "sparse_rate": 0.01, **(training or {})}
    return Model(SketchNetwork(config), task, TrainingConfig(**chosen))


def training(optimiser, **options):
    return {"optimiser": optimiser, **RATES[optimiser], **options}


def trained(kind="binary", n=400, n_valid=200, training=None, network=None, **options):
    """A model trained on n rows, or as far as `options` let it."""
    given, task = examples(kind, n)
    valid = examples(kind, n_valid, seed=1, task=task)[0] if n_valid else None
    model = make_model(task, training, **(network or {}))
    train(model, given, valid, **options)
    return model


def assert_same_network(a, b):
    """To the last bit."""
    ours, theirs = a.network.state_dict(), b.network.state_dict()
    assert list(ours) == list(theirs)
    for name, tensor in ours.items():
        assert tensor.numpy().tobytes() == theirs[name].numpy().tobytes(), name


def without_seconds(history):
    return [{key: value for key, value in record.items() if not key.startswith("seconds")} for record in history]


def moved_in_epochs(model, given, valid=None):
    """Train a model; for each epoch, what it moved of the projection's parameters and the last layer's weights."""
    network, before, moved = model.network, {}, []

    def look(record):
        parts = {**dict(network.projection.named_parameters()), "last": network.layers[-1].weight}
        now = {name: tensor.detach().clone() for name, tensor in parts.items()}
        if "loss" in record:
            moved.append({name for name, tensor in now.items() if not torch.equal(tensor, before[name])})
        before.update(now)

    look({})
    train(model, given, valid, report=look)
    return moved
