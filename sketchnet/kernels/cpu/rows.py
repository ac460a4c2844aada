"""Moving rows of a CSR matrix."""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import kernel
from sketchnet.kernels.cpu.threads import over_rows


@kernel
def _gather(indptr, indices, values, rows, new_indptr, new_indices, new_values, start, stop):
    for r in range(start, stop):
        source = indptr[rows[r]] - indptr[0]
        target = new_indptr[r]
        for t in range(new_indptr[r + 1] - target):
            new_indices[target + t] = indices[source + t]
            new_values[target + t] = values[source + t]


def gather_rows(indptr, indices, values, rows):
    """CSR arrays of the given rows, in the given order."""
    new_indptr = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(indptr[rows + 1] - indptr[rows], out=new_indptr[1:])
    new_indices, new_values = np.empty(new_indptr[-1], indices.dtype), np.empty(new_indptr[-1], values.dtype)
    over_rows(
        lambda a, b: _gather(indptr, indices, values, rows, new_indptr, new_indices, new_values, a, b), new_indptr
    )
    return new_indptr, new_indices, new_values
