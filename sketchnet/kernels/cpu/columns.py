"""Sums over the columns of dense rows."""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import kernel
from sketchnet.kernels.cpu.threads import over_range


@kernel
def _column_sums(rows, about, sums, squares, largest, start, stop):
    whole = rows.shape[0] // 4 * 4
    for r in range(0, whole, 4):  # four at a time, or most of the time goes into loading and storing sums
        a, b, c, d = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
        for j in range(start, stop):
            p, q, s, t = np.float64(a[j]), np.float64(b[j]), np.float64(c[j]), np.float64(d[j])
            largest[j] = max(largest[j], max(max(abs(p), abs(q)), max(abs(s), abs(t))))
            p, q, s, t = p - about[j], q - about[j], s - about[j], t - about[j]
            sums[j] += (p + q) + (s + t)
            squares[j] += (p * p + q * q) + (s * s + t * t)
    for r in range(whole, rows.shape[0]):
        for j in range(start, stop):
            x = np.float64(rows[r, j])
            largest[j] = max(largest[j], abs(x))
            sums[j] += x - about[j]
            squares[j] += (x - about[j]) ** 2


def column_sums(rows, about):
    """(sums of x - about, sums of its squares, largest |x|) of each column, in float64 and in one pass."""
    sums, squares, largest = np.zeros((3, rows.shape[1]))
    # Threads share columns, not rows: sums do not depend on how many there are.
    over_range(lambda a, b: _column_sums(rows, about, sums, squares, largest, a, b), rows.shape[1], rows.size)
    return sums, squares, largest
