"""The wide path: a linear model beside the network."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from sketchnet.data.csr import CsrBatch
from sketchnet.kernels import backend
from sketchnet.nn.numbering import Numbered, number, uncompiled
from sketchnet.nn.table import TableLayer, check_table, new_table, sparse_gradient


class Wide(TableLayer):
    """x W with one weight for each column and output, all zero at first; gradients touch only the batch's columns.

    forward(batch) takes rows of any kind and gives float32, or float64 after `.double()`.
    """

    def __init__(self, d: int, n_outputs: int):
        super().__init__()
        check_table(d, n_outputs)
        self.weight = nn.Parameter(new_table(d, n_outputs))

    @uncompiled
    def forward(self, batch: CsrBatch | Numbered, values: torch.Tensor | None = None) -> torch.Tensor:
        """`values`, where given, are the batch's entries once more, as the tensor that wants their gradient."""
        numbered = number(batch, len(self.weight), self.weight)
        return _Product.apply(self.weight, values, self.read(numbered.columns), numbered)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, values, weights, numbered):
        batch = numbered.batch
        out = np.empty((batch.n_rows, weight.shape[1]), batch.values.dtype)
        backend().wide_forward(batch.indptr, numbered.local, batch.values, weights, out)
        ctx.weight, ctx.kept = weight, (weights, numbered)
        return torch.from_numpy(out)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        (weights, numbered), gradient = ctx.kept, gradient.contiguous().numpy()
        batch, by_weight, by_value = numbered.batch, None, None
        if ctx.needs_input_grad[0]:
            columns = numbered.columns
            found = backend().wide_backward(batch.indptr, numbered.local, batch.values, len(columns), gradient)
            by_weight = sparse_gradient(ctx.weight, columns, found.astype(weights.dtype, copy=False))
        if ctx.needs_input_grad[1]:
            by_value = torch.from_numpy(backend().wide_values(batch.indptr, numbered.local, weights, gradient))
        return by_weight, by_value, None, None
