"""Models that learn from batches of sparse rows: vectors or weights of columns, or rows made dense.

Each takes a step on some rows, and gives logits and what entries add to them. A table has a row for each column of the
rows that it began with, zeros where a column did not occur in them; steps change the rows that a batch touches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import deepcopy

import numpy as np

from sketchnet.data.csr import CsrBatch
from sketchnet.experts.mlp import MLP
from sketchnet.kernels.cpu import bags

_SLICE = 2048  # rows at a time, where nothing is learnt
_BIAS_RATE = 0.5  # of weights' outputs


class Model(ABC):
    """What the training loop asks of a model; `arrays` are all that it has learnt, in place."""

    arrays: dict[str, np.ndarray]

    @abstractmethod
    def step(self, rows: CsrBatch, numbers: np.ndarray, targets: np.ndarray, weights: np.ndarray, rate: float) -> None:
        """Learn from the rows with these numbers; `rate` is the share of the full learning rate."""

    @property
    def n_columns(self) -> int:
        """Return how many columns rows must have."""
        return len(self.arrays["table"])

    def forget_unseen(self) -> None:
        """Let the last column number, of all that nobody has seen, mean nothing."""
        if "table" in self.arrays:
            self.arrays["table"][-1] = 0

    @abstractmethod
    def logits(self, rows: CsrBatch) -> np.ndarray: ...

    @abstractmethod
    def effects(self, rows: CsrBatch, outputs: np.ndarray) -> np.ndarray:
        """Return for each entry its value times the slope of its row's logit number outputs[row]."""


def expected_targets(kind: str, logits: np.ndarray) -> np.ndarray:
    """Return probabilities, or for kind "regression" the logits."""
    if kind == "regression":
        return logits
    if kind == "multiclass":
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)
    return 1 / (1 + np.exp(-np.clip(logits, -80, 80)))


def prior_logits(kind: str, mean: np.ndarray) -> np.ndarray:
    """Return logits whose expected targets are the mean ones."""
    if kind == "regression":
        return mean
    mean = np.clip(mean, 1e-3, 1 - 1e-3)
    return np.log(mean) if kind == "multiclass" else np.log(mean / (1 - mean))


def _slices(rows: CsrBatch) -> Iterator[tuple[slice, CsrBatch]]:
    for start in range(0, rows.n_rows, _SLICE):
        span = slice(start, min(rows.n_rows, start + _SLICE))
        part = rows.rows(span)
        yield span, CsrBatch(part.indptr - part.indptr[0], part.indices, part.values, part.n_columns)


class _NetworkModel(Model):
    """Something that makes a row dense, and a small network on it."""

    def __init__(self, kind: str, mlp: MLP, rate: float):
        self._kind, self.mlp, self._rate = kind, mlp, rate
        self.arrays = {"weights": mlp.weights, **{f"moments{i}": part for i, part in enumerate(mlp.moments)}}

    @abstractmethod
    def _read(self, rows: CsrBatch, numbers: np.ndarray) -> np.ndarray: ...

    def _learn(self, x: np.ndarray, targets: np.ndarray, weights: np.ndarray, rate: float, inputs: bool) -> np.ndarray:
        misses = (expected_targets(self._kind, self.mlp.forward(x, True)) - targets) * (weights / len(x))[:, None]
        slopes = self.mlp.backward(misses.astype(np.float32, copy=False), inputs)
        self.mlp.step(rate * self._rate)
        return slopes

    def logits(self, rows: CsrBatch) -> np.ndarray:
        parts = [self.mlp.forward(self._read(part, np.arange(part.n_rows))) for _, part in _slices(rows)]
        return np.concatenate([np.empty((0, len(self.mlp.bias)), np.float32), *parts])

    def effects(self, rows: CsrBatch, outputs: np.ndarray) -> np.ndarray:
        out, mlp = [np.empty(0, np.float32)], deepcopy(self.mlp)  # its own: a network remembers its last rows
        for span, part in _slices(rows):
            x = self._read(part, np.arange(part.n_rows))
            mlp.forward(x.copy())
            picked = (outputs[span, None] == np.arange(len(mlp.bias))).astype(np.float32)
            out.append(self._entry_effects(part, x, mlp.backward(picked)))
        return np.concatenate(out)

    @abstractmethod
    def _entry_effects(self, rows: CsrBatch, x: np.ndarray, slopes: np.ndarray) -> np.ndarray: ...


