"""The linear model, solved to a stated gap: the expert that a blend must never be worse than."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.experts.blend import fit_blend
from sketchnet.experts.expert import Expert
from sketchnet.experts.rows import Sample
from sketchnet.kernels import backend
from sketchnet.kernels.cpu import linear_solvers as solvers
from sketchnet.kernels.cpu.linear_rows import SharedColumns, add_squares, sum_columns
from sketchnet.kernels.cpu.threads import over_range

_FIRST, _STEP, _LEAST, _MOST = 4.0, 4.0, 1e-3, 1e6  # strengths that are tried
_FALL = 0.99  # times the least held-back loss so far, for the next strength to be worth a trial
_EMPHASIS, _CLEAR = 2.0, 0.98  # what is tried, and times the least loss, to be kept
# Of the objective. In the dual, rows and columns of real sets are served as well by a gap of 0.1 as by 1e-3.
_TRIAL_GAP, _GAP, _PRIMAL_GAP = 0.05, 1e-2, 1e-4
_SWEEPS, _STEPS = 1000, 100
_TOGETHER = 16  # outputs that the dual solver takes through the rows at once


class LinearExpert(Expert):
    """L2-regularised linear model: one output against the rest for classes and labels, least squares for numbers.

    The loss is the squared hinge where columns outnumber rows, solved in the dual, else the logistic one, solved in the
    primal. The strength that held-back rows choose is C, the weight of the losses, times the mean squared norm of a
    row; the emphasis, where two classes are told apart by more columns than rows, is that of columns with unlike
    shares of the classes (1: none). `gap` says by what share of it the objective may be above its minimum.
    """

    name = "linear"
    refits_cheaply = True
    usual = {"strength": _FIRST, "emphasis": 1.0}  # noqa: RUF012

    def __init__(self, kind: str, n_outputs: int, seed: int = 0, effort: str = "auto"):
        super().__init__(kind, n_outputs, seed, effort)
        self.weights = self.bias = np.empty(0, np.float32)  # (columns, outputs) and (outputs), once fitted
        self.gap = np.inf
        self.trials: list[dict] = []

    @classmethod
    def applies(cls, sample: Sample, kind: str, n_outputs: int) -> bool:
        return True

    def fit(self, train: Sample, valid: Sample) -> np.ndarray:
        self.trials, least, logits = [], np.inf, np.empty(0)
        for settings, problem in self._problems(train):
            weights, gap = problem.solve(settings["strength"], _TRIAL_GAP)
            answers = _logits(valid.rows, weights[:-1], weights[-1])
            loss = float(fit_blend(self.kind, [answers], valid.targets, valid.weights).loss)
            self.trials.append({**settings, "loss": loss})
            if loss < (least if settings["emphasis"] == 1 else _CLEAR * least):
                self.chosen, least, logits = settings, loss, answers
                self._keep(weights, gap)
        return logits

    def _problems(self, train: Sample) -> Iterator[tuple[dict[str, float], LinearProblem]]:
        """Yield settings to try and what solves them."""
        problem = LinearProblem(self, train)
        for strength in _strengths(self.trials):
            yield {"strength": strength, "emphasis": 1.0}, problem
        if problem.dual and self.kind == "binary":
            del problem  # before there are two
            settings = {**self.chosen, "emphasis": _EMPHASIS}
            yield settings, LinearProblem(self, train, _EMPHASIS)

    def refit(self, sample: Sample) -> None:
        problem = LinearProblem(self, sample, self.chosen["emphasis"])
        self._keep(*problem.solve(self.chosen["strength"], _GAP))

    def _keep(self, weights: np.ndarray, gap: float) -> None:
        self.weights, self.bias, self.gap = weights[:-1], weights[-1], gap

    @property
    def n_columns(self) -> int:
        return len(self.weights)

    def logits(self, rows: CsrBatch) -> np.ndarray:
        return _logits(rows, self.weights, self.bias)

    def contributions(self, rows: CsrBatch, outputs: np.ndarray) -> np.ndarray:
        owners = np.repeat(outputs, np.diff(rows.indptr))
        return self.weights[rows.indices, owners] * rows.values

    def state(self) -> tuple[dict[str, np.ndarray], dict]:
        settings = {"chosen": self.chosen, "gap": self.gap, "trials": self.trials}
        return {"weights": self.weights, "bias": self.bias}, settings

    def restore(self, arrays: dict[str, np.ndarray], settings: dict) -> None:
        weights, bias = arrays.get("weights"), arrays.get("bias")
        if weights is None or weights.ndim != 2 or weights.shape[1] != self.n_outputs or weights.dtype != np.float32:
            raise InputError(f"the linear model's weights are not a float32 array with {self.n_outputs} columns")
        if bias is None or bias.shape != (self.n_outputs,) or bias.dtype != np.float32:
            raise InputError(f"the linear model's bias is not a float32 array of {self.n_outputs}")
        if not (np.isfinite(weights).all() and np.isfinite(bias).all()):
            raise InputError("the linear model has weights that are NaN or infinite")
        chosen, gap, trials = (settings.get(name) for name in ("chosen", "gap", "trials"))
        if not (isinstance(chosen, dict) and all(_is_positive(chosen.get(name)) for name in ("strength", "emphasis"))):
            raise InputError(f"the linear model's choice is {chosen!r}; it must have a positive strength and emphasis")
        if not isinstance(gap, (int, float)) or not isinstance(trials, list):
            raise InputError("the linear model's gap is no number, or its trials are no list")
        self.weights, self.bias = np.ascontiguousarray(weights), bias
        self.chosen, self.gap, self.trials = chosen, gap, trials


def _is_positive(number) -> bool:
    return isinstance(number, (int, float)) and 0 < number < np.inf


def _strengths(trials: list[dict]) -> Iterator[float]:
    """Yield strengths to try: upwards while the held-back loss falls, or downwards if it does not at first."""
    yield _FIRST
    for factor in (_STEP, 1 / _STEP):
        least, strength = trials[0]["loss"], _FIRST * factor
        while _LEAST <= strength <= _MOST:
            yield strength
            if trials[-1]["loss"] > _FALL * least:
                break
            least, strength = trials[-1]["loss"], strength * factor
        if min(trial["loss"] for trial in trials) < trials[0]["loss"]:
            return


class LinearProblem:
    """Rows as the solvers take them; each solve goes on from the one before."""

    def __init__(self, expert: LinearExpert, sample: Sample, emphasis: float = 1.0):
        n, d, self._n_outputs = sample.rows.n_rows, sample.rows.n_columns, expert.n_outputs
        weights = sample.weights
        self._row_weights = np.ones(n) if weights is None else weights * (n / weights.sum())
        self._targets = _targets(expert.kind, sample.targets, self._n_outputs)
        self._n_columns, self._seed = d, expert.seed
        self.dual = d > n and expert.kind != "regression"
        if self.dual:
            scales = None if emphasis == 1 else self._weigh_columns(sample.rows, emphasis)
            self._rows = SharedColumns(*sample.rows.arrays, d, scales)
            norms, pieces = self._rows.norms, -(-self._n_outputs // _TOGETHER)
            edges = np.linspace(0, self._n_outputs, pieces + 1).astype(int)
            self._parts = [self._part(slice(*span)) for span in zip(edges[:-1], edges[1:])]
        else:
            self._arrays, norms = sample.rows.arrays, add_squares(*sample.rows.arrays)
            self._loss = solvers.SQUARED if expert.kind == "regression" else solvers.LOGISTIC
            self._weights = np.zeros((self._n_outputs, d + 1))
        self.mean_norm = float(norms.mean()) if n else 1.0

    def _weigh_columns(self, rows: CsrBatch, emphasis: float) -> np.ndarray:
        """Return a scale for each column: the larger, the more often one class has it than the other.

        After Wang & Manning, "Baselines and bigrams", ACL 2012, NB-SVM: one part of the scale is the same for all
        columns, the others, emphasis - 1 parts, follow the logarithm of the ratio of both classes' shares of rows. The
        mean squared value of an entry is left as it is.
        """
        signs, sums = self._targets[:, 0], np.zeros((rows.n_columns, 3))
        sum_columns(*rows.arrays, self._row_weights, signs, sums)
        totals = np.array([self._row_weights[signs > 0].sum(), self._row_weights[signs < 0].sum()])
        shares = (1 + sums[:, :2]) / (2 + totals)
        ratios = np.abs(np.log(shares[:, 0] / shares[:, 1]))
        counts = sums[:, 0] + sums[:, 1]
        scales = 1 + (emphasis - 1) * ratios * (counts.sum() / max(ratios @ counts, np.finfo(float).tiny))
        size = sums[:, 2] @ np.square(scales)
        return (scales * np.sqrt(sums[:, 2].sum() / size if size > 0 else 1.0)).astype(np.float32)

    def _part(self, outputs: slice) -> tuple[slice, np.ndarray, np.ndarray, np.ndarray]:
        """Some outputs, their signs, alpha and weights."""
        signs = np.ascontiguousarray(self._targets[:, outputs])
        n_outputs = signs.shape[1]
        alpha = np.zeros((len(signs), n_outputs), np.float32)
        return outputs, signs, alpha, np.zeros((self._rows.n_columns + 1, n_outputs), np.float32)

    def solve(self, strength: float, gap: float) -> tuple[np.ndarray, float]:
        """Return weights (float32, a column an output, the bias in the last row) and the largest relative gap."""
        costs, gaps = self._row_weights * (strength / self.mean_norm), np.zeros(self._n_outputs)
        weights = np.empty((self._n_columns + 1, self._n_outputs), np.float32)

        def dual(start: int, stop: int) -> None:
            for outputs, signs, alpha, own in self._parts[start:stop]:
                solvers.stretch(self._rows.own, costs, alpha, own)
                rows = *self._rows.arrays, self._rows.own, self._rows.norms, signs
                gaps[outputs] = solvers.descend_dual(*rows, costs, alpha, own, gap, _SWEEPS, self._seed)
                part = np.empty((len(weights), alpha.shape[1]), np.float32)
                self._rows.write_weights(signs, alpha, own, part)
                weights[:, outputs] = part

        def primal(start: int, stop: int) -> None:
            for output in range(start, stop):
                rows, own = (*self._arrays, self._targets[:, output].astype(np.float64)), self._weights[output]
                _, gaps[output] = solvers.descend_newton(*rows, costs, self._loss, own, min(gap, _PRIMAL_GAP), _STEPS)
                weights[:, output] = own

        # Side by side: each has weights of its own.
        over_range(*((dual, len(self._parts)) if self.dual else (primal, self._n_outputs)), 1 << 62)
        return weights, float(gaps.max())


def _targets(kind: str, targets, n_outputs: int) -> np.ndarray:
    """Return a column an output: numbers, or -1 and 1 as bytes."""
    if kind == "regression":
        return np.asarray(targets, np.float64)[:, None]
    if sparse.issparse(targets):
        own = targets.tocsr()
        out = np.full(own.shape, -1, np.int8)
        out[np.repeat(np.arange(own.shape[0]), np.diff(own.indptr)), own.indices] = np.where(own.data > 0, 1, -1)
        return out
    classes = np.arange(n_outputs) if n_outputs > 1 else np.ones(1, int)
    return np.where(np.asarray(targets)[:, None] == classes, 1, -1).astype(np.int8)


def _logits(rows: CsrBatch, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    out = np.empty((rows.n_rows, weights.shape[1]), np.float32)
    backend().multiply_table(*rows.arrays, weights, out)
    return out + bias
