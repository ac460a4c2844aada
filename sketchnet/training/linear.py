"""The linear model that people have today, solved exactly and blended into the wide path.

An L2-regularised support vector machine with squared hinge loss, as LIBLINEAR solves it; C is chosen on the validation
rows, then it is solved once more on all rows. Where these leave no doubt, its weights become the mean of its own and of
those of a second such model, whose columns are weighed by how well they tell classes apart (class_ratios.py).

Its margins and the network's outputs are added with weights that follow from the validation rows: the middle of all
weights whose error there is within one standard error of the best, or the linear model alone, if that is among them
(with few rows, within up to two). The sum is a network of the same form: tables of the wide path add up, and the last
layer is scaled.
"""

from __future__ import annotations

import time
from typing import Any, cast

import numpy as np
import torch

from sketchnet.nn import SketchNetwork
from sketchnet.training.class_ratios import has_negative, squared_class_ratios
from sketchnet.training.examples import Examples, sample
from sketchnet.training.linear_solver import GAP, LinearSolver, class_numbers
from sketchnet.training.model import Model

_STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # C times the mean squared norm of a row
_WEIGHED_STRENGTH = 3.0  # the same, with columns weighed
_DOUBT = 2.0  # standard errors by which these must be better
_TRIAL_ROWS = 1 << 17  # that strengths are tried on
_ANGLES = np.linspace(0, np.pi / 2, 13)
_SCALES = np.geomspace(0.05, 20, 25)
_FEW = 500  # validation rows that can hardly tell


def blend_linear(model: Model, examples: Examples, valid: Examples) -> dict:
    """Put as much of the linear model into the network as the validation rows ask for; returns what was done."""
    begun, network, n = time.perf_counter(), model.network, examples.data.n_rows
    classes = class_numbers(valid)
    some = sample(examples, _TRIAL_ROWS, model.training.seed)
    plain, strength, margins = _plain(network, some, valid)
    # All rows are asked, not only those of the trial: the model is solved again on all of them.
    weighed: Any = None if has_negative(network, [examples, valid]) else _weighed(network, [some])
    if weighed is not None:
        both = (margins + weighed.margins(valid.data)) / 2
        weighed = weighed if _surely_better(_wrong(both, classes), _wrong(margins, classes)) else None
        margins = both if weighed is not None else margins
    if some.data.n_rows < n:
        # Tables are let go before others as large are made.
        plain, wanted, weighed = None, weighed is not None, None
        plain = LinearSolver(network, [examples, valid])
        plain.solve(strength, n_parts=1)
        margins = plain.margins(valid.data)
        if wanted:
            weighed = _weighed(network, [examples])
            margins = (margins + weighed.margins(valid.data)) / 2
    outputs, size = model.outputs(valid.data), _size(margins)
    share, scale, errors = _weigh(outputs / _size(outputs), margins / size, classes, model.task.kind)
    used, gaps = weighed is not None, []
    del weighed  # its columns were weighed without the validation rows
    _scale_outputs(network, scale * np.cos(share) / _size(outputs))
    if share > 0:
        theirs = scale * np.sin(share) / size / (1 + used)
        plain.solve(strength)
        gaps.append(plain.gap)
        _add(network, plain, theirs)
        del plain
        if used:
            weighed = _weighed(network, [examples, valid])
            gaps.append(weighed.gap)
            _add(network, weighed, theirs)
    return {
        "strength": strength,
        **({"gap": round(max(gaps), 4)} if gaps else {}),
        **({"stopped": "at the limit of passes"} if max(gaps, default=0) > GAP else {}),
        "columns": "weighed" if used else "plain",
        "share": round(float(np.sin(share) / (np.sin(share) + np.cos(share))), 3),
        "linear_valid_error": float(_wrong(margins, classes).mean()),
        "valid_error": errors / valid.data.n_rows,  # before the validation rows were learnt too
        "seconds": round(time.perf_counter() - begun, 3),
    }


def _plain(network: SketchNetwork, examples: Examples, valid: Examples) -> tuple[LinearSolver, float, np.ndarray]:
    """(solver, strength, margins of the validation rows) of the strength that makes the fewest errors there."""
    solver, best = LinearSolver(network, [examples, valid]), cast(Any, None)
    for strength in _STRENGTHS:
        solver.solve(strength, n_parts=1)
        margins = solver.margins(valid.data)
        errors = _wrong(margins, class_numbers(valid)).sum()
        if best is None or errors < best[0]:
            best = (errors, strength, margins, solver.state())
    _, strength, margins, state = best
    solver.restore(state)
    return solver, strength, margins


def _weighed(network: SketchNetwork, parts: list[Examples]) -> LinearSolver | None:
    """Solved with columns weighed by class ratios, if the data has them."""
    squares = squared_class_ratios(network, parts)
    if squares is None:
        return None
    solver = LinearSolver(network, parts, squares)
    solver.solve(_WEIGHED_STRENGTH)
    return solver


def _surely_better(wrong: np.ndarray, than: np.ndarray) -> bool:
    """Paired: rows on which the two differ are coin tosses, if they are equally good."""
    return bool(than.sum() - wrong.sum() > _DOUBT * np.sqrt((wrong != than).sum()))


def _scale_outputs(network: Any, factor: float) -> None:
    with torch.no_grad():
        for parameter in (network.layers[-1].weight, network.layers[-1].bias, network.wide.weight):
            parameter *= factor


def _add(network: Any, solver: LinearSolver, factor: float) -> None:
    """Add a solved model to the wide path; its tables are used up."""
    solver.weights *= np.float32(factor)
    with torch.no_grad():
        bias = network.layers[-1].bias
        bias += torch.from_numpy(factor * solver.bias).to(bias)
        network.wide.weight += torch.from_numpy(solver.weights)


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
