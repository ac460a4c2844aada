"""The dissertation's network, a learnt projection and hidden layers, as one expert of several.

Alone, with all its settings, it is `sketchnet.training`; here it is small, because others stand beside it.
"""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import torch

from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.experts.expert import Expert
from sketchnet.experts.rows import Sample
from sketchnet.nn import NetworkConfig, SketchNetwork
from sketchnet.training.config import TrainingConfig
from sketchnet.training.defaults import build_model
from sketchnet.training.examples import Examples
from sketchnet.training.loop import train
from sketchnet.training.model import Model
from sketchnet.training.task import Task

_ALONE = threading.Lock()  # networks draw from torch's generator, which all threads share
_SETTINGS = {"n_components": 128, "hidden": (64,)}


class SketchExpert(Expert):
    """A learnt Count Sketch of the rows, batch norm and one hidden layer."""

    name = "sketch"

    def __init__(self, kind: str, n_outputs: int, seed: int = 0, effort: str = "auto"):
        super().__init__(kind, n_outputs, seed, effort)
        classes = () if kind == "regression" else tuple(range(2 if kind == "binary" else n_outputs))
        self._task = Task(kind, classes)
        self._model: Model | None = None

    @classmethod
    def applies(cls, sample: Sample, kind: str, n_outputs: int) -> bool:
        return False  # what it learns, the others learn in less time: it is there for those who name it

    def fit(self, train: Sample, valid: Sample) -> np.ndarray:
        model = self._learn(train, valid, {})
        self.chosen = {
            "epochs": float(next(record["best_epoch"] for record in model.history if "best_epoch" in record))
        }
        return self.logits(valid.rows)

    def refit(self, sample: Sample) -> None:
        epochs = {"epochs": max(1, round(self.chosen["epochs"]))} if self.chosen else {}
        self._learn(sample, None, epochs)

    def _learn(self, sample: Sample, valid: Sample | None, settings: dict) -> Model:
        with _ALONE, torch.random.fork_rng(devices=[]):
            return self._train(sample, valid, settings)

    def _train(self, sample: Sample, valid: Sample | None, settings: dict) -> Model:
        model = build_model(self._task, sample.rows, {**_SETTINGS, **settings}, self.seed)
        beside = None if valid is None else _examples(valid)
        train(model, _examples(sample), beside)
        self._model = model
        return model

    @property
    def n_columns(self) -> int:
        return self._fitted().n_columns

    def logits(self, rows: CsrBatch) -> np.ndarray:
        return self._fitted().outputs(_plain(rows))

    def contributions(self, rows: CsrBatch, outputs: np.ndarray) -> np.ndarray:
        return self._fitted().contributions(_plain(rows), outputs)

    def state(self) -> tuple[dict[str, np.ndarray], dict]:
        model = self._fitted()
        arrays = {name: tensor.numpy() for name, tensor in model.tensors().items()}
        return arrays, {"network": model.network.config.to_dict(), "training": model.training.to_dict()}

    def restore(self, arrays: dict[str, np.ndarray], settings: dict) -> None:
        config = NetworkConfig(**settings["network"])
        if config.n_outputs != self.n_outputs:
            raise InputError(f"the network has {config.n_outputs} outputs; the task has {self.n_outputs}")
        network = SketchNetwork(config)
        like = network.state_dict()
        for name, tensor in like.items():
            array = arrays.get(name)
            if array is None or tuple(tensor.shape) != array.shape or torch.from_numpy(array).dtype != tensor.dtype:
                raise InputError(f"the network's {name} does not fit its settings")
        network.load_state_dict({name: torch.from_numpy(arrays[name].copy()) for name in like})
        network.eval()
        self._model = Model(network, self._task, TrainingConfig(**settings["training"]))

    def _fitted(self) -> Model:
        if self._model is None:
            raise InputError("the network has not been trained")
        return self._model


def _plain(rows: CsrBatch) -> CsrBatch:
    """Return the rows with column numbers of the type that networks take."""
    return replace(rows, indices=rows.indices.astype(np.int64))


def _examples(sample: Sample) -> Examples:
    return Examples(_plain(sample.rows), sample.targets, sample.weights)
