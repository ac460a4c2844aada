"""Rows as dual descent likes them: columns of several rows alone, the frequent ones first."""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import kernel
from sketchnet.kernels.cpu.threads import over_rows

_GROUPS = 256  # of columns, in whose order a row's entries stand: like full order for the caches, and cheaper

_ALONE = np.uint32(2**32 - 1)  # number of a column that is not shared


class SharedColumns:
    """Rows without the columns that only one of them has, lower ids first, values times a scale for each column.

    Of a column that only row i has, the weight is alpha_i * sign_i * x, so all of them add `own`[i] * alpha_i * sign_i
    to the row's margin, where own is the sum of their squares. In texts they are most columns and a fifth of the
    entries, each of which misses the caches. `norms` are the squared norms of the whole rows, and 1 for the bias.
    """

    def __init__(self, indptr, indices, values, n_columns: int, scales: np.ndarray | None = None):
        self._rows, self._scales = (indptr, indices, values), scales
        self._seen = np.zeros(n_columns, np.uint8)  # once, or more often
        _count_columns(indices, self._seen)
        self._shared = np.flatnonzero(self._seen > 1)
        numbers = np.full(n_columns, _ALONE)
        numbers[self._shared] = np.arange(len(self._shared))
        self.n_columns, n = len(self._shared), len(indptr) - 1
        offsets = np.zeros(n + 1, np.int64)
        over_rows(lambda a, b: _count_shared(indptr, indices, self._seen, offsets, a, b), indptr)
        np.cumsum(offsets, out=offsets)
        ids, kept = np.empty(offsets[-1], np.uint32), np.empty(offsets[-1], np.float32)
        self.own, self.norms = np.zeros(n), np.ones(n)
        shift = np.uint32(max(self.n_columns.bit_length() - _GROUPS.bit_length() + 1, 0))
        given, new = (indptr, indices, values, scales, numbers, shift), (offsets, ids, kept)
        over_rows(lambda a, b: _group_shared(*given, *new, self.own, self.norms, a, b), indptr, 8)
        self.arrays = offsets, ids, kept

    def write_weights(self, signs, alpha, weights, out) -> None:
        """Fill `out`, a row for each column of the whole rows and one for the bias."""
        out[:] = 0
        out[self._shared], out[-1] = weights[:-1], weights[-1]
        _write_own(*self._rows, self._scales, self._seen, signs, alpha, out)
        if self._scales is not None:
            out[:-1] *= self._scales[:, None]


@kernel
def _count_columns(indices, seen):
    for t in range(len(indices)):
        seen[indices[t]] = min(seen[indices[t]] + 1, 2)


@kernel
def _count_shared(indptr, indices, seen, lengths, start, stop):
    for i in range(start, stop):
        for t in range(indptr[i], indptr[i + 1]):
            lengths[i + 1] += seen[indices[t]] > 1


@kernel
def _group_shared(indptr, indices, values, scales, numbers, shift, offsets, ids, kept, own, norms, start, stop):
    longest = 0
    for i in range(start, stop):
        longest = max(longest, offsets[i + 1] - offsets[i])
    row_ids, row_values, ends = np.empty(longest, np.uint32), np.empty(longest, np.float32), np.empty(_GROUPS, np.int64)
    for i in range(start, stop):
        n = 0
        ends[:] = 0
        for t in range(indptr[i], indptr[i + 1]):
            column = indices[t]
            value = np.float32(values[t] if scales is None else values[t] * scales[column])
            square = np.float64(value) * value
            norms[i] += square
            number = numbers[column]
            if number != _ALONE:
                row_ids[n], row_values[n] = number, value
                ends[row_ids[n] >> shift] += 1
                n += 1
            else:
                own[i] += square
        end = offsets[i]
        for group in range(_GROUPS):
            end += ends[group]
            ends[group] = end
        for t in range(n - 1, -1, -1):
            group = row_ids[t] >> shift
            ends[group] -= 1
            ids[ends[group]], kept[ends[group]] = row_ids[t], row_values[t]


@kernel
def _write_own(indptr, indices, values, scales, seen, signs, alpha, out):
    for i in range(len(alpha)):
        for t in range(indptr[i], indptr[i + 1]):
            column = indices[t]
            if seen[column] == 1:
                value = values[t] if scales is None else values[t] * scales[column]
                for j in range(alpha.shape[1]):
                    out[column, j] = alpha[i, j] * signs[i, j] * value


@kernel
def add_squares(indptr, indices, values):
    """Return the squared norms of rows, and 1 for the bias."""
    norms = np.ones(len(indptr) - 1)
    for i in range(len(norms)):
        for t in range(indptr[i], indptr[i + 1]):
            norms[i] += np.float64(values[t]) * values[t]
    return norms


@kernel
def sum_columns(indptr, indices, values, row_weights, signs, sums):
    """Add to `sums`, a row a column: weights of rows of sign 1 that have it, of the others, and its squared values."""
    for i in range(len(indptr) - 1):
        side = 0 if signs[i] > 0 else 1
        for t in range(indptr[i], indptr[i + 1]):
            sums[indices[t], side] += row_weights[i]
            sums[indices[t], 2] += row_weights[i] * np.float64(values[t]) * values[t]
