"""Outputs traced back to the original columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from sketchnet.data.batches import iterate_batches
from sketchnet.data.csr import without_repeats
from sketchnet.errors import InputError
from sketchnet.training.predictor import Predictor
from sketchnet.training.task import Task

_ROWS = 256


def contributions(model: Predictor, rows, output=None) -> sparse.csr_array:
    """Return what every stored entry contributes to an output, where ids that a row repeats are one entry.

    `output` is a class; by default each row's predicted one (for two classes, the evidence for it). Of a network, a
    contribution is the gradient by the value, times the value.
    """
    task = model.task
    chosen = None if output is None else _number(model, output)
    pieces = []
    for batch in iterate_batches(rows, _ROWS, shuffle=False):
        batch = without_repeats(batch)
        numbers, signs = _picked(task, model.outputs(batch), chosen)
        found = model.contributions(batch, numbers) * np.repeat(signs, np.diff(batch.indptr))
        pieces.append(replace(batch, values=found, n_columns=rows.n_columns).scipy())
    shape = (0, rows.n_columns)
    return sparse.csr_array(sparse.vstack(pieces, format="csr")) if pieces else sparse.csr_array(shape, dtype="float32")


def _picked(task: Task, outputs: np.ndarray, chosen: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of the output that each row is explained by, and by what that is to be multiplied."""
    n = len(outputs)
    if task.kind == "regression":  # whose outputs count deviations, of any size
        return np.zeros(n, np.int64), np.full(n, task.deviation)
    if task.kind == "binary":
        second = outputs[:, 0] > 0 if chosen is None else np.full(n, chosen == 1)
        return np.zeros(n, np.int64), np.where(second, np.float32(1), np.float32(-1))
    numbers = outputs.argmax(axis=1) if chosen is None else np.full(n, chosen)
    return numbers.astype(np.int64), np.ones(n, np.float32)


def top_columns(found: sparse.csr_array, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(columns, sizes): the n columns with the largest mean absolute contribution over the rows, and how large."""
    columns, local = np.unique(found.indices, return_inverse=True)
    size = np.bincount(local, np.abs(found.data), len(columns))
    best = np.argsort(-size, kind="stable")[:n]
    return columns[best], size[best] / max(1, found.shape[0])


def _number(model: Predictor, output) -> int:
    if model.task.kind == "regression":
        raise InputError("a regression has no classes to choose from")
    classes = model.classes
    if output not in classes:
        raise InputError(f"there is no class {output!r}; there are {', '.join(map(str, classes[:10]))}")
    return classes.index(output)