class VectorModel(_NetworkModel):
    """A vector for each column; of those of a row their sum and their interactions, 1/2 (sum ** 2 - sum of squares)."""

    def __init__(self, kind: str, table: np.ndarray, mlp: MLP, rate: float, rates: np.ndarray):
        super().__init__(kind, mlp, rate)
        self._table = self.arrays["table"] = table
        self._rates = np.stack([rates, np.zeros_like(rates)], axis=1)

    def _read(self, rows: CsrBatch, numbers: np.ndarray) -> np.ndarray:
        sums, squares = np.empty((2, len(numbers), self._table.shape[1]), np.float32)
        bags.sum_bags(*rows.arrays, numbers, self._table, sums, squares)
        return np.concatenate([sums, (sums * sums - squares) / 2], axis=1)

    def step(self, rows: CsrBatch, numbers: np.ndarray, targets: np.ndarray, weights: np.ndarray, rate: float) -> None:
        x = self._read(rows, numbers)
        by_sum, by_pair = self._split(x, self._learn(x, targets, weights, rate, True))
        bags.step_vectors(*rows.arrays, numbers, by_sum, by_pair, rate, self._table, self._rates)

    def _split(self, x: np.ndarray, slopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        width = self._table.shape[1]
        by_pair = np.ascontiguousarray(slopes[:, width:])
        return slopes[:, :width] + by_pair * x[:, :width], by_pair

    def _entry_effects(self, rows: CsrBatch, x: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        out = np.empty(rows.n_entries, np.float32)
        bags.add_effects(*rows.arrays, self._table, *self._split(x, slopes), out)
        return out


class DenseModel(_NetworkModel):
    """Rows made dense, each column less its centre and times its scale; columns beyond those are left out."""

    def __init__(self, kind: str, centres: np.ndarray, scales: np.ndarray, mlp: MLP, rate: float):
        super().__init__(kind, mlp, rate)
        self._centres, self._scales = centres, scales
        self.arrays |= {"centres": centres, "scales": scales}

    @property
    def n_columns(self) -> int:
        return len(self._centres) + 1

    def _read(self, rows: CsrBatch, numbers: np.ndarray) -> np.ndarray:
        out = np.empty((len(numbers), len(self._centres)), np.float32)
        bags.fill_rows(*rows.arrays, numbers, self._centres, self._scales, out)
        return out

    def step(self, rows: CsrBatch, numbers: np.ndarray, targets: np.ndarray, weights: np.ndarray, rate: float) -> None:
        self._learn(self._read(rows, numbers), targets, weights, rate, False)

    def _entry_effects(self, rows: CsrBatch, x: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        slopes = np.concatenate([slopes * self._scales, np.zeros((len(slopes), 1), np.float32)], axis=1)
        owners = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
        return rows.values * slopes[owners, np.minimum(rows.indices, len(self._scales))]


class WeightModel(Model):
    """A weight for each column and output, learnt row after row by Adagrad."""

    def __init__(self, kind: str, table: np.ndarray, bias: np.ndarray, table_rate: float):
        self._link = {"regression": bags.IDENTITY, "multiclass": bags.SOFTMAX}.get(kind, bags.SIGMOID)
        self._table, self._bias, self._rate = table, bias, table_rate
        self.arrays = {"table": table, "bias": bias}
        self._seen, self._bias_seen = np.zeros_like(table), np.zeros_like(bias)

    def step(self, rows: CsrBatch, numbers: np.ndarray, targets: np.ndarray, weights: np.ndarray, rate: float) -> None:
        bags.learn_weights(
            *rows.arrays,
            numbers,
            targets,
            weights,
            self._link,
            self._table,
            self._bias,
            self._seen,
            self._bias_seen,
            rate * self._rate,
            _BIAS_RATE,
        )

    def logits(self, rows: CsrBatch) -> np.ndarray:
        from sketchnet.kernels import backend

        out = np.empty((rows.n_rows, len(self._bias)), np.float32)
        backend().multiply_table(*rows.arrays, self._table, out)
        return out + self._bias

    def effects(self, rows: CsrBatch, outputs: np.ndarray) -> np.ndarray:
        return rows.values * self._table[rows.indices, np.repeat(outputs, np.diff(rows.indptr))]
