"""Small networks: vectors of columns with their interactions, weights of columns stopped early, dense rows.

One training loop for all. Now and then held-back rows are looked at, by their loss after calibration, and the best
state is kept; how many epochs that took is what `refit` goes by.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from sketchnet.checks import check_integer, check_real
from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.experts.blend import fit_blend
from sketchnet.experts.expert import Expert
from sketchnet.experts.mlp import MLP, one_thread
from sketchnet.experts.readers import DenseModel, Model, VectorModel, WeightModel, prior_logits
from sketchnet.experts.rows import Sample
from sketchnet.kernels.cpu import bags


@dataclass(frozen=True)
class Plan:
    """Sizes and rates, which follow from the rows."""

    epochs: float  # at most
    batch: int
    shorter: tuple[float, ...] = ()  # schedules, tried as well
    checks: int = 1  # an epoch
    warm: bool = True  # the rate rises at first and falls along a cosine; else it is the same throughout
    hidden: tuple[int, ...] = ()
    rate: float = 0.0  # of the dense layers
    drop: float = 0.0  # share of hidden units that a step leaves out
    width: int = 0  # numbers a vector
    table_rate: float = 0.0  # of vectors or weights, for values of usual size


_CHECKED = 4000  # held-back rows that decide when to stop, at most
_STEPS = 400  # between checks, at most
_UNCHECKED = 0.1  # share of the schedule before the first check
_PATIENCE = 4  # checks without a better one
_TRUST = 10  # entries that the usual size of a value counts for, beside those of a column
_FEW, _DENSE = 4096, 0.15  # columns, and share of them that a row has: made dense
_VISITS, _DENSE_VISITS = 1e7, 1.5e6  # of rows in training, at most: rows times epochs
_NUMBERS = 1 << 27  # in a table, at most
_SPREAD = 0.05  # of the numbers of a vector at first
_SCHEDULES = 4, 16  # epochs: some rows are overfitted after two, others want all
_STRIDE = 15.0  # by which a first step of weights could change the logit of a row of usual size
_LONG = 40  # non-zeros a row, on average: from here on rows are long


class NetworkExpert(Expert):
    """What the three have in common: batches, schedule, stopping, and state.

    `chosen` has the epochs after which held-back rows had the least loss, and those that the schedule was made for.
    """

    def __init__(self, kind: str, n_outputs: int, seed: int = 0, effort: str = "auto"):
        super().__init__(kind, n_outputs, seed, effort)
        self._model: Model | None = None
        self._hidden: tuple[int, ...] = ()

    def fit(self, train: Sample, valid: Sample) -> np.ndarray:
        plan, least = self._plan(train), np.inf
        for epochs in [*(part for part in plan.shorter if part < plan.epochs), plan.epochs]:
            model, reached, loss = self._train(train, replace(plan, epochs=epochs), valid)
            if loss < least or least == np.inf:
                self._model, least = model, loss
                self.chosen = {"epochs": reached, "schedule": epochs}
        self._hidden = plan.hidden
        return self.logits(valid.rows)

    def refit(self, sample: Sample) -> None:
        plan = self._plan(sample)
        plan = replace(plan, epochs=self.chosen.get("schedule", plan.epochs))
        stop = self.chosen.get("epochs", plan.epochs)
        self._model, self._hidden = self._train(sample, plan, None, stop)[0], plan.hidden

    @property
    def n_columns(self) -> int:
        return self._fitted().n_columns

    def logits(self, rows: CsrBatch) -> np.ndarray:
        with one_thread():
            return self._model_for(rows).logits(rows)

    def contributions(self, rows: CsrBatch, outputs: np.ndarray) -> np.ndarray:
        with one_thread():
            return self._model_for(rows).effects(rows, outputs)

    def state(self) -> tuple[dict[str, np.ndarray], dict]:
        return dict(self._fitted().arrays), {"hidden": list(self._hidden), "chosen": self.chosen}

    def restore(self, arrays: dict[str, np.ndarray], settings: dict) -> None:
        try:
            chosen = {name: check_real(name, settings["chosen"][name]) for name in settings["chosen"]}
            hidden = tuple(check_integer("hidden", units, 1, 1 << 12) for units in settings["hidden"])
            shapes = {name: array.shape for name, array in arrays.items()}
            model = self._rebuild(shapes, hidden)
            if shapes != {name: array.shape for name, array in model.arrays.items()}:
                raise InputError("their shapes do not fit each other")
            if not all(array.dtype == np.float32 and np.isfinite(array).all() for array in arrays.values()):
                raise InputError("they are not finite numbers of 32 bits")
            if any((array[1] < 0).any() for name, array in arrays.items() if name.startswith("moments")):
                raise InputError("a variance is negative")
        except (InputError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise InputError(f"the arrays of expert {self.name} are not usable: {error}") from None
        for name, array in arrays.items():
            model.arrays[name][...] = array
        self._model, self._hidden, self.chosen = model, hidden, chosen

    def _model_for(self, rows: CsrBatch) -> Model:
        model = self._fitted()
        if rows.n_columns != model.n_columns:
            raise InputError(f"the expert {self.name} has {model.n_columns} columns, the rows {rows.n_columns}")
        return model

    def _fitted(self) -> Model:
        if self._model is None:
            raise InputError(f"the expert {self.name} has learnt nothing yet")
        return self._model

    @abstractmethod
    def _rebuild(self, shapes: dict[str, tuple[int, ...]], hidden: tuple[int, ...]) -> Model:
        """Return a model, nothing learnt, whose arrays have such shapes."""

    @abstractmethod
    def _plan(self, sample: Sample) -> Plan:
        """Return sizes and rates for such rows."""

    @abstractmethod
    def _begin(self, sample: Sample, plan: Plan, prior: np.ndarray) -> Model:
        """Return a model that has learnt nothing but the outputs' constants."""

    def _train(
        self, sample: Sample, plan: Plan, valid: Sample | None, stop: float = np.inf
    ) -> tuple[Model, float, float]:
        """Return a model, the epochs after which it was best on held-back rows, and its loss on them."""
        n, targets = sample.rows.n_rows, Targets(self.kind, sample, self.n_outputs)
        model = self._begin(sample, plan, prior_logits(self.kind, targets.mean()))
        judge = None if valid is None else Judge(self.kind, model, valid, self.seed)
        an_epoch = max(1, round(n / plan.batch))
        steps = max(1, round(plan.epochs * an_epoch))
        last = max(1, round(min(stop, plan.epochs) * an_epoch))
        pause = max(1, min(an_epoch // plan.checks, _STEPS))
        rng = np.random.default_rng(self.seed)
        with one_thread():
            for step in range(last):
                if step % an_epoch == 0:
                    batches = np.array_split(rng.permutation(n), an_epoch)
                numbers, done = batches[step % an_epoch], step + 1
                rate = _rate(step, steps) if plan.warm else 1.0
                model.step(sample.rows, numbers, targets.take(numbers), targets.weights[numbers], rate)
                is_due = done == steps or (done % pause == 0 and done > _UNCHECKED * steps)
                if judge is not None and is_due and judge.has_enough(done / an_epoch):
                    break
        epochs, loss = (plan.epochs, np.nan) if judge is None else judge.restore_best()
        model.forget_unseen()
        return model, epochs, loss


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
        self._least, self._epochs, self._failed = np.inf, 0.01, 0
        self._kept = {name: array.copy() for name, array in model.arrays.items()}

    def has_enough(self, epochs: float) -> bool:
        """Look at the model after so many epochs; return whether to stop."""
        logits = self._model.logits(self._valid.rows)
        loss = np.inf
        if np.isfinite(logits).all():
            loss = fit_blend(self._kind, [logits], self._valid.targets, self._valid.weights).loss
        if loss < self._least:
            self._least, self._epochs, self._failed = loss, epochs, 0
            for name, array in self._model.arrays.items():
                self._kept[name][:] = array
        else:
            self._failed += 1
        return self._failed >= _PATIENCE or loss == np.inf

    def restore_best(self) -> tuple[float, float]:
        """Put the best state back; return its epochs and its loss."""
        for name, array in self._kept.items():
            self._model.arrays[name][:] = array
        return self._epochs, self._least


def _measure(rows: CsrBatch) -> np.ndarray:
    """Return for each column how many entries it has, and the sums of their sizes and squared sizes."""
    found = np.zeros((3, rows.n_columns))
    bags.measure_values(rows.indices, rows.values, *found)
    found[:, -1] = 0  # columns that nobody has seen
    return found


class VectorsExpert(NetworkExpert):
    """Vectors of columns: what pairs of columns mean together."""

    name = "vectors"

    @classmethod
    def applies(cls, sample: Sample, kind: str, n_outputs: int) -> bool:
        rows = sample.rows
        if _are_dense(rows) or rows.n_entries <= rows.n_rows or rows.n_columns > _NUMBERS // 8:
            return False
        return n_outputs <= 2 or not _are_long(rows)

    def _plan(self, sample: Sample) -> Plan:
        rows = sample.rows
        are_long = _are_long(rows)
        return Plan(
            epochs=float(np.clip(_VISITS / max(rows.n_rows, 1), 1, 2 if are_long else _SCHEDULES[1])),
            shorter=() if are_long else (_SCHEDULES[0],),
            batch=int(np.clip(rows.n_rows // 80, 32, 256 if are_long else 512)),
            checks=4 if are_long else 1,
            hidden=(64, 64),
            rate=2e-3,
            drop=0.3,
            width=8 if are_long or rows.n_columns > _NUMBERS // 32 else 32,
            table_rate=0.3,
        )

    def _begin(self, sample: Sample, plan: Plan, prior: np.ndarray) -> Model:
        counts, sizes, _ = _measure(sample.rows)
        some = sample.rows.values[:: 1 + (sample.rows.n_entries >> 16)]
        usual = np.median(np.abs(some)) if len(some) else 1.0
        sizes = np.maximum((sizes + _TRUST * usual) / (counts + _TRUST), 1e-30)
        table = np.random.default_rng(self.seed).random((len(counts), plan.width), np.float32)
        table -= np.float32(0.5)
        table *= (_SPREAD * 12**0.5 * (counts > 0) / sizes).astype(np.float32)[:, None]
        mlp = MLP([2 * plan.width, *plan.hidden, self.n_outputs], drop=plan.drop, seed=self.seed)
        mlp.bias[:] = prior
        return VectorModel(self.kind, table, mlp, plan.rate, (plan.table_rate / sizes).astype(np.float32))

    def _rebuild(self, shapes: dict[str, tuple[int, ...]], hidden: tuple[int, ...]) -> Model:
        n_columns, width = shapes["table"]
        mlp = MLP([2 * width, *hidden, self.n_outputs])
        return VectorModel(self.kind, np.zeros((n_columns, width), np.float32), mlp, 0, np.zeros(n_columns, np.float32))


class WeightsExpert(NetworkExpert):
    """A weight for each column and output, stopped early: better probabilities than the exact machine has."""

    name = "weights"

    @classmethod
    def applies(cls, sample: Sample, kind: str, n_outputs: int) -> bool:
        fits = sample.rows.n_columns * n_outputs <= _NUMBERS
        return fits and _are_long(sample.rows) and not _are_dense(sample.rows)

    def _plan(self, sample: Sample) -> Plan:
        rows = sample.rows
        length = np.abs(rows.values).sum(dtype=np.float64) / max(rows.n_rows, 1)
        return Plan(epochs=3, batch=256, checks=4, warm=False, table_rate=_STRIDE / max(length, 1e-30))

    def _begin(self, sample: Sample, plan: Plan, prior: np.ndarray) -> Model:
        table = np.zeros((sample.rows.n_columns, self.n_outputs), np.float32)
        return WeightModel(self.kind, table, prior.astype(np.float32), plan.table_rate)

    def _rebuild(self, shapes: dict[str, tuple[int, ...]], hidden: tuple[int, ...]) -> Model:
        k = self.n_outputs
        return WeightModel(self.kind, np.zeros((shapes["table"][0], k), np.float32), np.zeros(k, np.float32), 0)


class DenseExpert(NetworkExpert):
    """Rows of few columns, straight into a network."""

    name = "dense"

    @classmethod
    def check(cls, sample: Sample, kind: str, n_outputs: int) -> None:
        n_columns = sample.rows.n_columns - 1
        if sample.rows.n_entries == 0:
            raise InputError("experts='dense' is not possible: no row has an entry")
        if n_columns > _FEW:
            raise InputError(f"experts='dense' is for at most {_FEW:,} columns that occur; there are {n_columns:,}")

    @classmethod
    def applies(cls, sample: Sample, kind: str, n_outputs: int) -> bool:
        return _are_dense(sample.rows)

    def _plan(self, sample: Sample) -> Plan:
        n = sample.rows.n_rows
        epochs, units = float(np.clip(_DENSE_VISITS / max(n, 1), 1, 10)), int(np.clip(n // 40, 64, 512))
        batch = int(np.clip(n // 80, 16, 256))
        return Plan(epochs=epochs, batch=batch, hidden=(units, units), rate=1e-2, drop=0.3)

    def _begin(self, sample: Sample, plan: Plan, prior: np.ndarray) -> Model:
        rows = sample.rows
        counts, _, squares = _measure(rows)[:, :-1]
        centres = np.bincount(rows.indices, rows.values, rows.n_columns)[:-1] / rows.n_rows
        variances = np.maximum(squares - rows.n_rows * centres**2, 0) / np.maximum(counts, 1)
        scales = np.where(variances > 0, 1 / np.sqrt(np.where(variances > 0, variances, 1)), 0)
        widths = [len(counts), *plan.hidden, self.n_outputs]
        mlp = MLP(widths, deep=True, drop=plan.drop, drop_input=0.1, decay=1e-2, seed=self.seed)
        mlp.bias[:] = prior
        return DenseModel(self.kind, centres.astype(np.float32), scales.astype(np.float32), mlp, plan.rate)

    def _rebuild(self, shapes: dict[str, tuple[int, ...]], hidden: tuple[int, ...]) -> Model:
        (width,) = shapes["scales"]
        mlp = MLP([width, *hidden, self.n_outputs], deep=True)
        return DenseModel(self.kind, np.zeros(width, np.float32), np.zeros(width, np.float32), mlp, 0)


def _are_long(rows: CsrBatch) -> bool:
    return rows.n_entries > _LONG * rows.n_rows


def _are_dense(rows: CsrBatch) -> bool:
    n_columns = rows.n_columns - 1
    return 0 < n_columns <= _FEW and rows.n_entries >= _DENSE * rows.n_rows * n_columns
