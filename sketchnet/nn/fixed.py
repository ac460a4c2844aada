"""A projection that does not learn."""

from __future__ import annotations

import torch
from torch import nn

from sketchnet.data.csr import CsrBatch, to_csr
from sketchnet.kernels import backend
from sketchnet.kernels.registry import gpu_missing
from sketchnet.nn.numbering import Numbered, number_type, uncompiled
from sketchnet.projection import make_scheme


class FixedProjection(nn.Module):
    """x P for a random P of any scheme, drawn from a seed and never stored: d columns in, k out.

    forward(batch) takes a `CsrBatch`, or a sparse or dense matrix of scipy, NumPy or torch, and gives a tensor on the
    processor: float32, or float64 after `.double()`, whatever the rows are in.
    """

    _like: torch.Tensor

    def __init__(self, d: int, k: int, scheme: str = "count_sketch", *, seed: int = 0, **options):
        super().__init__()
        self.operator = make_scheme(scheme, k, **options).sample(d, seed)
        # Without weights, something else has to be there that `.double()` changes. It is no part of a saved network.
        self.register_buffer("_like", torch.empty(0, device="cpu"), persistent=False)

    @uncompiled
    def forward(self, batch: CsrBatch | Numbered, values: torch.Tensor | None = None) -> torch.Tensor:
        """`values`, where given, are the batch's entries once more, as the tensor that wants their gradient."""
        if isinstance(batch, Numbered):
            rows, dtype = batch.batch, batch.batch.values.dtype
        else:
            rows, dtype = batch, number_type(self._like)
        if values is not None:
            return _Project.apply(values, to_csr(rows), self.operator, dtype)
        return torch.from_numpy(self.operator.apply(rows, dtype=dtype))

    def near(self, batch: CsrBatch, device: torch.device) -> torch.Tensor:
        """The same, to rounding and always float32, computed on a CUDA device if there are kernels for it; elsewhere,
        as `forward` gives it.
        """
        if device.type != "cuda" or gpu_missing(device.index) is not None:
            return self(batch)
        from sketchnet.projection.on_device import project_on_device  # here, because the processor does not need it

        return project_on_device(self.operator, batch, device=device)

    def extra_repr(self) -> str:
        return repr(self.operator)


class _Project(torch.autograd.Function):
    """The product as a function of the entries' values, to attribute outputs to them."""

    @staticmethod
    def forward(ctx, values, rows, operator, dtype):
        ctx.rows, ctx.operator = rows, operator
        return torch.from_numpy(operator.apply(rows, dtype=dtype))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        indptr, indices, _ = ctx.rows.arrays
        columns, local = backend().number_columns(indices)
        result = torch.empty(len(indices), dtype=gradient.dtype)
        for row in range(len(indptr) - 1):  # P's rows for one data row at a time: memory stays bounded
            span = slice(int(indptr[row] - indptr[0]), int(indptr[row + 1] - indptr[0]))
            entries = ctx.operator.block(columns[local[span]])
            result[span] = torch.from_numpy(entries).to(gradient.dtype) @ gradient[row]
        return result, None, None, None
