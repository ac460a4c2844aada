"""The distinct columns of a batch, numbered once for all layers that read it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
import torch

from sketchnet.data.csr import CsrBatch, as_csr, as_ids, converted, real_values
from sketchnet.errors import InputError
from sketchnet.kernels import backend


@dataclass(frozen=True)
class Numbered:
    """A batch, its distinct column ids, and each entry's position among them. Layers give the type of its values."""

    batch: CsrBatch
    columns: Any  # arrays, or None where nobody asks for numbers
    local: Any


def number(batch, n_columns: int, weight: torch.Tensor) -> Numbered:
    """Check rows, bring them to the type of a layer's weights, and number their columns; rows that were numbered before
    are passed on, in whatever type they were wanted.
    """
    if isinstance(batch, Numbered):
        return batch
    batch = converted(as_csr(batch, n_columns), number_type(weight))
    return Numbered(batch, *backend().number_columns(batch.indices))


def number_type(weight: torch.Tensor) -> np.dtype:
    """In which a layer with such weights computes: float32 by default, float64 after `.double()`."""
    if weight.dtype not in (torch.float32, torch.float64):
        way_out = "use torch.autocast, or cast the layers behind it"
        raise InputError(f"weights of columns are of {weight.dtype}; allowed are float32 and float64: {way_out}")
    return np.dtype(np.float64 if weight.dtype == torch.float64 else np.float32)


def add_rows(dense: torch.Tensor, batch: CsrBatch) -> torch.Tensor:
    """Return the tensor with the batch's entries added to it, in place."""
    owners = np.repeat(np.arange(batch.n_rows), np.diff(batch.indptr))
    places = torch.from_numpy(owners * dense.shape[1] + batch.indices[: len(owners)]).to(dense.device)
    values = torch.from_numpy(batch.values[: len(owners)].astype(np.float64))  # torch does not know all integers
    dense.view(-1).index_add_(0, places, values.to(dense))
    return dense


def drop_entries(batch: CsrBatch, rate: float, key) -> CsrBatch:
    """Return the batch without about that share of its entries; the others are scaled up to make up for them."""
    arrays = batch.indptr, as_ids(batch.indices), real_values(batch.values)
    indptr, indices, values = backend().drop_entries(*arrays, rate, key)
    return CsrBatch(indptr, indices, values, batch.n_columns)


def uncompiled(method: Callable) -> Callable:
    """A method that torch.compile leaves as it is: sparse rows are NumPy's, and kernels numba's.

    That is torch.compiler.disable, but asked for when the compiler is there: to import it takes a second.
    """
    left_alone = None

    @wraps(method)
    def run(*args, **kwargs):
        nonlocal left_alone
        if "torch._dynamo" not in sys.modules:
            return method(*args, **kwargs)
        if left_alone is None:
            left_alone = torch.compiler.disable(method)
        return left_alone(*args, **kwargs)

    return run
