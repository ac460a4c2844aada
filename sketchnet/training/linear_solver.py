"""Linear support vector machines over rows in memory or on disk, solved by dual coordinate descent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sketchnet.data.batches import iterate_numbered
from sketchnet.data.csr import CsrBatch, without_repeats
from sketchnet.kernels import backend
from sketchnet.nn import SketchNetwork
from sketchnet.training.examples import Examples

GAP = 0.01  # a share of the objective: an answer may be so far above the best one
_PASSES, _FEWEST_PASSES, _ALL_PASSES = 300, 4, 20_000_000  # at most, over the rows; the last counts rows
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
        self.gap = np.inf  # by which the objective may be above the best one, as a share of it

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

    def state(self) -> np.ndarray:
        """What `restore` needs: a number for each row and output, from which the weights follow."""
        return self._alpha.copy()

    def restore(self, state: np.ndarray) -> None:
        self._alpha, self.weights[:], self.bias[:] = state, 0, 0
        for numbers, batch in self._batches():
            pulls = self._signs(numbers) * state[numbers]
            backend().add_rows(*batch.arrays, pulls, self.weights)
            self.bias += pulls.sum(axis=0)
        if self._squares is not None:
            self.weights *= self._squares

    def solve(self, strength: float, n_parts: int | None = None) -> None:
        """Learn from the rows of the first `n_parts` parts; `strength` is C times the mean squared norm of a row.

        The objective is measured now and then, until it is surely within `GAP` of the best or the passes are used up,
        and the best answer that was measured stays: from pass to pass it may get worse.
        """
        softness = self._norms.mean(dtype=np.float64) / (2 * strength)
        # Many rows need few passes: each has taught the others much by then.
        passes = min(_PASSES, max(_FEWEST_PASSES, _ALL_PASSES // len(self._classes)))
        best, check = np.inf, 1
        kept: Any = None
        for number in range(1, passes + 1):
            for numbers, batch in mixed_batches(self._network, self._parts[:n_parts], number):
                arrays = (self._classes, self._alpha, self._squares, self._norms, self.weights, self.bias)
                backend().dual_descent(*batch.arrays, numbers, *arrays, softness)
            if number < min(check, passes):
                continue
            check = number + max(1, number // 4)  # measuring costs less than a pass
            objective, bound = self._objective(softness, n_parts)
            if objective <= best:
                best, kept = objective, None if number == passes else self.state()
            self.gap = (best - bound) / best
            if self.gap <= GAP:
                break
        if objective > best:
            self.restore(kept)

    def _objective(self, softness: float, n_parts: int | None) -> tuple[float, float]:
        """(objective, what it cannot fall below), all outputs together: Hsieh et al. (2008), problems 1 and 4."""
        misses = 0.0
        for numbers, batch in self._batches(n_parts):
            margins = self._signs(numbers) * self._margins(batch)
            misses += np.square(np.maximum(1 - margins, 0), dtype=np.float64).sum()
        size = np.square(self.bias, dtype=np.float64).sum()
        for rows in range(0, len(self.weights), _ROWS):
            block = slice(rows, rows + _ROWS)
            squares = np.square(self.weights[block], dtype=np.float64)
            if self._squares is not None:  # where one is 0, so is the weight
                squares = np.divide(squares, self._squares[block], out=squares, where=self._squares[block] > 0)
            size += squares.sum()
        pulls = sum(
            part.sum(dtype=np.float64) - softness / 2 * np.square(part, dtype=np.float64).sum()
            for part in np.array_split(self._alpha, 1 + len(self._alpha) // _ROWS)
        )
        return size / 2 + misses / (2 * softness), pulls - size / 2

    def _signs(self, numbers: np.ndarray) -> np.ndarray:
        """1 where an output is the one of the row's class, -1 elsewhere; of a single output that is class 1."""
        n_outputs = len(self.bias)
        own = self._classes[numbers, None] == (np.arange(n_outputs) if n_outputs > 1 else 1)
        return np.where(own, np.float32(1), np.float32(-1))

    def _batches(self, n_parts: int | None = None) -> Iterator[tuple[np.ndarray, CsrBatch]]:
        return mixed_batches(self._network, self._parts[:n_parts])

    def _margins(self, batch: CsrBatch) -> np.ndarray:
        out = np.empty((batch.n_rows, len(self.bias)), np.float32)
        backend().wide_forward(*batch.arrays, self.weights, out)
        return out + self.bias

    def margins(self, data) -> np.ndarray:
        out = np.empty((data.n_rows, len(self.bias)), np.float32)
        for numbers, batch in iterate_numbered(data, _ROWS, shuffle=False):
            out[numbers] = self._margins(self._network.columns(batch))
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
