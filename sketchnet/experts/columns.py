"""What the columns of a row have meant in other rows, summed: one small function makes the weights of all columns."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from sketchnet.checks import check_real
from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.experts.blend import fit_blend
from sketchnet.experts.column_statistics import ColumnStatistics, choose_knots
from sketchnet.experts.expert import Expert
from sketchnet.experts.rows import Sample
from sketchnet.kernels.cpu import column_statistics as kernels

if TYPE_CHECKING:
    from sketchnet.experts.column_function import ColumnFunction

_LONG, _DENSE, _FEW = 20, 0.1, 100_000  # entries of a row, their share of all columns, entries in all
_CHECKED = 4000  # held-back rows that say when to stop
_CHUNK = 1 << 16  # columns whose weights are made at a time


class ColumnsExpert(Expert):
    """Sums, over the entries of a row, of weights of their columns, interpolated between knots of the entries' values.

    A column's weights for an output are a function, the same for all columns and outputs, of what the column's values
    have been in rows of that output and in others. The function learns from rows without being told of their own fold;
    then it makes the weights of all rows. Where all values are equal there is one knot, and statistics are counts.
    """

    name = "columns"
    refits_cheaply = refits_from_fit = True

    def __init__(self, kind: str, n_outputs: int, seed: int = 0, effort: str = "auto"):
        super().__init__(kind, n_outputs, seed, effort)
        self._maker: WeightMaker | None = None
        self._weights: ColumnWeights | None = None  # of all columns, once they are needed

    @classmethod
    def applies(cls, sample: Sample, kind: str, n_outputs: int) -> bool:
        """Rows of many columns, or with values that differ; not those of a table, not dense ones, not few."""
        rows = sample.rows
        if sample.fields is not None or rows.n_entries < _FEW:
            return False
        length = rows.n_entries / rows.n_rows
        return length < _DENSE * rows.n_columns and (length >= _LONG or len(choose_knots(rows.values)) > 1)

    def fit(self, train: Sample, valid: Sample) -> np.ndarray:
        return self._learn(train, valid).answer(valid.rows)

    def refit(self, sample: Sample) -> None:
        """Take the statistics of all rows; the function stays as it is, if there is one."""
        if self._maker is None:
            self._learn(sample, None)
        else:
            self._maker, self._weights = self._maker.with_rows(sample, self.kind, self.n_outputs), None

    @property
    def n_columns(self) -> int:
        return len(self._all_weights().starts) - 1

    @classmethod
    def check(cls, sample: Sample, kind: str, n_outputs: int) -> None:
        if sample.rows.n_entries == 0:
            raise InputError("experts='columns' is not possible: no row has an entry")

    def logits(self, rows: CsrBatch) -> np.ndarray:
        return self._all_weights().answer(rows, rows.indices)

    def contributions(self, rows: CsrBatch, outputs: np.ndarray) -> np.ndarray:
        return self._all_weights().contributions(rows, outputs)

    def state(self) -> tuple[dict[str, np.ndarray], dict]:
        return self._all_weights().arrays(), {"chosen": self.chosen}

    def restore(self, arrays: dict[str, np.ndarray], settings: dict) -> None:
        try:
            self._weights = ColumnWeights(**{part.name: arrays[part.name] for part in fields(ColumnWeights)})
            self._weights.check(self.n_outputs)
            self.chosen = {"part": check_real("part", settings["chosen"]["part"])}
        except (InputError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise InputError(f"the arrays of expert {self.name} are not usable: {error}") from None
        self._maker = None

    def _learn(self, train: Sample, valid: Sample | None) -> WeightMaker:
        """Learn the function; without held-back rows, as much of the training as was chosen."""
        from sketchnet.experts.column_function import FunctionTraining
        from sketchnet.training.threads import thread_budget

        training = FunctionTraining(train, self.kind, self.n_outputs, self.seed)
        function = training.function
        self._maker, self._weights = maker, _ = WeightMaker(function, training.statistics), None
        with thread_budget(0):
            if valid is None:
                wanted = self.chosen.get("part", 1.0)
                next((part for part in training.run() if part >= wanted), None)
                return maker
            step = -(-valid.rows.n_rows // _CHECKED)
            some, least, kept = valid.take(np.arange(0, valid.rows.n_rows, step)), np.inf, function.state_dict()
            for part in training.run():
                loss = fit_blend(self.kind, [maker.answer(some.rows)], some.targets, some.weights).loss
                if loss < least:
                    least, kept, self.chosen = loss, deepcopy(function.state_dict()), {"part": part}
            function.load_state_dict(kept)
        return maker

    def _all_weights(self) -> ColumnWeights:
        if self._weights is None:
            if self._maker is None:
                raise InputError(f"expert {self.name} has learnt nothing yet")
            self._weights = self._maker.make(np.arange(self._maker.statistics.n_columns))
        return self._weights


@dataclass(frozen=True)
class WeightMaker:
    """The function, and the statistics of which it makes weights."""

    function: ColumnFunction
    statistics: ColumnStatistics

    def with_rows(self, sample: Sample, kind: str, n_outputs: int) -> WeightMaker:
        """Return the same function with the statistics of other rows."""
        return WeightMaker(self.function, ColumnStatistics(sample, kind, n_outputs, self.function.knots))

    def answer(self, rows: CsrBatch) -> np.ndarray:
        """Return the logits of rows, from the weights of their columns alone."""
        columns, places = kernels.number_columns(rows.indices, np.full(rows.n_columns, -1, np.int32))
        return self.make(columns).answer(rows, places)

    def make(self, columns: np.ndarray) -> ColumnWeights:
        """Return the weights of some columns, a bounded number of them at a time."""
        import torch

        from sketchnet.training.threads import thread_budget

        function = self.function
        counts, outputs, weights = [np.zeros(1, np.int64)], [], []
        with torch.no_grad(), thread_budget(0):
            for first in range(0, max(len(columns), 1), _CHUNK):
                described = self.statistics.describe(columns[first : first + _CHUNK])
                counts.append(np.diff(described.starts))
                outputs.append(described.outputs)
                weights.append(function(described).numpy())
            norm = np.array([float(part) for part in function.norm()])
            bias = function.bias.numpy().copy()
        starts = np.concatenate(counts).cumsum()
        return ColumnWeights(starts, np.concatenate(outputs), np.concatenate(weights), function.knots, bias, norm)


@dataclass(frozen=True)
class ColumnWeights:
    """Weights in groups, as kernels/cpu/column_statistics.py says, and what comes after the sums over rows."""

    starts: np.ndarray
    outputs: np.ndarray
    weights: np.ndarray  # groups x knots
    knots: np.ndarray
    bias: np.ndarray
    norm: np.ndarray  # (factor, power): the sum of a row is multiplied by factor * entries ** -power

    def answer(self, rows: CsrBatch, columns: np.ndarray) -> np.ndarray:
        """Return the logits of rows, given the number of each entry's column here."""
        groups = (self.starts, self.outputs, self.weights, self.knots)
        sums = kernels.add_up(rows.indptr - rows.indptr[0], columns, rows.values, *groups, len(self.bias))
        return sums * self._norms(rows)[:, None] + self.bias

    def contributions(self, rows: CsrBatch, chosen: np.ndarray) -> np.ndarray:
        groups = (self.starts, self.outputs, self.weights, self.knots, len(self.bias) > 1)
        offsets = rows.indptr - rows.indptr[0]
        added = kernels.entry_weights(offsets, rows.indices, rows.values, np.asarray(chosen), *groups)
        return added * np.repeat(self._norms(rows), np.diff(offsets))

    def _norms(self, rows: CsrBatch) -> np.ndarray:
        factor, power = self.norm
        return (factor * np.maximum(np.diff(rows.indptr), 1) ** -power).astype(np.float32)

    def arrays(self) -> dict[str, np.ndarray]:
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def check(self, n_outputs: int) -> None:
        """Raise InputError if these cannot be such weights."""
        n = len(self.outputs)
        types = {"starts": np.int64, "outputs": np.int32, "norm": np.float64}
        shapes = {"outputs": (n,), "weights": (n, len(self.knots)), "bias": (n_outputs,), "norm": (2,)}
        for name, array in self.arrays().items():
            if array.dtype != types.get(name, np.float32) or array.shape != shapes.get(name, (array.size,)):
                raise InputError(f"{name} has dtype {array.dtype} and shape {array.shape}")
            if not np.isfinite(array).all():
                raise InputError(f"{name} has NaN or infinity")
        if len(self.starts) < 2 or self.starts[0] != 0 or self.starts[-1] != n or (np.diff(self.starts) < 1).any():
            raise InputError("starts do not ascend from 0 to the number of groups")
        if not len(self.knots) or (np.diff(self.knots) <= 0).any():
            raise InputError("knots do not ascend")
        if n_outputs == 1 and n != len(self.starts) - 1:
            raise InputError("a column has several groups for one output")
        if ((self.outputs < 0) | (self.outputs >= n_outputs))[self._own_groups(n_outputs)].any():
            raise InputError("an output has a number that none has")

    def _own_groups(self, n_outputs: int) -> np.ndarray:
        """Return a flag for each group: whether it is one output's alone."""
        own = np.ones(len(self.outputs), bool)
        if n_outputs > 1:
            own[self.starts[:-1]] = False
        return own
