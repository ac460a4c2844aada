"""What `sketchnet train` lets a network learn: labels, or codes of its rows. Both have the same methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse

from sketchnet.cli.model_rows import names_of_classes, without_labels
from sketchnet.data.batches import iterate_batches
from sketchnet.data.csr import CsrBatch
from sketchnet.data.shard_set import ShardSet
from sketchnet.errors import InputError
from sketchnet.evaluation.metrics import measure
from sketchnet.pretraining.autoencoder import Unsupervised, build_autoencoder
from sketchnet.pretraining.course import Pretrained
from sketchnet.training.course import Supervised
from sketchnet.training.defaults import build_model, describe, describe_device, make_configs
from sketchnet.training.examples import Examples
from sketchnet.training.model import Model
from sketchnet.training.task import Task


class Labels:
    """Classes, or with `regression` numbers."""

    next_verb = "predict"

    def __init__(self, settings: dict, seed: int, regression: bool):
        self._settings, self._seed, self._regression = settings, seed, regression
        self.first: dict = {}  # by which the training rows are read: nothing is known of them
        self._task: Any = None  # until the training rows are known, as their names of classes
        self._names: Any = None
        make_configs(Task("binary", (0, 1)), 1, 1, settings, seed)  # what is wrong should not wait for the data

    def others(self, description: dict) -> dict:
        """By which rows are read that must fit those with this description."""
        return description

    @property
    def task(self) -> Task:
        return self._task

    def examples(self, data: ShardSet) -> Examples:
        """Of the training rows, then of others with their classes."""
        names, labels = names_of_classes(data.descriptions[0]), data.labels
        if self._task is None:
            self._task, self._names = _task_of(data, self._regression), names
        theirs, ours = _labels_a_row(labels), "several" if self._task.kind == "multilabel" else "one"
        if theirs != ours:
            raise InputError(f"rows beside the training rows have {theirs} labels, those {ours} a row")
        # Either may go on: classes that the rows beside lack, or that the task then says it does not know.
        if bool(names) != bool(self._names) or any(a != b for a, b in zip(names, self._names)):
            theirs, ours = (", ".join(some[:10]) or "numbers" for some in (names, self._names))
            way_out = "ingest them --like the training rows"
            raise InputError(f"rows beside the training rows have the classes {theirs}; those have {ours}; {way_out}")
        return Examples(data, self._task.encode(labels))

    def build(self, data, description: dict) -> Model:
        model = build_model(self._task, data, self._settings, self._seed)
        model.data = dict(description)
        return model

    def course(self, model: Model):
        return Pretrained() if model.training.pretrain else Supervised()

    def describe(self, model: Model, n_rows: int, threads: int | None) -> str:
        pretraining = f"; {model.training.pretrain} epochs of pretraining" if model.training.pretrain else ""
        return describe(model, n_rows, threads) + pretraining

    def error(self, record: dict) -> str:
        """What an epoch's record says of the validation rows."""
        scale, unit = (1, "squared error") if self._regression else (100, "% error")
        return f"validation {scale * record['valid_error']:.4g} {unit}"

    def measure(self, model: Model, rows: ShardSet) -> dict:
        return measure(model.task, model.outputs(rows), model.task.encode(rows.labels))


class Codes:
    """Of an autoencoder. Labels may be there or not."""

    next_verb = "encode"
    task = Task("autoencoder")

    def __init__(self, settings: dict, seed: int):
        self._settings, self._seed = settings, seed
        self.first = {"labels": "multi"}  # svmlight: any number of labels, or none
        empty = CsrBatch(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), 1)
        with torch.device("meta"):  # shapes without memory
            build_autoencoder(empty, settings, seed)

    def others(self, description: dict) -> dict:
        return without_labels(description)

    def examples(self, data: ShardSet) -> Examples:
        return Examples(data, np.zeros(data.n_rows))

    def build(self, data, description: dict) -> Model:
        model = build_autoencoder(data, self._settings, self._seed)
        model.data = {key: value for key, value in description.items() if key not in ("labels", "classes")}
        return model

    def course(self, model: Model):
        return Unsupervised()

    def describe(self, model: Model, n_rows: int, threads: int | None) -> str:
        network, training = model.network.config, model.training
        there = [network.n_visible, *network.hidden, network.n_codes]
        front = f"{network.scheme} to {network.n_components} (fixed), " if network.scheme else ""
        pretraining = f"{training.pretrain} epochs of pretraining, then " if training.pretrain else ""
        return "; ".join(
            (
                f"{n_rows:,} rows x {network.n_columns:,} columns of {network.visible} values",
                f"autoencoder, {front}{'-'.join(map(str, there + there[-2::-1]))}, {network.units} units",
                f"{'binary' if network.binary_codes else 'real'} codes",
                f"{training.optimiser} with rate {training.rate:g}, l2 {training.l2:g}",
                f"{pretraining}{training.epochs} epochs in batches of {training.batch_size}",
                describe_device(model, threads),
            )
        )

    def error(self, record: dict) -> str:
        return f"validation loss {record['valid_loss']:.4f}"

    def measure(self, model: Model, rows: ShardSet) -> dict:
        """What is lost of rows on the way to their codes and back."""
        network, total = model.network, 0.0
        network.eval()
        with torch.no_grad():
            for batch in iterate_batches(rows, network.at_once, shuffle=False):
                total += float(network.losses(network.visible(batch)).double().sum())
        return {"loss": total / rows.n_rows}


def _labels_a_row(labels) -> str:
    return "no" if labels is None else "several" if sparse.issparse(labels) else "one"


def _task_of(data: ShardSet, regression: bool) -> Task:
    """What the labels of a data set call for. Named classes keep their names."""
    labels: Any = data.labels
    if labels is None or (sparse.issparse(labels) and labels.nnz == 0):
        is_npz = (data.descriptions[0].get("job") or {}).get("source") == "NpzSource"
        no_place = "a .npz has no place for them, svmlight has (sketchnet.data.write_svmlight)"
        where = no_place if is_npz else "say where they are (--label, --label-column)"
        raise InputError(f"the rows have no labels to learn; {where}")
    names = data.descriptions[0].get("classes")
    if regression and (names or sparse.issparse(labels)):
        raise InputError("--regression needs one number a row as label")
    if not (regression or names or sparse.issparse(labels)) and not np.array_equal(labels, np.floor(labels)):
        example = float(labels[(labels != np.floor(labels)).argmax()])
        raise InputError(f"labels such as {example:g} are numbers, not classes; learn them with --regression")
    return Task.of_labels(labels, regression)
