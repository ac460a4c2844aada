"""The linear model, solved to a stated gap: the expert that a blend must never be worse than."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from sketchnet.data.csr import CsrBatch
from sketchnet.experts.blend import fit_blend
from sketchnet.experts.expert import Expert
from sketchnet.experts.rows import Sample
from sketchnet.kernels import backend
from sketchnet.kernels.cpu import linear_solvers as solvers
from sketchnet.kernels.cpu.threads import over_range

_FIRST, _STEP, _LEAST, _MOST = 1.0, 3.0, 1e-3, 1e6  # strengths that are tried
_FALL = 0.998  # times the least held-back loss so far, for the next strength to be worth a trial
_TRIAL_GAP, _GAP = 1e-2, 1e-3  # of the objective, for a trial and in the end
_TOLERANCE = 0.1  # of the dual's projected slopes, to begin with
_SWEEPS, _STEPS = 1000, 100


class LinearExpert(Expert):
    """L2-regularised linear model: one output against the rest for classes and labels, least squares for numbers.

    The loss is the squared hinge where columns outnumber rows, solved in the dual, else the logistic one, solved in the
    primal. `strength` is C, the weight of the losses, times the mean squared norm of a row.
    """

    name = "linear"

    def __init__(self, kind: str, n_outputs: int, seed: int = 0, effort: str = "auto"):
        super().__init__(kind, n_outputs, seed, effort)
        self.weights = self.bias = np.empty(0, np.float32)  # (columns, outputs) and (outputs), once fitted
        self.chosen = {"strength": _FIRST}
        self.gap = np.inf
        self.trials: list[dict] = []

    def fit(self, train: Sample, valid: Sample) -> np.ndarray:
        """Choose the strength with the least held-back loss, and solve; returns the logits of the held-back rows."""
        problem, least = LinearProblem(self, train), np.inf
        for strength in _strengths(self.trials):
            weights, gap = problem.solve(strength, _TRIAL_GAP)
            logits = _logits(valid.rows, weights)
            loss = fit_blend(self.kind, [logits], valid.targets, valid.weights).loss
            self.trials.append({"strength": strength, "loss": float(loss)})
            if loss < least:
                least, self.gap = loss, gap
                self.chosen = {"strength": strength}
                self._keep(weights)
        return self.logits(valid.rows)

    def refit(self, sample: Sample) -> None:
        """Solve once more, on all rows, with the strength that was chosen."""
        weights, self.gap = LinearProblem(self, sample).solve(self.chosen["strength"], _GAP)
        self._keep(weights)

    def logits(self, rows: CsrBatch) -> np.ndarray:
        out = np.empty((rows.n_rows, self.n_outputs), np.float32)
        backend().wide_forward(*rows.arrays, self.weights, out)
        return out + self.bias

    @classmethod
    def applies(cls, sample: Sample, kind: str, n_outputs: int) -> bool:
        return True

    def contributions(self, rows: CsrBatch, outputs: np.ndarray) -> np.ndarray:
        return rows.values * self.weights[rows.indices, np.repeat(outputs, np.diff(rows.indptr))]

    def state(self) -> tuple[dict[str, np.ndarray], dict]:
        return {"weights": self.weights, "bias": self.bias}, dict(self.chosen)

    def restore(self, arrays: dict[str, np.ndarray], settings: dict) -> None:
        self.weights, self.bias = arrays["weights"], arrays["bias"]
        self.chosen = dict(settings)

    def _keep(self, weights: np.ndarray) -> None:
        self.bias = weights[:, -1].astype(np.float32)
        self.weights = np.ascontiguousarray(weights[:, :-1].T, np.float32)


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
        if least < trials[0]["loss"]:
            return


class LinearProblem:
    """An expert's rows as the solvers take them; each solve goes on from the one before."""

    def __init__(self, expert: LinearExpert, sample: Sample):
        self._sample, self._expert = sample, expert
        rows = sample.rows
        self._arrays = rows.indptr, rows.indices, rows.values
        n, d = rows.n_rows, rows.n_columns
        owners = np.repeat(np.arange(n), np.diff(rows.indptr))
        self._norms = 1 + np.bincount(owners, np.square(rows.values, dtype=np.float64), minlength=n)
        self.mean_norm = float(self._norms.mean()) if n else 1.0
        row_weights = sample.weights
        self._row_weights = np.ones(n) if row_weights is None else row_weights * (n / row_weights.sum())
        numbers = expert.kind == "regression"
        self._loss = solvers.SQUARED if numbers else solvers.SQUARED_HINGE if d > n else solvers.LOGISTIC
        dtype = np.float32 if self._loss == solvers.SQUARED_HINGE else np.float64
        self._weights = np.zeros((expert.n_outputs, d + 1), dtype)
        self._alpha = np.zeros((expert.n_outputs, n if self._loss == solvers.SQUARED_HINGE else 0))

    def solve(self, strength: float, gap: float) -> tuple[np.ndarray, float]:
        """Return weights (a row an output, its bias last) and the largest relative gap of an output."""
        costs = self._row_weights * (strength / self.mean_norm)
        gaps = np.zeros(len(self._weights))

        def some(start: int, stop: int) -> None:
            for output in range(start, stop):
                gaps[output] = self._solve_one(output, costs, gap)

        over_range(some, len(self._weights), 1 << 62)  # outputs side by side: each has weights of its own
        return self._weights.copy(), float(gaps.max())

    def _solve_one(self, output: int, costs: np.ndarray, gap: float) -> float:
        weights, targets = self._weights[output], self._targets(output)
        if self._loss != solvers.SQUARED_HINGE:
            return solvers.descend_newton(*self._arrays, targets, costs, self._loss, weights, gap, _STEPS)[1]
        alpha, tolerance, sweeps = self._alpha[output], _TOLERANCE, 0
        while True:
            rows = (*self._arrays, targets, costs, self._norms)
            sweeps += solvers.descend_dual(*rows, alpha, weights, tolerance, _SWEEPS - sweeps, self._expert.seed)
            left = self._gap(targets, costs, alpha, weights)
            if left <= gap or sweeps >= _SWEEPS:
                return left
            tolerance /= 3

    def _gap(self, targets: np.ndarray, costs: np.ndarray, alpha: np.ndarray, weights: np.ndarray) -> float:
        """Return by what share of it the objective may be above the least possible one."""
        margins = _logits(self._sample.rows, weights[None].copy())[:, 0]
        misses = np.maximum(1 - targets * margins, 0)
        size = np.square(weights, dtype=np.float64).sum() / 2
        objective = size + costs @ np.square(misses, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            softness = np.where(costs > 0, 1 / (4 * costs), 0)
        return (objective - (alpha.sum() - softness @ np.square(alpha) - size)) / objective

    def _targets(self, output: int) -> np.ndarray:
        targets = self._sample.targets
        if self._expert.kind == "regression":
            return np.asarray(targets, np.float64)
        if sparse.issparse(targets):
            own = targets[:, [output]].toarray()[:, 0] > 0
        else:
            own = np.asarray(targets) == (output if self._expert.n_outputs > 1 else 1)
        return np.where(own, 1.0, -1.0)


def _logits(rows: CsrBatch, weights: np.ndarray) -> np.ndarray:
    out = np.empty((rows.n_rows, len(weights)), np.float32)
    table = np.ascontiguousarray(weights[:, :-1].T, np.float32)
    backend().wide_forward(*rows.arrays, table, out)
    return out + weights[:, -1].astype(np.float32)
