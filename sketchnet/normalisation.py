"""Streaming moments of dense columns."""

from __future__ import annotations

import numpy as np

from sketchnet.kernels import backend


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
        # About the mean so far, which is near enough for the variance not to be a difference of large numbers.
        about = self.mean if self.n else rows[0].astype(np.float64)
        sums, squares, largest = backend().column_sums(rows, about)
        self.merge(n, about + sums / n, squares - sums**2 / n, largest)

    def merge(self, n: int, mean: np.ndarray, squares: np.ndarray, largest: np.ndarray) -> None:
        """Take in n rows by their mean, squares about it, and largest absolute values."""
        shift, total = mean - self.mean, self.n + n
        self.mean = self.mean + shift * (n / total)
        self._squares = self._squares + squares + shift**2 * (self.n * n / total)
        self.max_abs = np.maximum(self.max_abs, largest)
        self.n = total

    def inverse(self, by: np.ndarray) -> np.ndarray:
        """1 / `by`, a scale of the columns; 0 for those that never vary but for rounding."""
        return np.where(by > 1e-12 * np.maximum(self.max_abs, 1e-300), 1 / np.maximum(by, 1e-300), 0.0)

    @property
    def deviation(self) -> np.ndarray:
        return np.sqrt(np.maximum(self._squares, 0) / max(1, self.n))
