"""Linear support vector machines over rows in memory or on disk, solved by dual coordinate descent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sketchnet.data.batches import iterate_numbered
from sketchnet.data.csr import CsrBatch, without_repeats
from sketchnet.kernels import backend
from sketchnet.nn import SketchNetwork
from sketchnet.training.examples import Examples

_PASSES, _FEWEST_PASSES, _ALL_PASSES = 20, 4, 20_000_000  # over the rows; the last counts rows
_TOLERANCE = 0.1
_ROWS = 8192  # solved at a time, in an order that mixes


class LinearSolver:
    """L2 regularisation, squared hinge loss, one class against the rest; a second `solve` goes on from the first.

    `squares` has a number v for each column and output, which divides the penalty on that weight: each output sees
    columns of its own size, and no copy of the rows is made.
    """

    def __init__(self, network: SketchNetwork, parts: list[Examples], squares: np.ndarray | None = None):
        self._network, self._parts, self._squares = network, parts, squares
        self._classes, n_outputs = np.concatenate([class_numbers(part) for part in parts]), network.config.n_outputs
        self._alpha = np.zeros((len(self._classes), n_outputs), np.float32)
        self.weights = np.zeros((network.config.width, n_outputs), np.float32)
        self.bias = np.zeros(n_outputs, np.float32)
        self._norms = self._squared_norms()

    def _squared_norms(self) -> np.ndarray:
        """Of each row as outputs see it (all alike, or each with columns of its own size), with the bias's constant."""
        norms = np.empty((len(self._classes), 1 if self._squares is None else len(self.bias)), np.float32)
        for numbers, batch in mixed_batches(self._network, self._parts):
            batch = without_repeats(batch)
            if self._squares is None:
                owners = np.repeat(np.arange(batch.n_rows), np.diff(batch.indptr))
                entries = np.square(batch.values, dtype=np.float64)
                norms[numbers, 0] = np.bincount(owners, entries, minlength=batch.n_rows)
            else:
                part = np.empty((batch.n_rows, norms.shape[1]), np.float32)
                backend().wide_forward(batch.indptr, batch.indices, np.square(batch.values), self._squares, part)
                norms[numbers] = part
        return norms + 1

    def state(self) -> tuple[np.ndarray, ...]:
        return self._alpha.copy(), self.weights.copy(), self.bias.copy()

    def restore(self, state: tuple[np.ndarray, ...]) -> None:
        self._alpha, self.weights, self.bias = state

    def solve(self, strength: float, n_parts: int | None = None) -> None:
        """Learn from the rows of the first `n_parts` parts; `strength` is C times the mean squared norm of a row."""
        softness = self._norms.mean(dtype=np.float64) / (2 * strength)
        # Many rows need few passes: each has taught the others much by then.
        for number in range(min(_PASSES, max(_FEWEST_PASSES, _ALL_PASSES // len(self._classes)))):
            worst = 0.0
            for numbers, batch in mixed_batches(self._network, self._parts[:n_parts], number):
                arrays = (self._classes, self._alpha, self._squares, self._norms, self.weights, self.bias)
                worst = max(worst, backend().dual_descent(*batch.arrays, numbers, *arrays, softness))
            if worst < _TOLERANCE:
                break

    def margins(self, data) -> np.ndarray:
        out = np.empty((data.n_rows, len(self.bias)), np.float32)
        for numbers, batch in iterate_numbered(data, _ROWS, shuffle=False):
            part = np.empty((batch.n_rows, len(self.bias)), np.float32)
            backend().wide_forward(*self._network.columns(batch).arrays, self.weights, part)
            out[numbers] = part + self.bias
        return out


def mixed_batches(
    network: SketchNetwork, parts: list[Examples], epoch: int = 0
) -> Iterator[tuple[np.ndarray, CsrBatch]]:
    """(row numbers among all parts, their entries as the network's layers see them)."""
    first = 0
    for part in parts:
        for numbers, batch in iterate_numbered(part.data, _ROWS, seed=network.config.seed, epoch=epoch):
            yield numbers + first, network.columns(batch)
        first += part.data.n_rows


def class_numbers(examples: Examples) -> np.ndarray:
    return np.asarray(examples.targets).astype(np.int64)
