"""The function that makes the weights of columns from their statistics, and how it learns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from scipy import sparse
from torch import nn

from sketchnet.data.gather import take_rows
from sketchnet.experts.column_statistics import ColumnStatistics, Described, choose_knots, draw_folds, mean_one
from sketchnet.experts.rows import Sample
from sketchnet.kernels.cpu import column_statistics as kernels

_HIDDEN, _MORE_HIDDEN, _MANY_KNOTS = 16, 32, 4  # more where so many knots describe a column
_FOLDS = 8
_PASSES, _VISITS = 6, 4_000_000  # over the rows, and of entries, at most
_STEPS = 400  # at least
_BATCH, _FEWEST, _MOST = 16_384, 32, 1024  # entries of a batch, and bounds for its rows
_UNSEEN = 0.01  # of the columns in a batch
_CHECKS = (0.5, 0.75, 1.0)  # parts of the training after which it may end
_RATE, _WARM_UP, _LAST_RATE, _DECAY = 1e-2, 0.1, 0.02, 1e-4


class ColumnFunction(nn.Module):
    """Two hidden layers and a linear path: from a description of a column and an output to a weight for each knot.

    Also has what comes after the sum over a row: a power of the row's length, and a constant for each output.
    """

    def __init__(self, width: int, knots: np.ndarray, bias: np.ndarray, length: float, random: np.random.Generator):
        super().__init__()
        self.knots, self.length = knots, length  # of a row, on average
        hidden = _HIDDEN if len(knots) < _MANY_KNOTS else _MORE_HIDDEN
        self.layers = nn.Sequential(
            *(_linear(random, width, hidden), nn.ReLU(), _linear(random, hidden, hidden), nn.ReLU()),
            _linear(None, hidden, len(knots)),
        )
        self.path = _linear(None, width, len(knots))
        self.bias = nn.Parameter(torch.from_numpy(bias))
        self.scale, self.power = nn.Parameter(torch.tensor(0.3)), nn.Parameter(torch.tensor(0.5))
        self.register_buffer("shift", torch.zeros(width))
        self.register_buffer("size", torch.zeros(width))

    def forward(self, described: Described) -> torch.Tensor:
        numbers = (torch.from_numpy(described.numbers) - self.shift) / self.size
        return self.layers(numbers) + self.path(numbers)

    def standardise(self, described: Described) -> None:
        """Take such numbers, which must be many, for typical ones."""
        self.shift = torch.from_numpy(described.numbers.mean(axis=0))
        self.size = torch.from_numpy(described.numbers.std(axis=0) + np.float32(1e-3))

    def norm(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (factor, power): a row's sum is multiplied by factor * entries ** -power."""
        return self.scale * self.length ** (self.power - 0.5), self.power


def _linear(random: np.random.Generator | None, n_in: int, n_out: int) -> nn.Linear:
    """Return a layer with random weights, or with zeros."""
    layer = nn.utils.skip_init(nn.Linear, n_in, n_out)
    with torch.no_grad():
        layer.bias.zero_()
        layer.weight.zero_()
        if random is not None:
            draw = random.standard_normal((n_out, n_in), np.float32) * np.float32((2 / n_in) ** 0.5)
            layer.weight.copy_(torch.from_numpy(draw))
    return layer


