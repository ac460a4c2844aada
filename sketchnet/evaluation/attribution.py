"""Outputs traced back to the original columns: gradient times value, through the projection and the wide path."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from scipy import sparse

from sketchnet.data.batches import iterate_batches
from sketchnet.errors import InputError
from sketchnet.training.model import Model

_ROWS = 256


def contributions(model: Model, rows, output=None) -> sparse.csr_array:
    """For every stored entry, the gradient of an output with respect to its value, times the value.

    `output` is a class; by default each row's predicted one (for two classes, the evidence for it). The sum over a row
    is the output itself where the network is linear around it, less its offset.
    """
    network, task = model.network.eval(), model.task
    chosen = None if output is None else _number(model, output)
    pieces = []
    for batch in iterate_batches(rows, _ROWS, shuffle=False):
        read = network.read(batch)
        values = torch.from_numpy(read.batch.values.copy()).requires_grad_()
        outputs = network(read, values)
        if task.kind == "binary":
            sign = torch.where(outputs[:, 0] > 0, 1.0, -1.0) if chosen is None else torch.tensor(2.0 * chosen - 1)
            picked = outputs[:, 0] * sign
        elif task.kind == "regression":
            picked = outputs[:, 0]
        else:
            numbers = outputs.argmax(dim=1) if chosen is None else torch.full((len(outputs),), chosen)
            picked = outputs.gather(1, numbers[:, None].to(outputs.device))[:, 0]
        (gradient,) = torch.autograd.grad(picked.sum(), values)
        found = gradient.numpy() * read.batch.values
        if task.kind == "regression":  # whose outputs count deviations, of any size
            found = found.astype(np.float64) * task.deviation
        pieces.append(replace(batch, values=found, n_columns=rows.n_columns).scipy())
    shape = (0, rows.n_columns)
    return sparse.csr_array(sparse.vstack(pieces, format="csr")) if pieces else sparse.csr_array(shape, dtype="float32")


def top_columns(found: sparse.csr_array, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(columns, sizes): the n columns with the largest mean absolute contribution over the rows, and how large."""
    columns, local = np.unique(found.indices, return_inverse=True)
    size = np.bincount(local, np.abs(found.data), len(columns))
    best = np.argsort(-size, kind="stable")[:n]
    return columns[best], size[best] / max(1, found.shape[0])


def _number(model: Model, output) -> int:
    if model.task.kind == "regression":
        raise InputError("a regression has no classes to choose from")
    classes = model.classes
    if output not in classes:
        raise InputError(f"there is no class {output!r}; there are {', '.join(map(str, classes[:10]))}")
    return classes.index(output)
