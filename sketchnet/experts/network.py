"""Small networks: vectors of columns with their interactions, weights of columns stopped early, dense rows.

One training loop for all. Held-back rows are looked at every so often, by the loss after calibration, and the best state
is kept; how many epochs that took is what `refit` goes by.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from sketchnet.data.csr import CsrBatch
from sketchnet.checks import check_real
from sketchnet.errors import InputError
from sketchnet.experts.blend import fit_blend
from sketchnet.experts.expert import Expert
from sketchnet.experts.mlp import MLP, one_thread
from sketchnet.experts.readers import DenseModel, Model, VectorModel, WeightModel, prior_logits
from sketchnet.experts.rows import Sample

_CHECKED = 4000  # held-back rows that decide when to stop, at most
_PATIENCE = 3  # checks without a better one
_LONG = 40  # non-zeros a row, on average: from here on rows are long


class NetworkExpert(Expert):
    """What the three have in common: batches, schedule, stopping, and state."""

    _epochs: float = 10
    _checks: int = 1  # an epoch, at least
    _unchecked = 0.3  # share of the schedule before the first check
    _constant = False  # rate: else it warms up and falls along a cosine
    _batch = 256
    _hidden: list[int] = []

    def __init__(self, kind: str, n_outputs: int, seed: int = 0, effort: str = "auto"):
        super().__init__(kind, n_outputs, seed, effort)
        self.model: Model | None = None

    def fit(self, train: Sample, valid: Sample) -> np.ndarray:
        with one_thread():
            self.chosen = {"epochs": self._train(train, self._plan(train), valid)}
        return self.logits(valid.rows)

    def refit(self, sample: Sample) -> None:
        self._plan(sample)
        with one_thread():
            self._train(sample, self.chosen["epochs"], None)

    def logits(self, rows: CsrBatch) -> np.ndarray:
        with one_thread():
            return self.model.logits(rows)

    def contributions(self, rows: CsrBatch, outputs: np.ndarray) -> np.ndarray:
        with one_thread():
            return self.model.effects(rows, outputs)

    def state(self) -> tuple[dict[str, np.ndarray], dict]:
        return dict(self.model.arrays), {"hidden": self._hidden, "chosen": self.chosen}

    def restore(self, arrays: dict[str, np.ndarray], settings: dict) -> None:
        try:
            model = self._rebuild({name: array.shape for name, array in arrays.items()}, settings["hidden"])
            same = {name: array.shape for name, array in model.arrays.items()}
            if {name: array.shape for name, array in arrays.items()} != same:
                raise InputError("their shapes do not fit each other")
            if not all(array.dtype == np.float32 and np.isfinite(array).all() for array in arrays.values()):
                raise InputError("they are not finite numbers of 32 bits")
            self._hidden = settings["hidden"]
            self.chosen = {"epochs": check_real("epochs", settings["chosen"]["epochs"])}
        except (InputError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise InputError(f"the arrays of expert {self.name} are not usable: {error}") from None
        for name, array in arrays.items():
            model.arrays[name][...] = array
        self.model = model

    @abstractmethod
    def _rebuild(self, shapes: dict[str, tuple[int, ...]], hidden: list[int]) -> Model:
        """Return a model, nothing learnt, whose arrays have such shapes."""

    @abstractmethod
    def _plan(self, sample: Sample) -> float:
        """Choose sizes and rates for such rows; return the most epochs."""

    @abstractmethod
    def _begin(self, sample: Sample, prior: np.ndarray) -> Model: ...

    def _train(self, sample: Sample, epochs: float, valid: Sample | None) -> float:
        n = sample.rows.n_rows
        targets = Targets(self.kind, sample, self.n_outputs)
        self.model = model = self._begin(sample, prior_logits(self.kind, targets.mean()))
        judge = Judge(self.kind, model, valid, self.seed) if valid is not None else None
        an_epoch = max(1, round(n / self._batch))
        steps = max(1, round(epochs * an_epoch))
        every = max(1, min(an_epoch // self._checks, 400))
        rng = np.random.default_rng(self.seed)
        for step in range(steps):
            if step % an_epoch == 0:
                batches = np.array_split(rng.permutation(n), an_epoch)
            numbers = batches[step % an_epoch]
            rate = 1.0 if self._constant else _rate(step, steps)
            model.step(sample.rows, numbers, targets.take(numbers), targets.weights[numbers], rate)
            due = (step + 1) % every == 0 and step + 1 > self._unchecked * steps
            if judge is not None and (due or step + 1 == steps) and judge.has_enough((step + 1) / an_epoch):
                break
        return epochs if judge is None else judge.restore_best()


def _rate(step: int, steps: int) -> float:
    return min(1, (step + 1) / (0.1 * steps)) * (0.02 + 0.49 * (1 + np.cos(np.pi * step / steps)))


class Targets:
    """Targets as numbers for each output, of some rows at a time, and weights that average one."""

    def __init__(self, kind: str, sample: Sample, n_outputs: int):
        self._kind, self._targets, self._n_outputs = kind, sample.targets, n_outputs
        n = sample.rows.n_rows
        weights = np.ones(n) if sample.weights is None else np.asarray(sample.weights, np.float64)
        self.weights = (weights * (n / max(weights.sum(), 1e-300))).astype(np.float32)

    def take(self, numbers: np.ndarray) -> np.ndarray:
        some = self._targets[numbers]
        if sparse.issparse(some):
            return some.toarray().astype(np.float32)
        if self._kind == "multiclass":
            return (some[:, None] == np.arange(self._n_outputs)).astype(np.float32)
        return np.ascontiguousarray(np.reshape(some, (len(numbers), -1)), np.float32)

    def mean(self) -> np.ndarray:
        if self._kind == "multiclass":
            return np.bincount(self._targets, self.weights, self._n_outputs).astype(np.float32) / len(self.weights)
        if sparse.issparse(self._targets):
            return (self._targets.T @ self.weights).astype(np.float32) / np.float32(len(self.weights))
        return np.reshape(self.weights @ self._targets / len(self.weights), -1).astype(np.float32)


class Judge:
    """Looks at held-back rows, and keeps the state that had the least loss on them."""

    def __init__(self, kind: str, model: Model, valid: Sample, seed: int):
        n = valid.rows.n_rows
        if n > _CHECKED:
            valid = valid.take(np.sort(np.random.default_rng(seed).permutation(n)[:_CHECKED]))
        self._kind, self._model, self._valid = kind, model, valid
        self._least, self._epochs, self._failed, self._kept = np.inf, 0.0, 0, {}
        self.log = []

    def has_enough(self, epochs: float) -> bool:
        """Look at the model after so many epochs; return whether to stop."""
        logits = self._model.logits(self._valid.rows)
        loss = np.inf
        if np.isfinite(logits).all():
            loss = fit_blend(self._kind, [logits], self._valid.targets, self._valid.weights).loss
        self.log.append((round(epochs, 2), round(float(loss), 4)))
        if loss < self._least or not self._kept:
            self._least, self._epochs, self._failed = loss, epochs, 0
            self._kept = {name: array.copy() for name, array in self._model.arrays.items()}
        else:
            self._failed += 1
        return self._failed >= _PATIENCE or loss == np.inf

    def restore_best(self) -> float:
        """Put the best state back; return its epochs."""
        for name, array in self._kept.items():
            self._model.arrays[name][:] = array
        return self._epochs


def _column_sums(rows: CsrBatch, values: np.ndarray | None = None) -> np.ndarray:
    return np.bincount(rows.indices, values, minlength=rows.n_columns)


class VectorsExpert(NetworkExpert):
    """Vectors of columns: what pairs of columns mean together."""

    name = "vectors"

    @classmethod
    def applies(cls, sample: Sample, kind: str, n_outputs: int) -> bool:
        rows = sample.rows
        return rows.n_entries > rows.n_rows and not (n_outputs > 2 and rows.n_entries > _LONG * rows.n_rows)

    def _plan(self, sample: Sample) -> float:
        rows = sample.rows
        o = dict(e=32, h=64, drop=0.3, epochs=20, bs=512, vlr=0.015, adam=True, vinit=0.05, lr=2e-3, decay=1e-4)
        if rows.n_entries > _LONG * rows.n_rows:
            o |= dict(e=8, epochs=3, adam=False, vlr=0.1, vinit=0.01, bs=256, drop=.1)
        elif rows.n_columns < 1000:
            o |= dict(e=8, epochs=10, vlr=0.003)
        o |= getattr(self, "over", {})
        self._o, self._batch = o, o["bs"]
        self._checks = 4 if rows.n_entries > _LONG * rows.n_rows else 1
        return o["epochs"]

    def _begin(self, sample: Sample, prior: np.ndarray) -> Model:
        o, rows = self._o, sample.rows
        counts = _column_sums(rows)
        counts[-1] = 0
        rng = np.random.default_rng(self.seed)
        table = rng.random((len(counts), o["e"]), np.float32)
        table -= np.float32(0.5)
        table *= np.float32(o["vinit"] * 12**0.5)
        table[counts == 0] = 0
        sizes = np.abs(rows.values)
        if o.get("per_column"):
            k, mid = o["per_column"], np.median(sizes)
            scales = ((counts + k) / (_column_sums(rows, sizes) + k * mid)).astype(np.float32)
        else:
            scales = np.full(len(counts), 1 / max(sizes.mean(), 1e-30), np.float32)
        mlp = MLP([2 * o["e"], *[o["h"]] * 2, self.n_outputs], False, o["drop"], 0, o["decay"], self.seed)
        mlp.bias[:] = prior
        return VectorModel(self.kind, table, scales, mlp, o["lr"], o["vlr"], o["adam"])

    def _rebuild(self, shapes, hidden):
        d, e = shapes["table"]
        mlp = MLP([2 * e, *hidden, self.n_outputs], False, 0, 0, 0, 0)
        return VectorModel(self.kind, np.zeros((d, e), np.float32), np.zeros(d, np.float32), mlp, 0, 0, True)


class WeightsExpert(NetworkExpert):
    """A weight for each column and output, stopped early: better probabilities than the exact machine has."""

    name = "weights"
    _constant = True
    _unchecked = 0.0

    @classmethod
    def applies(cls, sample: Sample, kind: str, n_outputs: int) -> bool:
        rows = sample.rows
        return rows.n_entries > _LONG * rows.n_rows and rows.n_columns > 4096

    def _plan(self, sample: Sample) -> float:
        self._o = dict(epochs=3, c=4.0) | getattr(self, "over", {})
        self._checks = 4
        return self._o["epochs"]

    def _begin(self, sample: Sample, prior: np.ndarray) -> Model:
        rows = sample.rows
        table = np.zeros((rows.n_columns, self.n_outputs), np.float32)
        size = max(np.abs(rows.values).sum(dtype=np.float64) / rows.n_rows, 1e-30)
        return WeightModel(self.kind, table, prior.astype(np.float32), self._o["c"] / size)

    def _rebuild(self, shapes, hidden):
        return WeightModel(self.kind, *(np.zeros(shapes[name], np.float32) for name in ("table", "bias")), 0)


class DenseExpert(NetworkExpert):
    """Rows of few columns, straight into a network."""

    name = "dense"

    @classmethod
    def applies(cls, sample: Sample, kind: str, n_outputs: int) -> bool:
        rows = sample.rows
        return rows.n_columns <= 4097 and rows.n_entries >= 0.15 * rows.n_rows * (rows.n_columns - 1)

    def _plan(self, sample: Sample) -> float:
        self._o = dict(h=512, layers=2, drop=0.5, drop_in=0.2, epochs=15, bs=512, lr=2e-3, decay=1e-2)
        self._o |= getattr(self, "over", {})
        self._batch = self._o["bs"]
        return self._o["epochs"]

    def _begin(self, sample: Sample, prior: np.ndarray) -> Model:
        rows, o = sample.rows, self._o
        n, counts = rows.n_rows, _column_sums(rows)[:-1]
        centres = _column_sums(rows, rows.values)[:-1] / n
        squares = _column_sums(rows, np.square(rows.values, dtype=np.float64))[:-1]
        variances = np.maximum(squares - n * centres**2, 0) / np.maximum(counts, 1)
        scales = np.where(variances > 0, 1 / np.sqrt(np.where(variances > 0, variances, 1)), 0)
        mlp = MLP([len(counts), *[o["h"]] * o["layers"], self.n_outputs], True, o["drop"], o["drop_in"], o["decay"], self.seed)
        mlp.bias[:] = prior
        return DenseModel(self.kind, centres.astype(np.float32), scales.astype(np.float32), mlp, o["lr"])

    def _rebuild(self, shapes, hidden):
        (d,) = shapes["scales"]
        mlp = MLP([d, *hidden, self.n_outputs], True, 0, 0, 0, 0)
        return DenseModel(self.kind, np.zeros(d, np.float32), np.zeros(d, np.float32), mlp, 0)
