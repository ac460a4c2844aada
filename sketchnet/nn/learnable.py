"""A projection that learns: the weights that a sparse scheme makes non-zero, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn

from sketchnet.checks import check_real
from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.kernels import backend
from sketchnet.nn.numbering import Numbered, number, uncompiled
from sketchnet.nn.table import TableLayer, check_table, is_meta, new_table, sparse_gradient
from sketchnet.projection import make_scheme
from sketchnet.projection.sparse import SparseOperator

_STEP = 1 << 20


class LearnableProjection(TableLayer):
    """x W + bias, where W (d x k) begins as a draw of "count_sketch" or "li" and only its non-zeros exist and learn.

    `weight` holds those non-zeros, column by column of the data: one a column for Count Sketch, k/s on average for Li.
    forward(batch) takes a `CsrBatch`, or a sparse or dense matrix of scipy, NumPy or torch, and gives float32, or
    float64 after `.double()`; its cost, and that of the backward pass, follows the batch's non-zeros. The weight's
    gradient is sparse, as torch.optim.SGD and SparseAdam take it; sketchnet's own optimisers do the same in fewer
    steps. `eta` is the probability with which the training loop lets a batch update the layer.
    """

    def __init__(self, d: int, k: int, scheme: str = "count_sketch", *, seed: int = 0, eta: float = 1.0, **options):
        super().__init__()
        operator = make_scheme(scheme, k, **options).sample(d, seed)
        if not isinstance(operator, SparseOperator):
            raise InputError(f"scheme {scheme!r} cannot be learnt; only count_sketch and li can")
        check_table(d, max(1.0, operator.per_entry))
        self.operator: Any = operator  # of Count Sketch it has codes too
        self.eta = check_real("eta", eta, most=1.0)
        n_weights = d
        if scheme != "count_sketch":  # for shapes alone, nobody wants to go through all columns
            n_weights = 0 if is_meta() else int(self._offsets[-1])
        self.weight = nn.Parameter(new_table(n_weights))
        self.bias = nn.Parameter(torch.zeros(k))
        if not is_meta():  # where weights will come from a file
            self.reset_parameters()

    @cached_property
    def _offsets(self) -> np.ndarray:
        """Column c has the weights from offsets[c] to offsets[c + 1], in a scheme where their number varies."""
        counts = [np.diff(self.operator.pattern(ids)[0]) for ids in _pieces(self.operator.d)]
        return np.concatenate([[0], np.cumsum(np.concatenate(counts))])

    def reset_parameters(self) -> None:
        """Weights as the scheme draws them, biases zero."""
        weights, done = self.weight.detach().numpy(), 0
        for ids in _pieces(self.operator.d):
            codes = self.operator.pattern(ids)[1]
            weights[done : done + len(codes)] = np.where(codes < 0, -self.operator.scale, self.operator.scale)
            done += len(codes)
        nn.init.zeros_(self.bias)

    @uncompiled
    def forward(self, batch: CsrBatch | Numbered, values: torch.Tensor | None = None) -> torch.Tensor:
        """`values`, where given, are the batch's entries once more, as the tensor that wants their gradient."""
        numbered = number(batch, self.operator.d, self.weight)
        columns = slots = numbered.columns
        if self.one_each:
            starts, codes = None, self.operator.codes(columns)
        else:
            starts, codes = self.operator.pattern(columns)
            slots = np.arange(len(codes)) + np.repeat(self._offsets[columns] - starts[:-1], np.diff(starts))
        weights = self.read(slots).reshape(-1)
        return _Scatter.apply(self.weight, self.bias, values, weights, numbered, (starts, codes), slots)

    @property
    def one_each(self) -> bool:
        """Whether every column has one weight, with the column's number."""
        return self.operator.scheme.name == "count_sketch"

    def outputs(self) -> np.ndarray:
        """To which output each weight leads."""
        codes = np.concatenate([self.operator.pattern(ids)[1] for ids in _pieces(self.operator.d)])
        return np.where(codes < 0, ~codes, codes).astype(np.int32)

    def spread(self, batch: CsrBatch) -> CsrBatch:
        """Each entry of the batch once for every weight that it meets, with the weight's number for an id."""
        if self.one_each:
            return batch
        first = self._offsets[batch.indices]
        counts = self._offsets[1:][batch.indices] - first
        ends = np.concatenate([[0], np.cumsum(counts)])
        ids = np.arange(ends[-1]) + np.repeat(first - ends[:-1], counts)
        offsets = ends[batch.indptr - batch.indptr[0]]
        return CsrBatch(offsets, ids, np.repeat(batch.values, counts), len(self.weight))

    def extra_repr(self) -> str:
        return f"{self.operator!r}, eta={self.eta}, weights={len(self.weight):,}"


def _pieces(d: int) -> Iterator[np.ndarray]:
    """All columns, not too many at a time."""
    for start in range(0, d, _STEP):
        yield np.arange(start, min(d, start + _STEP))


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, bias, values, weights, numbered, pattern, slots):
        batch = numbered.batch
        out = np.empty((batch.n_rows, len(bias)), batch.values.dtype)
        backend().scatter_forward(
            batch.indptr, numbered.local, batch.values, *pattern, weights, bias.detach().numpy(), out
        )
        ctx.weight, ctx.kept = weight, (weights, numbered, pattern, slots)
        return torch.from_numpy(out)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        weights, numbered, pattern, slots = ctx.kept
        batch, gradient = numbered.batch, gradient.contiguous().numpy()
        by_weight = by_bias = by_value = None
        if ctx.needs_input_grad[1]:  # by NumPy: torch would wake its threads for so little
            by_bias = torch.from_numpy(gradient.sum(axis=0).astype(weights.dtype, copy=False))
        if ctx.needs_input_grad[0]:
            found = backend().scatter_backward(batch.indptr, numbered.local, batch.values, *pattern, gradient)
            by_weight = sparse_gradient(ctx.weight, slots, found.astype(weights.dtype, copy=False))
        if ctx.needs_input_grad[2]:
            by_value = backend().scatter_values(batch.indptr, numbered.local, *pattern, weights, gradient)
            by_value = torch.from_numpy(by_value)
        return by_weight, by_bias, by_value, None, None, None, None
