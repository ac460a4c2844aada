"""Run what has not been run: on each set the default first, then its rivals, a process each, one after another."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from reproduction.experiments.runner import circumstances
from reproduction.scoreboard.measuring import measure_alone
from reproduction.scoreboard.parts import Part, write_part
from reproduction.scoreboard.plan import (
    DEFAULT,
    LEAST_SECONDS,
    RIVALS,
    SETS,
    TIMES_DEFAULT,
    code_of_default,
    rivals_of,
)
from reproduction.scoreboard.records import Records
from reproduction.scoreboard.sets import load_set
from sketchnet.errors import InputError, StorageError, TrainingError

_SPARE = 3600.0  # seconds, and twice those of a whole fit, after which nobody expects an end any more
_PACKAGES = (
    "scikit-learn", "vowpalwabbit", "lightgbm", "catboost", "pytabkit", "fasttext-wheel", "fasttext", "scipy", "numba",
)  # fmt: skip


@dataclass
class Board:
    """`load` gives the parts of a set by its name; `say` is told what happens."""

    records: Records
    quick: bool = False
    retry: bool = False  # also what has failed
    say: Callable[[str], None] = print
    load: Callable[[str, bool], tuple[Part, Part]] = load_set

    def run(self, sets: list[str], rivals: list[str], seeds: list[int]) -> None:
        missing = {key: RIVALS[key].missing for key in rivals}
        for key in (key for key in rivals if missing[key]):
            self.say(f"{RIVALS[key].rival.name} is left out: the package {missing[key]} is not installed")
        there = [key for key in rivals if not missing[key]]
        codes = {DEFAULT: code_of_default()} | {key: RIVALS[key].code for key in there}
        for name in sets:
            keys = [
                {"set": name, "rival": rival, "seed": seed, "quick": self.quick, "code": codes[rival]}
                for seed in seeds
                for rival in [DEFAULT, *rivals_of(SETS[name], there)]
            ]
            if any(map(self._is_due, keys)):
                self._run_set(name, keys)

    def _is_due(self, key: dict) -> bool:
        record = self.records.get(**key)
        return record is None or (self.retry and "failed" in record)

    def _run_set(self, name: str, keys: list[dict]) -> None:
        try:
            train, test = self.load(name, self.quick)
        except (InputError, StorageError) as error:
            self.say(f"{name} is left out: {error}")
            return
        with tempfile.TemporaryDirectory(prefix=f"sketchnet-{name}-") as folder:
            write_part(Path(folder), "train", train)
            write_part(Path(folder), "test", test)
            n_classes = train.y.shape[1] if train.y.ndim == 2 else int(train.y.max()) + 1
            sizes = {"rows": len(train), "test_rows": len(test), "columns": train.X.shape[1], "nnz": train.X.nnz}
            sizes |= {"classes": n_classes, "labels": "several" if train.y.ndim == 2 else "one"}
            del train, test
            for key in filter(self._is_due, keys):
                begun = time.perf_counter()
                found = self._measure(key, folder, n_classes)
                where = circumstances("cpu", time.perf_counter() - begun) | {"packages": dict(_versions())}
                self.records.add(key | found | {"data": sizes, "circumstances": where})
                self.say(f"{name} {key['rival']} seed {key['seed']}: {_summary(found)}")

    def _measure(self, key: dict, folder: str, n_classes: int) -> dict:
        request = {"rival": key["rival"], "folder": folder, "seed": key["seed"], "n_classes": n_classes}
        request |= {"predictions": str(self.records.predictions_path(**key))}
        found: dict = {}
        try:
            budget = 0.0
            if key["rival"] != DEFAULT:
                budget = self._budget(key)
                found["budget"] = budget
            limit = _SPARE + 2 * max(budget, LEAST_SECONDS)
            choice = self.records.choice(**key)
            if key["rival"] != DEFAULT and choice is None:
                choice = measure_alone(request | {"what": "search", "budget": budget}, limit)
            if choice is not None:
                found["choice"] = choice
            return found | measure_alone(request | {"what": "fit", "budget": budget, "choice": choice}, limit)
        except TrainingError as error:
            return found | {"failed": str(error)}

    def _budget(self, key: dict) -> float:
        """Seconds of search: by the default's last fit of this set with this seed."""
        own = self.records.current(self.quick).get(key["set"], {}).get(DEFAULT, [])
        seconds = [run["fit_seconds"] for run in own if "fit_seconds" in run]
        if not seconds:
            raise TrainingError("the default failed on this set, so that there is no budget")
        return TIMES_DEFAULT * float(np.mean(seconds))


def _versions() -> Iterator[tuple[str, str]]:
    for package in _PACKAGES:
        try:
            yield package, version(package)
        except PackageNotFoundError:
            continue


def _summary(found: dict) -> str:
    if "failed" in found:
        return f"failed: {found['failed']}"
    searched = found.get("choice", {}).get("trials")
    trials = f", {searched} trials" if searched else ""
    return (
        f"error {found['error']:.2f} %, log loss {found['log_loss']:.4f}, fit {found['fit_seconds']:.1f} s, "
        f"{found['peak_mib']:.0f} MiB{trials}"
    )
