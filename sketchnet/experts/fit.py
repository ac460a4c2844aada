"""From rows to a blend of experts. It reads top to bottom."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError, TrainingError
from sketchnet.experts.blend import Blend, row_losses
from sketchnet.experts.choice import HeldBack, choose_experts
from sketchnet.experts.expert import Expert
from sketchnet.experts.fields import find_fields
from sketchnet.experts.kept import KeptExperts
from sketchnet.experts.mlp import one_thread
from sketchnet.experts.model import EXPERTS, BlendedModel, expert_class
from sketchnet.experts.parallel import run_side_by_side
from sketchnet.experts.rows import Sample, SeenColumns
from sketchnet.experts.settings import BlendSettings
from sketchnet.experts.splits import Split, split_rows, usual_share
from sketchnet.kernels.cpu.threads import limited
from sketchnet.memory import parse_memory
from sketchnet.training.course import silent
from sketchnet.training.examples import Examples, part_of, sample
from sketchnet.training.task import Task

_LONGEST_FIRST = ("sketch", "dense", "trees", "columns", "linear", "vectors", "weights")  # so that cores end together
_ENTRY_BYTES = 8 + 8  # of rows in memory: a column number and a value, and once more in the part that is learnt from
_CHEAP = 2_000_000  # entries of rows from which all experts are fitted once more; of more rows the linear one alone


@dataclass
class _Run:
    """Whom a run tells, where it keeps what is done, and since when it goes."""

    report: Callable[[dict], None]
    tick: Callable[[int, int, str], None]
    kept: KeptExperts
    history: list[dict]
    begun: float

    @property
    def seconds(self) -> float:
        return round(time.perf_counter() - self.begun, 3)

    def note(self, record: dict) -> None:
        self.history.append(record)
        self.report(record)


def fit_blend_of_experts(
    task: Task,
    examples: Examples,
    valid: Examples | None,
    settings: BlendSettings,
    *,
    groups: np.ndarray | None = None,
    memory: str | int | None = "1GiB",
    threads: int | None = None,
    data: dict | None = None,
    report: Callable[[dict], None] = silent,
    tick: Callable[[int, int, str], None] = silent,
    work: Path | None = None,
) -> BlendedModel:
    """Return the blend of those experts that make held-back rows better.

    `valid`: the rows that are held back, else some of the examples are. `groups`: a number for each row, of rows that
    belong together. Finished experts are kept in the folder `work`, from which another call with the same rows and
    settings goes on. Rows that do not fit the `memory` are represented by a random part of them.
    """
    run = _Run(report, tick, KeptExperts(work), [], time.perf_counter())
    with limited(threads), one_thread():
        examples, groups, valid = _with_weight(examples, groups, valid)
        rows, groups = _rows_within(memory, examples, groups, settings, run)
        columns = SeenColumns.count(rows.data)
        compact = columns.compact(rows.data)
        fields = find_fields(compact, columns.ids)
        compact = columns.scale_numbers(compact, fields)
        whole = Sample(compact, rows.targets, rows.weights, groups, fields)
        run.note({"stage": "read", "rows": whole.rows.n_rows, "columns": len(columns.ids), "seconds": run.seconds})
        beside = None if valid is None else Sample(columns.compact(valid.data), valid.targets, valid.weights)
        fitting = _Fitting(task, settings, whole, beside, run)
        experts, blend = fitting.go()
        width = examples.data.n_columns
        model = BlendedModel(task, columns, experts, blend, width, settings.to_dict(), dict(data or {}))
        loss = {"loss": float(blend.loss)} if np.isfinite(blend.loss) else {}
        run.note({"stage": "blend", **_shares(model, whole), **loss, "seconds": run.seconds})
        model.history = run.history
    return model


def _with_weight(examples: Examples, groups: np.ndarray | None, valid: Examples | None):
    """Return the same without rows of no weight, which nothing is to be learnt from."""
    keep = None if examples.weights is None else np.flatnonzero(examples.weights > 0)
    if keep is not None and len(keep) < examples.data.n_rows:
        examples, groups = part_of(examples, keep), None if groups is None else groups[keep]
    if valid is not None and valid.weights is not None:
        valid = part_of(valid, np.flatnonzero(valid.weights > 0))
    return examples, groups, valid


def _rows_within(memory, examples: Examples, groups, settings: BlendSettings, run: _Run):
    """Return the examples, or as many random ones as the memory holds, and their groups."""
    n, entries = examples.data.n_rows, max(1, examples.data.n_entries)
    held = 0 if isinstance(examples.data, CsrBatch) else entries * _ENTRY_BYTES
    budget = parse_memory(memory)
    if held <= budget:
        return examples, groups
    if groups is not None:
        raise InputError(f"groups need all {n:,} rows in memory; name a memory of {held:,} bytes or more")
    part = sample(examples, max(1, int(n * budget / held)), settings.seed)
    run.note({"stage": "sample", "rows": part.data.n_rows, "of": n})
    return part, None


def _shares(model: BlendedModel, whole: Sample) -> dict[str, float]:
    """Return what part of the blend's logits each expert moves: its weight times its deviation on some rows."""
    some = whole.rows.rows(slice(0, min(whole.rows.n_rows, 2000)))
    sizes = [
        w * float(e.logits(some).std(dtype=np.float64)) for w, e in zip(model.blend.weights, model.experts.values())
    ]
    sizes = np.nan_to_num(sizes, posinf=0.0).tolist()
    total = sum(sizes) or 1.0
    return {name: round(float(size / total), 4) for name, size in zip(model.experts, sizes)}


