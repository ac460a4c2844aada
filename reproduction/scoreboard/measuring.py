"""One measurement in a process of its own: settings searched, or a model fitted and test rows predicted.

    python -m reproduction.scoreboard.measuring REQUEST

prints the outcome as a line of JSON. A request is JSON: what (search or fit), rival, folder, seed, n_classes, and
budget or choice and predictions.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from reproduction.rivals.measurement import end_with, peak_memory, run_alone
from reproduction.rivals.rival import checked_rows
from reproduction.scoreboard.arithmetic import Predictions
from reproduction.scoreboard.contestant import Calibration, Contestant, Default
from reproduction.scoreboard.parts import read_part
from reproduction.scoreboard.plan import DEFAULT, LEAST_SECONDS, RIVALS
from reproduction.scoreboard.search import search, split_held_back
from sketchnet.errors import TrainingError


def measure_alone(request: dict, limit: float) -> dict:
    """The outcome of a request, from a fresh process; a TrainingError if that fails, or takes longer than `limit`."""
    command = [sys.executable, "-m", "reproduction.scoreboard.measuring", json.dumps(request)]
    try:
        status, out, said = run_alone(command, limit)
    except subprocess.TimeoutExpired:
        raise TrainingError(f"did not end within {limit:.0f} seconds and was stopped") from None
    lines = out.strip().splitlines()
    if status != 0 or not lines:
        raise TrainingError(f"exit status {status}: {(said.strip().splitlines() or ['it said nothing'])[-1]}")
    return json.loads(lines[-1])


def run_search(request: dict) -> dict:
    entrant = RIVALS[request["rival"]].rival
    entrant(seed=request["seed"]).load()
    part = read_part(Path(request["folder"]), "train", entrant.view)
    return asdict(search(entrant, part, request["n_classes"], request["seed"], request["budget"]))


def run_fit(request: dict) -> dict:
    folder, seed = Path(request["folder"]), request["seed"]
    view = "rows" if request["rival"] == DEFAULT else RIVALS[request["rival"]].rival.view
    part = read_part(folder, "train", view)
    checked_rows(part.X[:1])  # loads the kernels that check everybody's rows
    if request["rival"] == DEFAULT:
        model: Default | Contestant = Default(seed)
        model.warm_up(part)
        clock = Clock()
        model.fit(part)
        found = clock.read("fit")
    else:
        model, found = fit_contestant(request, part)
    del part
    test = read_part(folder, "test", view)
    clock = Clock(model)
    predictions = model.predict(test)
    found |= clock.read("predict") | {"peak_mib": peak_memory()} | predictions.figures()
    if not np.isfinite(predictions.probabilities).all():
        raise TrainingError("some probabilities are no finite numbers")
    write_predictions(Path(request["predictions"]), predictions)
    return found


def fit_contestant(request: dict, part) -> tuple[Contestant, dict]:
    """Fitted to all training rows; those that need held-back ones keep theirs."""
    model, choice = Contestant(RIVALS[request["rival"]].rival, request["seed"], request["n_classes"]), request["choice"]
    model.rival.load()
    rest, held = split_held_back(part) if model.rival.needs_held_back_rows else (part, None)
    clock = Clock(model)
    model.fit(rest, choice["settings"], valid=held, seconds=max(LEAST_SECONDS, request["budget"]))
    if choice["calibration"] is not None:
        model.calibration = Calibration(**choice["calibration"])
    return model, clock.read("fit") | {"settings": model.rival.settings_, "gives": model.rival.gives}


class Clock:
    """Seconds by the wall and of all threads, less what a contestant took to write rows in its own format."""

    def __init__(self, model: Default | Contestant | None = None):
        self._rival = getattr(model, "rival", None)
        self._start = self._now()

    def read(self, what: str) -> dict[str, float]:
        wall, processor = (now - start for now, start in zip(self._now(), self._start))
        return {f"{what}_seconds": wall, f"{what}_cpu_seconds": processor}

    def _now(self) -> tuple[float, float]:
        wall, processor = (getattr(self._rival, name, 0.0) for name in ("conversion", "conversion_cpu"))
        return time.perf_counter() - wall, time.process_time() - processor


def write_predictions(path: Path, found: Predictions) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        np.savez_compressed(file, decisions=found.decisions, probabilities=found.probabilities, labels=found.labels)


def read_predictions(path: Path) -> Predictions:
    with np.load(path, allow_pickle=False) as found:
        return Predictions(found["decisions"], found["probabilities"], found["labels"])


def main(arguments: list[str]) -> None:
    request, pipe = arguments
    threading.Thread(target=end_with, args=[int(pipe)], daemon=True).start()
    wanted = json.loads(request)
    print(f"\n{json.dumps({'search': run_search, 'fit': run_fit}[wanted['what']](wanted))}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
