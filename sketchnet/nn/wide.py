"""The wide path: a linear model beside the network."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from sketchnet.data.csr import CsrBatch
from sketchnet.kernels import backend
from sketchnet.nn.learnable import check_table, new_table, sparse_gradient
from sketchnet.nn.numbering import Numbered, number


class Wide(nn.Module):
    """x W with one weight for each column and output, all zero at first; gradients touch only the batch's columns."""

    def __init__(self, d: int, n_outputs: int):
        super().__init__()
        check_table(d, n_outputs)
        self.weight = nn.Parameter(new_table(d, n_outputs))
        self.before_read: Callable[[np.ndarray], None] | None = None  # set by optimisers that update late

    def forward(self, batch: CsrBatch | Numbered, values: torch.Tensor | None = None) -> torch.Tensor:
        """`values`, where given, are the batch's entries once more, as the tensor that wants their gradient."""
        numbered = number(batch, len(self.weight))
        if self.before_read is not None:
            self.before_read(numbered.columns)
        return _Product.apply(self.weight, values, numbered)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, values, numbered):
        table, batch = weight.detach().numpy(), numbered.batch
        out = np.empty((batch.n_rows, table.shape[1]), np.float64 if batch.values.dtype == np.float64 else np.float32)
        backend().wide_forward(*batch.arrays, table, out)
        ctx.numbered, ctx.table = numbered, table
        return torch.from_numpy(out)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        numbered, gradient = ctx.numbered, gradient.contiguous().numpy()
        batch, by_weight, by_value = numbered.batch, None, None
        if ctx.needs_input_grad[0]:
            columns = numbered.columns
            found = backend().wide_backward(batch.indptr, numbered.local, batch.values, len(columns), gradient)
            by_weight = sparse_gradient(columns, found.astype(ctx.table.dtype, copy=False), ctx.table.shape)
        if ctx.needs_input_grad[1]:
            by_value = torch.from_numpy(backend().wide_values(batch.indptr, batch.indices, ctx.table, gradient))
        return by_weight, by_value, None