@dataclass(frozen=True)
class _Fit:
    """An expert that was fitted on a split, its answers for the rows that were held back, and how long it took."""

    expert: Expert
    answers: np.ndarray
    seconds: float


class _Parts:
    """The rows to learn from and those held back, for each split; taken once where there is one split alone."""

    def __init__(self, whole: Sample, beside: Sample | None, splits: list[Split]):
        self._whole, self._beside, self._splits = whole, beside, splits
        self._only = self._take(0) if beside is None and len(splits) == 1 else None

    def __getitem__(self, number: int) -> tuple[Sample, Sample]:
        if self._beside is not None:
            return self._whole, self._beside
        return self._only or self._take(number)

    def _take(self, number: int) -> tuple[Sample, Sample]:
        train, valid = self._splits[number]
        return self._whole.take(train), self._whole.take(valid)


class _Fitting:
    """Fits experts on the splits of some rows, and those that are chosen on all of them."""

    def __init__(self, task: Task, settings: BlendSettings, whole: Sample, beside: Sample | None, run: _Run):
        self._task, self._settings, self._whole, self._beside, self._run = task, settings, whole, beside, run
        work = whole.rows.n_entries * task.n_outputs
        self._cheap = whole.rows.n_entries <= _CHEAP or settings.effort == "best"
        usual = usual_share(self._cheap and settings.effort != "quick")
        share = usual if isinstance(settings.validation_fraction, str) else settings.validation_fraction
        self._splits: list[Split] = []
        if beside is None:
            n = whole.rows.n_rows
            self._splits = split_rows(n, work, share, settings.seed, whole.groups, settings.valid_last)
        self._done, self._planned = 0, 1

    def go(self) -> tuple[dict[str, Expert], Blend]:
        names = self._names()
        if self._beside is None and not self._splits:  # too few rows to tell what is good
            names = names if self._settings.experts != "auto" else names[:1]
            self._planned = len(names)
            experts = self._finish_all(names, {})
            weights = np.full(len(names), 1 / len(names))
            return experts, Blend(weights, np.zeros(self._task.n_outputs), float("nan"))
        self._planned = (len(names) + 1) * max(1, len(self._splits))
        fitted, logits = self._fit_all(names)
        chosen, blend = choose_experts(self._held_back(), logits, self._settings.metric)
        return self._finish_all(chosen, fitted), blend

    def _names(self) -> list[str]:
        kind, n_outputs = self._task.kind, self._task.n_outputs
        if self._settings.experts != "auto":
            for name in self._settings.experts:
                expert_class(name).check(self._whole, kind, n_outputs)
            return list(self._settings.experts)
        return [name for name in EXPERTS if expert_class(name).applies(self._whole, kind, n_outputs)]

    def _fits_again(self) -> bool:
        """Whether experts other than the linear one learn from all rows in the end."""
        if self._beside is not None or self._settings.effort == "quick":
            return len(self._splits) > 1
        return len(self._splits) > 1 or self._cheap

    def _held_back(self) -> HeldBack:
        if self._beside is not None:
            return HeldBack(self._task, self._beside.targets, self._beside.weights)
        rows = np.concatenate([valid for _, valid in self._splits])
        weights = None if self._whole.weights is None else self._whole.weights[rows]
        return HeldBack(self._task, self._whole.targets[rows], weights)

    def _fit_all(self, names: list[str]) -> tuple[dict[str, list[Expert]], dict[str, np.ndarray]]:
        """Return each expert, fitted once a split, and its logits of all rows that were held back."""
        n_splits, parts = max(1, len(self._splits)), _Parts(self._whole, self._beside, self._splits)
        order = names if self._settings.seconds is not None else sorted(names, key=_LONGEST_FIRST.index)
        jobs = [(name, number) for name in order for number in range(n_splits)]
        done: dict[tuple[str, int], _Fit | None] = {}
        fitted: dict[str, list[Expert]] = {}
        logits: dict[str, np.ndarray] = {}
        left = list(names)
        self._run.tick(0, self._planned, "fitting experts")
        with closing(run_side_by_side([partial(self._fit_one, *job, parts, names[0]) for job in jobs])) as running:
            for place, result in running:
                done[jobs[place]] = result
                name, number = jobs[place]
                if result is not None and (n_splits > 1 or not result.expert.refits_from_fit):
                    self._run.kept.write(f"{name}-{number}", result.expert, {"logits": result.answers})
                self._tick(f"{name} fitted")
                while left and all((left[0], split) in done for split in range(n_splits)):  # noted in the usual order
                    name = left.pop(0)
                    results = [done[name, split] for split in range(n_splits)]
                    self._keep_finite(name, [each for each in results if each is not None], n_splits, fitted, logits)
        return fitted, logits

    def _keep_finite(self, name: str, results: list, n_splits: int, fitted: dict, logits: dict) -> None:
        """Note what an expert reached; it is left out where it was not fitted, or its answers are no numbers."""
        if len(results) < n_splits:
            self._run.note({"stage": name, "left_out": f"{self._settings.seconds:g} seconds are over"})
            return
        answers = np.concatenate([each.answers for each in results])
        if len(answers) == 0 or not np.isfinite(answers).all():
            if name == "linear":
                raise TrainingError("the linear model has no finite answers: values of the rows are too large")
            self._run.note({"stage": name, "left_out": "its answers are not finite"})
            return
        fitted[name], logits[name] = [each.expert for each in results], answers
        self._note(name, fitted[name], answers, sum(each.seconds for each in results))

    def _fit_one(self, name: str, number: int, parts: _Parts, first: str) -> _Fit | None:
        """Return an expert fitted on a split; None where time is over."""
        limit, begun, expert = self._settings.seconds, time.perf_counter(), self._new(name)
        kept = self._run.kept.read(f"{name}-{number}", expert)
        if kept is not None:
            return _Fit(expert, kept["logits"], 0.0)
        if limit is not None and name != first and self._run.seconds > limit:
            return None
        answers = expert.fit(*parts[number])
        return _Fit(expert, answers, time.perf_counter() - begun)

    def _finish_all(self, names: list[str], fitted: dict[str, list[Expert]]) -> dict[str, Expert]:
        """Return the experts to keep: fitted on all rows, with what their splits chose, or on the split."""
        again = self._fits_again()
        jobs = [partial(self._finish, name, fitted.get(name, []), again) for name in names]
        done: dict[int, tuple[Expert, float | None]] = {}
        with closing(run_side_by_side(jobs)) as running:
            for place, result in running:
                done[place] = expert, seconds = result
                if seconds is not None:
                    self._run.kept.write(f"{names[place]}-all", expert, {})
                self._tick(f"{names[place]} fitted on all rows")
        for place, name in enumerate(names):
            expert, seconds = done[place]
            if seconds is not None:
                record = {"stage": f"{name} on all rows", **expert.chosen, "seconds": round(seconds, 3)}
                self._run.note(record)
        return {name: done[place][0] for place, name in enumerate(names)}

    def _finish(self, name: str, fitted: list[Expert], again: bool) -> tuple[Expert, float | None]:
        if not (again or expert_class(name).refits_cheaply or len(fitted) != 1):
            return fitted[0], None
        expert = self._new(name) if len(fitted) != 1 else fitted[0]
        if len(fitted) > 1:
            expert.chosen = {key: _mean_of([each.chosen[key] for each in fitted]) for key in fitted[0].chosen}
        begun = time.perf_counter()
        if self._run.kept.read(f"{name}-all", expert) is None:
            expert.refit(self._whole)
        return expert, time.perf_counter() - begun

    def _new(self, name: str) -> Expert:
        return expert_class(name)(self._task.kind, self._task.n_outputs, self._settings.seed, self._settings.effort)

    def _note(self, name: str, fitted: list[Expert], logits: np.ndarray, seconds: float) -> None:
        rows = self._held_back()
        answers = rows.blend([logits]).apply([logits])
        losses = row_losses(self._task.kind, answers, rows.targets)
        chosen = {key: _mean_of([expert.chosen[key] for expert in fitted]) for key in fitted[0].chosen}
        shares = None if rows.weights is None else rows.weights / rows.weights.sum()
        loss = float(losses.mean() if shares is None else shares @ losses)
        self._run.note({"stage": name, "valid_loss": loss, **chosen, "seconds": round(seconds, 3)})

    def _tick(self, what: str) -> None:
        self._done += 1
        self._run.tick(min(self._done, self._planned), self._planned, what)


def _mean_of(values: list[float]) -> float:
    """Return the geometric mean, or of numbers that are not all positive the arithmetic one."""
    return float(np.exp(np.log(values).mean())) if min(values) > 0 else float(np.mean(values))
