"""Streaming moments of dense columns."""

from __future__ import annotations

import numpy as np


class Moments:
    """Mean, standard deviation and largest absolute value of each column of rows that come in pieces.

    Pieces are merged by Chan, Golub and LeVeque's formula in float64, so that neither many rows nor a large mean spoil
    the variance.
    """

    def __init__(self, k: int):
        self.n = 0
        self.mean, self._squares, self.max_abs = np.zeros(k), np.zeros(k), np.zeros(k)

    def update(self, rows: np.ndarray) -> None:
        n = len(rows)
        if n == 0:
            return
        mean = rows.mean(axis=0, dtype=np.float64)
        about = mean.astype(rows.dtype)  # in the rows' precision, which is fast; the difference is made up for
        squares = np.square(rows - about).sum(axis=0, dtype=np.float64) - n * (mean - about) ** 2
        shift, total = mean - self.mean, self.n + n
        self.mean = self.mean + shift * (n / total)
        self._squares = self._squares + squares + shift**2 * (self.n * n / total)
        self.max_abs = np.maximum(self.max_abs, np.abs(rows).max(axis=0))
        self.n = total

    @property
    def deviation(self) -> np.ndarray:
        return np.sqrt(np.maximum(self._squares, 0) / max(1, self.n))
