"""The dissertation's synthetic data (appendix A): two classes that differ in a few significant features.

Row i is a function of (seed, i), so any slice of the data can be made on its own, and chunks do not matter.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property

import numpy as np

from sketchnet import random
from sketchnet.checks import check_integer, check_real
from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.kernels import backend

_COLUMNS, _VALUES, _NOISE, _CLASSES, _SIGNIFICANT = range(random.STREAM_SYNTHETIC, random.STREAM_SYNTHETIC + 5)
_MOST = 2**56  # rows or columns: NumPy makes no array of bytes for many more, and says so in its own way


class Synthetic:
    """Rows of two balanced classes; the first 80 % are for training, the others for testing.

    Every entry is non-zero with probability `density`, its value N(0, 1). A fraction `significant` of the features
    separates the classes: in examples of class 1 their non-zeros get noise N(3, 1) added. The dissertation does not
    state that noise; these parameters give back the errors that it prints for linear models.
    """

    def __init__(self, n: int = 1_250_000, d: int = 1_000_000, density: float = 1e-5, significant: float = 0.2, seed=0):
        self.n, self.d = check_integer("n", n, 1, _MOST), check_integer("d", d, 1, _MOST)
        self.density, self.significant = (
            check_real(name, value, most=1) for name, value in (("density", density), ("significant", significant))
        )
        if self.density == 0:
            raise InputError("density=0 is not possible; it must be a number from above 0 to 1")
        self.seed = check_integer("seed", seed, 0, 2**64 - 1)
        self.n_train = round(0.8 * self.n)

    @cached_property
    def labels(self) -> np.ndarray:
        """0 and 1, as many of each as can be, in the training part as in the test part."""
        y = np.empty(self.n, np.int64)
        for part, span in enumerate((slice(0, self.n_train), slice(self.n_train, self.n))):
            order = random.shuffled(len(y[span]), self.seed, _CLASSES, part)
            y[span][order] = np.arange(len(order)) % 2
        return y

    @cached_property
    def is_significant(self) -> np.ndarray:
        chosen = np.zeros(self.d, bool)
        chosen[random.shuffled(self.d, self.seed, _SIGNIFICANT)[: round(self.significant * self.d)]] = True
        return chosen

    @cached_property
    def _thresholds(self) -> np.ndarray:
        return random.skip_thresholds(Decimal(self.density), self.d)

    def rows(self, span: slice) -> CsrBatch:
        """Rows span.start to span.stop."""
        ids = np.arange(span.start, span.stop)
        indptr, codes = backend().draw_skips(self.seed, _COLUMNS, ids, self.d, self._thresholds, self.d * self.density)
        columns = np.where(codes < 0, ~codes, codes)  # the signs are not needed
        y = self.labels[span]
        values = self._normals(_VALUES, ids, indptr)
        moved = self.is_significant[columns] & np.repeat(y == 1, np.diff(indptr))
        values[moved] += 3 + self._normals(_NOISE, ids, indptr)[moved]
        return CsrBatch(indptr, columns, values, self.d, y)

    def chunks(self, span: slice, rows: int = 1 << 16):
        """The rows of `span`, a CsrBatch at a time."""
        for start in range(span.start, span.stop, rows):
            yield self.rows(slice(start, min(start + rows, span.stop)))

    def _normals(self, stream: int, ids: np.ndarray, indptr: np.ndarray) -> np.ndarray:
        """One normal per non-zero: the first of its row, the second, ..."""
        lengths = np.diff(indptr)
        drawn = np.empty((len(ids), -(-int(lengths.max(initial=0)) // 4) * 4), np.float32)
        backend().draw_normals(self.seed, stream, ids, 0, drawn)
        return drawn[np.arange(drawn.shape[1]) < lengths[:, None]]


def make_synthetic(n: int, d: int, density: float, significant: float = 0.2, random_state: int = 0):
    """The same in memory, all n rows, as (X, y) with X a float32 CSR array and y of 0 and 1."""
    seed = check_integer("random_state", random_state, 0, 2**64 - 1)
    batch = Synthetic(n, d, density, significant, seed).rows(slice(0, n))
    return batch.scipy(), batch.labels
