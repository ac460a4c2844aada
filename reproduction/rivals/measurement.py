"""A rival measured in a process of its own: settings chosen, fitted to all training rows, test rows predicted.

    python -m reproduction.rivals.measurement RIVAL FOLDER SEED DEVICE BUDGET

prints the outcome as a line of JSON. The settings are chosen in a child of that process, so that its memory is that of
one fit and one prediction, with the rows and the libraries.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import numpy as np
from scipy import sparse

from reproduction.rivals import Rival, find_rival
from reproduction.rivals.rival import checked_rows
from reproduction.rivals.search import Choice, choose_settings
from sketchnet.checks import check_real
from sketchnet.errors import InputError, SketchnetError, TrainingError
from sketchnet.storage import writing

_LEAST_LIMIT, _SEARCHES = 3600.0, 20  # seconds, and search budgets, after which nobody expects an end any more
_MOST_LIMIT = 2e6  # seconds: the system waits for 2**31 milliseconds at most


def write_rows(folder: str | Path, train: tuple, test: tuple) -> None:
    """Put (X, y) of both parts where `measure` finds them."""
    folder = Path(folder)
    for part, (X, y) in (("train", train), ("test", test)):
        labels = BytesIO()  # NumPy's own writing to a file tells of a full disk without the system's reason
        np.save(labels, np.asarray(y), allow_pickle=False)
        with writing(folder):
            sparse.save_npz(folder / f"{part}.npz", sparse.csr_array(X), compressed=False)
            (folder / f"{part}-labels.npy").write_bytes(labels.getbuffer())


def read_rows(folder: str | Path, part: str) -> tuple[sparse.csr_array, np.ndarray]:
    X = sparse.load_npz(Path(folder) / f"{part}.npz")
    return sparse.csr_array(X), np.load(Path(folder) / f"{part}-labels.npy")


def measure(
    rival: str,
    folder: str | Path,
    *,
    seed: int = 0,
    device: str = "cpu",
    budget: float = 60.0,
    limit: float | None = None,
) -> dict:
    """Errors in percent, seconds, MiB and the settings of a rival on the rows of a folder, from a fresh process.

    With a budget of 0 nothing is searched: the rival's first settings are taken. A rival that has not ended after
    `limit` seconds is stopped, with all processes that it started, and is a TrainingError; unless given, the limit is
    an hour and twenty times the budget.
    """
    find_rival(rival)
    budget = check_real("budget", budget)
    limit = _LEAST_LIMIT + _SEARCHES * budget if limit is None else check_real("limit", limit)
    command = [sys.executable, "-m", "reproduction.rivals.measurement", rival, folder, seed, device, budget]
    try:
        status, out, said = run_alone([str(word) for word in command], min(limit, _MOST_LIMIT))
    except subprocess.TimeoutExpired:
        raise TrainingError(f"{rival} did not end within {limit:g} seconds and was stopped") from None
    lines = out.strip().splitlines()
    if status != 0 or not lines:
        last = (said.strip().splitlines() or ["it said nothing"])[-1]
        raise TrainingError(f"measuring {rival} failed with exit status {status}: {last}")
    found = json.loads(lines[-1])
    if "refused" in found:
        raise InputError(found["refused"])
    return found


def run_alone(command: list[str], limit: float) -> tuple[int, str, str]:
    """(exit status, output, errors) of a command. It gets a session of its own: what it started, such as the search,
    would otherwise outlive it, and hold the pipes that we read open. It gets the end of a pipe, too, by which it learns
    that we are no more.
    """
    package = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))}
    # Which the command line set for itself: a rival's threads wait as they like.
    environment.pop("OMP_WAIT_POLICY", None)
    ours, theirs = os.pipe()[::-1]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "pass_fds": [theirs]}
    command = [*command, str(theirs)]
    try:
        with subprocess.Popen(command, text=True, env=environment, start_new_session=True, **pipes) as process:
            os.close(theirs)
            try:
                out, said = process.communicate(timeout=limit)
            except BaseException:  # also when we are interrupted, of which another session is not told
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise
    finally:
        os.close(ours)
    return process.returncode, out, said


def end_with(pipe: int) -> None:
    """Wait for the end of a process that holds the other end of a pipe; then end this one and all that it started."""
    os.read(pipe, 1)
    os.killpg(0, signal.SIGKILL)


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
    key, folder, seed, device, budget, pipe = arguments
    threading.Thread(target=end_with, args=[int(pipe)], daemon=True).start()
    try:
        found = outcome(find_rival(key)(seed=int(seed), device=device), folder, float(budget))
    except InputError as error:
        found = {"refused": str(error)}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