class FunctionTraining:
    """A function and the statistics that it learns from: of each row, those in which its own fold is left out."""

    def __init__(self, sample: Sample, kind: str, n_outputs: int, seed: int):
        self._random = np.random.default_rng(seed)
        self._sample, self._kind = sample, kind
        self._weights = torch.from_numpy(mean_one(sample).astype(np.float32))
        self._numbers = np.full(sample.rows.n_columns, -1, np.int32)
        self._folds = draw_folds(sample, _FOLDS, self._random)
        knots = choose_knots(sample.rows.values)
        self.statistics = ColumnStatistics(sample, kind, n_outputs, knots, self._folds)
        bias = _first_bias(kind, self.statistics.shares)
        width = self.statistics.describe(np.zeros(1, np.int64)).numbers.shape[1]
        length = sample.rows.n_entries / sample.rows.n_rows
        self.function = ColumnFunction(width, knots, bias, length, self._random)

    def run(self) -> Iterator[float]:
        """Learn, and yield after some parts of the training how much of it is over."""
        n, length = self._sample.rows.n_rows, self.function.length
        batch = int(min(np.clip(_BATCH / length, _FEWEST, _MOST), np.ceil(n / _FOLDS)))
        steps = int(np.ceil(max(min(_PASSES * n / batch, _VISITS / length / batch), _STEPS)))
        checks = {int(np.ceil(part * steps)): part for part in _CHECKS}
        optimiser = torch.optim.AdamW(self.function.parameters(), _RATE, weight_decay=_DECAY)
        for step, (fold, rows) in zip(range(1, steps + 1), self._batches(batch)):
            for group in optimiser.param_groups:
                group["lr"] = _RATE * _rate((step - 1) / steps)
            optimiser.zero_grad()
            self._loss(fold, rows, step == 1).backward()
            optimiser.step()
            if step in checks:
                yield checks[step]

    def _batches(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (fold, its rows) for ever: rows in one batch share what is known of a column."""
        by_fold = [np.flatnonzero(self._folds == fold) for fold in range(_FOLDS)]
        while True:
            batches = []
            for fold, rows in enumerate(by_fold):
                pieces = -(-len(rows) // size)
                batches += [(fold, part) for part in np.array_split(self._random.permutation(rows), pieces or 1)]
            for number in self._random.permutation(len(batches)):
                if len(batches[number][1]):
                    yield batches[number]

    def _loss(self, fold: int, numbers: np.ndarray, first: bool) -> torch.Tensor:
        rows = take_rows(self._sample.rows, numbers)
        columns, places = kernels.number_columns(rows.indices, self._numbers)
        # Some count as never seen, which the last number stands for: what they add must be learnt, not extrapolated.
        columns[self._random.random(len(columns)) < _UNSEEN] = self._sample.rows.n_columns - 1
        described = self.statistics.describe(columns, fold)
        if first:
            self.function.standardise(described)
        entries = (rows.indptr, places, rows.values, described.starts, described.outputs)
        sums = _SumRows.apply(self.function(described), entries, self.function.knots, len(self.function.bias))
        factor, power = self.function.norm()
        lengths = np.maximum(np.diff(rows.indptr), 1).astype(np.float32)
        answers = sums * (factor * torch.from_numpy(lengths) ** -power)[:, None] + self.function.bias
        return (_row_losses(self._kind, answers, self._sample.targets[numbers]) * self._weights[numbers]).mean()


class _SumRows(torch.autograd.Function):
    """Sums over the entries of rows, by output, of weights."""

    @staticmethod
    def forward(context, weights, entries, knots, n_outputs):
        context.entries, context.knots, context.shape = entries, knots, weights.shape
        indptr, places, values, starts, outputs = entries
        own = weights.detach().numpy()
        return torch.from_numpy(kernels.add_up(indptr, places, values, starts, outputs, own, knots, n_outputs))

    @staticmethod
    def backward(context, slopes):
        out = np.zeros(context.shape, np.float32)
        kernels.slopes_of_weights(*context.entries, context.knots, slopes.contiguous().numpy(), out)
        return torch.from_numpy(out), None, None, None


def _rate(part: float) -> float:
    """Return the learning rate after a part of the training, over the highest one: a short rise, then half a cosine."""
    return min(1, part / _WARM_UP + 1e-2) * (_LAST_RATE + (1 - _LAST_RATE) * 0.5 * (1 + np.cos(np.pi * part)))


def _first_bias(kind: str, shares: np.ndarray) -> np.ndarray:
    """Return the logits of rows of which nothing is known."""
    if kind == "regression":
        return np.zeros(1, np.float32)
    return np.log(shares if kind == "multiclass" else shares / (1 - shares)).astype(np.float32)


def _row_losses(kind: str, answers: torch.Tensor, targets) -> torch.Tensor:
    if kind == "multiclass":
        return nn.functional.cross_entropy(answers, torch.from_numpy(np.asarray(targets, np.int64)), reduction="none")
    dense = targets.toarray() if sparse.issparse(targets) else np.asarray(targets)
    wanted = torch.from_numpy(dense.astype(np.float32)).reshape(answers.shape)
    if kind == "regression":
        return ((answers - wanted) ** 2)[:, 0]
    return nn.functional.binary_cross_entropy_with_logits(answers, wanted, reduction="none").mean(dim=1)
