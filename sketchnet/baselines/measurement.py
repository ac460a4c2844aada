"""A rival measured in a process of its own: settings chosen, fitted to all training rows, test rows predicted.

    python -m sketchnet.baselines.measurement RIVAL FOLDER SEED DEVICE BUDGET

prints the outcome as a line of JSON. The settings are chosen in a child of that process, so that its memory is that of
one fit and one prediction, with the rows and the libraries.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse

import sketchnet
from sketchnet.baselines import Rival, find_rival
from sketchnet.baselines.rival import checked_rows
from sketchnet.baselines.search import Choice, choose_settings
from sketchnet.errors import InputError, SketchnetError, TrainingError


def write_rows(folder: str | Path, train: tuple, test: tuple) -> None:
    """Put (X, y) of both parts where `measure` finds them."""
    for part, (X, y) in (("train", train), ("test", test)):
        sparse.save_npz(Path(folder) / f"{part}.npz", sparse.csr_array(X), compressed=False)
        np.save(Path(folder) / f"{part}-labels.npy", np.asarray(y), allow_pickle=False)


def read_rows(folder: str | Path, part: str) -> tuple[sparse.csr_array, np.ndarray]:
    X = sparse.load_npz(Path(folder) / f"{part}.npz")
    return sparse.csr_array(X), np.load(Path(folder) / f"{part}-labels.npy")


def measure(rival: str, folder: str | Path, *, seed: int = 0, device: str = "cpu", budget: float = 60.0) -> dict:
    """Errors in percent, seconds, MiB and the settings of a rival on the rows of a folder, from a fresh process.

    With a budget of 0 nothing is searched: the rival's first settings are taken.
    """
    find_rival(rival)
    package = str(Path(sketchnet.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))}
    command = [sys.executable, "-m", "sketchnet.baselines.measurement", rival, folder, seed, device, budget]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise TrainingError(f"measuring {rival} failed with exit status {done.returncode}: {last}")
    found = json.loads(lines[-1])
    if "refused" in found:
        raise InputError(found["refused"])
    return found


def peak_memory() -> float:
    """MiB that this process had resident at most.

    Not `ru_maxrss`, where /proc knows better: that one also counts what the process which started this one had.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    except (OSError, IndexError):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def outcome(rival: Rival, folder: str | Path, budget: float) -> dict:
    """What `measure` returns, measured in this process."""
    rival.load()
    X, y = read_rows(folder, "train")
    checked_rows(X[:1])  # loads the kernels that check everybody's rows
    grid = rival.grid(X, y)
    found = {"search_seconds": 0.0, "trials": 0}
    settings = grid[0]
    if budget > 0 and len(grid) > 1:
        choice = _in_a_child(rival, X, y, budget)
        settings = choice.settings
        found |= {"valid_error": choice.valid_error, "search_seconds": choice.seconds, "trials": choice.trials}
    rival.warm_up(X, y)
    found["fit_seconds"] = _seconds(rival, lambda: rival.fit(X, y, settings))
    del X, y
    X, y = read_rows(folder, "test")
    guesses = []
    found["predict_seconds"] = _seconds(rival, lambda: guesses.append(rival.predict(X)))
    found["error"] = 100 * float(np.mean(guesses[0] != y))
    found["settings"] = ", ".join(f"{name}={value}" for name, value in rival.settings_.items()) or "default"
    found["peak_mib"] = peak_memory()
    return found


def _seconds(rival: Rival, work) -> float:
    begun, before = time.perf_counter(), rival.conversion
    work()
    return time.perf_counter() - begun - (rival.conversion - before)


def _in_a_child(rival: Rival, X, y, budget: float) -> Choice:
    """Forked, so that libraries and rows need not be loaded twice; nothing has started threads so far."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_search, args=(there, rival, X, y, budget))
    child.start()
    there.close()
    try:
        found = here.recv()
    except EOFError:
        child.join()
        raise TrainingError(f"the search for settings of {rival.name} ended with status {child.exitcode}") from None
    child.join()
    if isinstance(found, SketchnetError):
        raise found
    return found


def _search(pipe, rival: Rival, X, y, budget: float) -> None:
    try:
        pipe.send(choose_settings(rival, X, y, budget))
    except SketchnetError as error:
        pipe.send(error)
    except Exception as error:
        pipe.send(TrainingError(f"the search for settings of {rival.name} failed, {type(error).__name__}: {error}"))


def main(arguments: list[str]) -> None:
    key, folder, seed, device, budget = arguments
    try:
        found = outcome(find_rival(key)(seed=int(seed), device=device), folder, float(budget))
    except InputError as error:
        found = {"refused": str(error)}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
