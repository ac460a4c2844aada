"""Products of a CSR matrix with a projection matrix that is drawn in panels, in sparse rows, or hashed on the fly.

CSR arrays may be a slice of a larger matrix: offsets count from indptr[0]. Each output row is computed by one thread
from its non-zeros in stored order, so results do not depend on slicing or on the number of threads.
"""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import kernel
from sketchnet.kernels.cpu.draw import bucket_of, hash64, sign_bit_of
from sketchnet.kernels.cpu.threads import over_range, over_rows

_u64 = np.uint64
_PIECE = 4096


@kernel
def _panel(indptr, indices, values, panel, scale, out, first, width, start, stop):
    number = out.dtype.type
    for r in range(start, stop):
        row = out[r, first : first + width]
        for j in range(width):
            row[j] = 0
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            value = number(values[t])
            entries = panel[indices[t]]
            for j in range(width):
                row[j] += value * number(entries[j])
        for j in range(width):
            row[j] *= number(scale)


@kernel
def _sparse(indptr, indices, values, p_indptr, p_codes, scale, out, start, stop):
    number = out.dtype.type
    for r in range(start, stop):
        row = out[r]
        for j in range(out.shape[1]):
            row[j] = 0
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            value = number(values[t]) * number(scale)
            for q in range(p_indptr[indices[t]], p_indptr[indices[t] + 1]):
                code = p_codes[q]
                row[code if code >= 0 else ~code] += value if code >= 0 else -value


@kernel
def _count_sketch(indptr, indices, values, multiplier, offset, out, start, stop):
    number = out.dtype.type
    k = _u64(out.shape[1])
    for r in range(start, stop):
        row = out[r]
        for j in range(out.shape[1]):
            row[j] = 0
        for t in range(indptr[r] - indptr[0], indptr[r + 1] - indptr[0]):
            h = hash64(_u64(indices[t]), multiplier, offset)
            value = number(values[t])
            row[np.int64(bucket_of(h, k))] += -value if sign_bit_of(h) == _u64(1) else value


@kernel
def _first_bad_id(ids, last, start, stop):
    for low in range(start, stop, _PIECE):  # whole pieces without an early exit, so that the loop vectorises
        bad = False
        for t in range(low, min(stop, low + _PIECE)):
            bad |= (ids[t] < 0) | (ids[t] > last)
        if bad:
            for t in range(low, stop):
                if ids[t] < 0 or ids[t] > last:
                    return t
    return -1


@kernel
def _first_non_finite(values, start, stop):
    for low in range(start, stop, _PIECE):
        bad = False
        for t in range(low, min(stop, low + _PIECE)):
            bad |= not np.isfinite(values[t])
        if bad:
            for t in range(low, stop):
                if not np.isfinite(values[t]):
                    return t
    return -1


@kernel
def _mark(indices, present):
    for t in range(indices.shape[0]):
        present[indices[t]] = 1


@kernel
def _number(present, local, columns):
    n = 0
    for i in range(present.shape[0]):
        if present[i]:
            local[i] = n
            columns[n] = i
            n += 1


def multiply_panel(indptr, indices, values, panel, scale: float, out, columns: slice) -> None:
    """out[:, columns] = scale * (csr @ panel), of which the panel's first columns count."""
    first, width = columns.start, columns.stop - columns.start
    over_rows(
        lambda a, b: _panel(indptr, indices, values, panel, scale, out, first, width, a, b), indptr, width // 8 + 1
    )


def multiply_sparse(indptr, indices, values, p_indptr, p_codes, scale: float, out) -> None:
    """out = scale * (csr @ P), P given by its sparse rows of signs."""
    over_rows(
        lambda a, b: _sparse(indptr, indices, values, p_indptr, p_codes, scale, out, a, b),
        indptr,
        8 + len(p_codes) // len(p_indptr),
    )


def count_sketch(indptr, indices, values, key, out) -> None:
    """out = csr @ P for Count Sketch's P, hashed on the fly."""
    over_rows(lambda a, b: _count_sketch(indptr, indices, values, *key, out, a, b), indptr, 8)


def first_bad_id(ids: np.ndarray, limit: int) -> int:
    """Position of the first id outside [0, limit); -1 if there is none."""
    return _first(over_range(lambda a, b: _first_bad_id(ids, np.int64(limit - 1), a, b), len(ids), len(ids)))


def first_non_finite(values: np.ndarray) -> int:
    """Position of the first NaN or infinity in a line of floats; -1 if there is none."""
    return _first(over_range(lambda a, b: _first_non_finite(values, a, b), len(values), len(values)))


def _first(found: list[int]) -> int:
    return next((t for t in found if t >= 0), -1)


def compact_columns(indices, d: int):
    """(columns, local): the distinct column ids in ascending order, and each entry's position among them."""
    if d > 4 * len(indices):  # a table over all columns would cost more than sorting
        columns, local = np.unique(indices, return_inverse=True)
        return columns, local
    present = np.zeros(d, np.uint8)
    _mark(indices, present)
    columns = np.empty(np.count_nonzero(present), np.int64)
    table = np.empty(d, np.int32 if len(columns) < 2**31 else np.int64)
    _number(present, table, columns)
    return columns, table[indices]
