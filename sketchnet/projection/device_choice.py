"""Whether to project on the processor or on a GPU. Apart from `on_device`, because asking must not load torch."""

from __future__ import annotations

import numpy as np

from sketchnet.checks import check_device
from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.kernels.registry import cuda_device, gpu_missing

WIDEST = 2**31 - 2**16  # columns of a result on a GPU: kernels number them by 32 bits, and round up
_WORTHWHILE = 2**28  # products from which on "auto" takes a GPU: getting it to work takes seconds


def gpu_for(
    device: str | None, X, k: int, dtype, sparse_output: bool = False, per_entry: float | None = None
) -> str | None:
    """The CUDA device to project X on, None for the processor; an error if one is asked for and not possible. X is an
    array, a CsrBatch, or a list of either.

    "auto" takes a GPU for sparse X with dense float32 results, if there is enough to do: `per_entry` products for each
    non-zero, k unless given, and the results to write, of which eight take as long as a product.
    """
    if device is None:
        return None
    device = check_device(device)
    suits = np.dtype(dtype) == np.float32 and not sparse_output and k <= WIDEST
    if device == "auto":
        parts, each = X if isinstance(X, list) else [X], k if per_entry is None else per_entry
        suits = suits and all(isinstance(part, CsrBatch) for part in parts)
        if not suits or sum(part.n_entries * each + part.n_rows * k / 8 for part in parts) < _WORTHWHILE:
            return None
    elif device != "cpu" and not suits:
        raise InputError(f"device {device!r} gives dense float32 results of up to {WIDEST} columns; use the cpu")
    return cuda_device(device, gpu_missing)
