"""Rows as dual descent likes them: columns of several rows alone, the frequent ones first."""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import kernel
from sketchnet.kernels.cpu.threads import over_rows


class SharedColumns:
    """Rows without the columns that only one of them has, ids ascending, values times a scale for each column.

    Of a column that only row i has, the weight is alpha_i * sign_i * x, so all of them add `own`[i] * alpha_i * sign_i
    to the row's margin, where own is the sum of their squares. In texts they are most columns and a fifth of the
    entries, each of which misses the caches. `norms` are the squared norms of the whole rows, and 1 for the bias.
    """

    def __init__(self, indptr, indices, values, n_columns: int, scales: np.ndarray | None = None):
        self._rows, self._scales = (indptr, indices, values), scales
        self._seen = np.zeros(n_columns, np.uint8)  # once, or more often
        _count_columns(indices, self._seen)
        self._shared = np.flatnonzero(self._seen > 1)
        numbers = np.zeros(n_columns, np.uint32)
        numbers[self._shared] = np.arange(len(self._shared))
        self.n_columns, n = len(self._shared), len(indptr) - 1
        offsets = np.zeros(n + 1, np.int64)
        over_rows(lambda a, b: _count_shared(indptr, indices, self._seen, offsets, a, b), indptr)
        np.cumsum(offsets, out=offsets)
        ids, kept = np.empty(offsets[-1], np.uint32), np.empty(offsets[-1], np.float32)
        self.own, self.norms = np.zeros(n), np.ones(n)
        given, new = (indptr, indices, values, scales, self._seen, numbers), (offsets, ids, kept.view(np.uint32))
        over_rows(lambda a, b: _sort_shared(*given, *new, self.own, self.norms, a, b), indptr, 8)
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
def _sort_shared(indptr, indices, values, scales, seen, numbers, offsets, ids, bits, own, norms, start, stop):
    longest = 0
    for i in range(start, stop):
        longest = max(longest, offsets[i + 1] - offsets[i])
    keys, one = np.empty(longest, np.uint64), np.empty(1, np.float32)
    for i in range(start, stop):
        n = 0
        for t in range(indptr[i], indptr[i + 1]):
            one[0] = values[t] if scales is None else values[t] * scales[indices[t]]
            square = np.float64(one[0]) * one[0]
            norms[i] += square
            if seen[indices[t]] > 1:
                keys[n] = (np.uint64(numbers[indices[t]]) << np.uint64(32)) | np.uint64(one.view(np.uint32)[0])
                n += 1
            else:
                own[i] += square
        keys[:n].sort()
        for t in range(n):
            ids[offsets[i] + t] = keys[t] >> np.uint64(32)
            bits[offsets[i] + t] = keys[t] & np.uint64(0xFFFFFFFF)


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
