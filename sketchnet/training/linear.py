"""The linear model that people have today, solved exactly and blended into the wide path.

An L2-regularised support vector machine with squared hinge loss, as LIBLINEAR solves it; C is chosen on the validation
rows, then it is solved once more on all rows. Its margins and the network's outputs are added with weights that follow
from the validation rows: the middle of all weights whose error there is within one standard error of the best, or the
linear model alone, if that is among them (with few rows, within up to two). The sum is a network of the same form:
tables of the wide path add up, and the last layer is scaled.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from sketchnet.data.batches import iterate_numbered
from sketchnet.kernels import backend
from sketchnet.nn import SketchNetwork
from sketchnet.training.examples import Examples, hold_back
from sketchnet.training.model import Model

_STRENGTHS = (1.0, 3.0, 10.0, 30.0)  # C times the mean squared norm of a row
_TRIAL_ROWS = 1 << 17  # that strengths are tried on
_PASSES, _FEWEST_PASSES, _ALL_PASSES = 20, 4, 20_000_000  # over the rows; the last counts rows
_TOLERANCE = 0.1
_ANGLES = np.linspace(0, np.pi / 2, 13)
_SCALES = np.geomspace(0.05, 20, 25)
_FEW = 500  # validation rows that can hardly tell
_ROWS = 8192  # solved at a time, in an order that mixes


def blend_linear(model: Model, examples: Examples, valid: Examples) -> dict:
    """Put as much of the linear model into the network as the validation rows ask for; returns what was done."""
    begun, network, task = time.perf_counter(), model.network, model.task
    n, classes = examples.data.n_rows, _numbers(valid)
    some, _ = hold_back(examples, max(0.0, 1 - _TRIAL_ROWS / n), model.training.seed)
    solver, best = _Solver(network, some, valid), None
    for strength in _STRENGTHS:
        solver.solve(strength, n_parts=1)
        margins = solver.margins(valid.data)
        errors = _wrong(margins, classes).sum()
        if best is None or errors < best[0]:
            best = (errors, strength, margins, solver.state())
    linear_errors, strength, margins, state = best
    solver.restore(state)
    if some.data.n_rows < n:
        del best, state  # tables as large as the next one
        solver = _Solver(network, examples, valid)
        solver.solve(strength, n_parts=1)
        margins = solver.margins(valid.data)
        linear_errors = _wrong(margins, classes).sum()
    outputs = model.outputs(valid.data)
    share, scale, errors = _weigh(outputs / _size(outputs), margins / _size(margins), classes, task.kind)
    if share > 0:
        solver.solve(strength, n_parts=2)
    ours, theirs = scale * np.cos(share) / _size(outputs), scale * np.sin(share) / _size(margins)
    with torch.no_grad():
        last = network.layers[-1]
        last.weight *= ours
        last.bias *= ours
        last.bias += torch.from_numpy(theirs * solver.bias).to(last.bias)
        network.wide.weight *= ours
        if share > 0:
            network.wide.weight += torch.from_numpy(np.float32(theirs) * solver.weights)
    return {
        "strength": strength,
        "share": round(float(np.sin(share) / (np.sin(share) + np.cos(share))), 3),
        "linear_valid_error": float(linear_errors) / valid.data.n_rows,
        "valid_error": errors / valid.data.n_rows,  # before the validation rows were learnt too
        "seconds": round(time.perf_counter() - begun, 3),
    }


class _Solver:
    """Dual coordinate descent over the training rows, or these and then the validation rows; a second `solve` goes on
    from the first.
    """

    def __init__(self, network: SketchNetwork, examples: Examples, valid: Examples):
        self._network, self._data = network, [examples.data, valid.data]
        self._classes = np.concatenate([_numbers(examples), _numbers(valid)])
        n, n_outputs = len(self._classes), network.config.n_outputs
        self._alpha, self._norms = np.zeros((n, n_outputs), np.float32), np.empty(n, np.float32)
        self.weights = np.zeros((network.config.width, n_outputs), np.float32)
        self.bias = np.zeros(n_outputs, np.float32)
        for numbers, batch in self._batches(0):
            squares = np.square(batch.values, dtype=np.float64)
            sums = np.add.reduceat(np.append(squares, 0), batch.indptr[:-1] - batch.indptr[0])
            self._norms[numbers] = np.where(np.diff(batch.indptr) > 0, sums, 0) + 1  # and the bias's constant

    def state(self) -> tuple[np.ndarray, ...]:
        return self._alpha.copy(), self.weights.copy(), self.bias.copy()

    def restore(self, state: tuple[np.ndarray, ...]) -> None:
        self._alpha, self.weights, self.bias = state

    def _batches(self, epoch: int, n_parts: int = 2):
        first = 0
        for data in self._data[:n_parts]:
            seed = self._network.config.seed
            for numbers, batch in iterate_numbered(data, _ROWS, seed=seed, epoch=epoch):
                yield numbers + first, self._network.columns(batch)
            first += data.n_rows

    def solve(self, strength: float, n_parts: int) -> None:
        softness = float(self._norms.mean()) / (2 * strength)
        # Many rows need few passes: each has taught the others much by then.
        for number in range(min(_PASSES, max(_FEWEST_PASSES, _ALL_PASSES // len(self._norms)))):
            worst = 0.0
            for numbers, batch in self._batches(number, n_parts):
                arrays = (self._classes, self._alpha, self._norms, self.weights, self.bias)
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


def _weigh(outputs: np.ndarray, margins: np.ndarray, classes: np.ndarray, kind: str) -> tuple[float, float, int]:
    """(angle, scale, errors): outputs * cos + margins * sin is the blend, the scale makes its probabilities best."""
    blends = [np.cos(angle) * outputs + np.sin(angle) * margins for angle in _ANGLES]
    wrong = np.array([_wrong(blend, classes) for blend in blends])
    best = int(wrong.sum(axis=1).argmin())
    # Paired: rows on which a blend and the best one differ are coin tosses, if they are equally good.
    excess, spread = wrong.sum(axis=1) - wrong[best].sum(), np.sqrt((wrong != wrong[best]).sum(axis=1))
    as_good, last = np.flatnonzero(excess <= spread), len(_ANGLES) - 1
    sure = 1 + min(1.0, _FEW / len(classes))  # few rows, which have chosen the epoch as well, prove less
    chosen = last if excess[last] <= sure * spread[last] else int(as_good[(len(as_good) - 1) // 2])
    losses = [_loss(scale * blends[chosen], classes, kind) for scale in _SCALES]
    return float(_ANGLES[chosen]), float(_SCALES[int(np.argmin(losses))]), int(wrong[chosen].sum())


def _wrong(outputs: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return (outputs[:, 0] > 0 if outputs.shape[1] == 1 else outputs.argmax(axis=1)) != classes


def _loss(outputs: np.ndarray, classes: np.ndarray, kind: str) -> float:
    outputs, targets = torch.from_numpy(outputs).double(), torch.from_numpy(classes)
    if kind == "binary":
        return float(torch.nn.functional.binary_cross_entropy_with_logits(outputs[:, 0], targets.double()))
    return float(torch.nn.functional.cross_entropy(outputs, targets))


def _size(outputs: np.ndarray) -> float:
    return max(float(np.sqrt(np.mean(np.square(outputs, dtype=np.float64)))), 1e-12)


def _numbers(examples: Examples) -> np.ndarray:
    return np.asarray(examples.targets).astype(np.int64)
