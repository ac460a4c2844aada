"""Measure what labels ask for and a results file does not have yet."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

from reproduction.experiments.experiment import Cell, Experiment
from reproduction.experiments.recipes import ALONE, ON_PROCESSOR, SPACES, find_recipe
from reproduction.experiments.results import Results, why_none
from reproduction.experiments.search import load_optuna, search_settings
from sketchnet import __version__
from sketchnet.checks import check_device
from sketchnet.errors import InputError, Interrupted, SketchnetError, StorageError
from sketchnet.storage import make_folder, workspace

RESULTS = "results.jsonl"


def reproduce(
    experiments: list[Experiment],
    scale: str,
    folder: str | Path,
    *,
    device: str = "auto",
    search: int = 0,
    seeds: int | None = None,
    first_seed: int = 0,
    jobs: int = 1,
    progress: Callable[[int, int, str], None] = lambda done, total, note: None,
) -> Results:
    """Measure the missing cells of the experiments, one line each in `folder`/results.jsonl.

    Interrupted, it goes on where it was. With `search`, settings of networks are first chosen by so many trials on
    validation rows. `seeds`: of each cell, instead of as many as its label asks for; they are numbered from
    `first_seed` on. With `jobs`, so many processes measure at once; those cells that are about time come last, alone.
    A cell that cannot be measured, for want of a data set or a package, is noted as missing, with the reason, and one
    with any other error as failed; both are tried again next time.
    """
    check_device(device)  # before anything is measured
    if search:
        load_optuna()
    folder = Path(folder)
    make_folder(folder)
    with workspace(folder / RESULTS):
        results = Results(folder / RESULTS)
        wanted = missing_cells(experiments, scale, results, search, seeds, first_seed)
        shared = [place for place in wanted if not _is_about_time(place[0])] if jobs > 1 else []
        alone = [place for place in wanted if place not in shared]
        total, done = len(wanted), 0
        for places, n in ((shared, jobs), (alone, 1)):
            for cell, seed, found, circumstances in _measured(places, device, search, n):
                results.add(scale, cell, seed, found, circumstances | {"jobs": n})
                done += 1
                progress(done, total, _note(cell, found))
    return results


def missing_cells(
    experiments: list[Experiment],
    scale: str,
    results: Results,
    search: int = 0,
    seeds: int | None = None,
    first_seed: int = 0,
) -> list[tuple[Cell, int]]:
    """(cell, seed) that have no number yet. First seeds come first, so that what is cut off has whole seeds; cells with
    the same data stand together, so that it is made once.
    """
    places = [place for experiment in experiments for place in experiment.cells(scale, seeds, first_seed)]
    wanted = {(cell.key, seed): (cell, seed) for cell, seed in places}
    missing = [place for place in wanted.values() if not _is_done(results.get(scale, *place), search)]
    return sorted(missing, key=lambda place: (place[1], place[0].key))


def _is_done(record: dict | None, search: int) -> bool:
    if record is None or why_none(record):
        return False
    return record["recipe"] not in SPACES or (record.get("circumstances") or {}).get("trials", 0) >= search


def _is_about_time(cell: Cell) -> bool:
    """It measures time, or learns for a given time, of which cells beside it would take a part."""
    return cell.recipe in ALONE or "seconds" in cell.settings


def _measured(places: list, device: str, search: int, jobs: int) -> Iterator[tuple[Cell, int, dict, dict]]:
    """What was found for each place, as it comes."""
    if jobs == 1 or len(places) < 2:
        for cell, seed in places:
            yield cell, seed, *_measure(cell, seed, device, search)
        return
    threads = str(max(1, (os.cpu_count() or 1) // jobs))
    with ProcessPoolExecutor(jobs, get_context("spawn"), _limit_threads, (threads,)) as pool:
        pending = {pool.submit(_measure, cell, seed, device, search): (cell, seed) for cell, seed in places}
        try:
            for future in as_completed(pending):
                yield *pending[future], *future.result()
        except BrokenProcessPool:
            raise SketchnetError(
                "a measuring process was killed, perhaps for want of memory; name fewer jobs"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _limit_threads(n: str) -> None:
    """Before torch and our kernels are loaded."""
    os.environ["OMP_NUM_THREADS"] = os.environ["SKETCHNET_THREADS"] = n


def _measure(cell: Cell, seed: int, device: str, search: int) -> tuple[dict, dict]:
    begun = time.perf_counter()
    trials = {}
    try:
        recipe = find_recipe(cell.recipe)
        settings, trials = search_settings(cell, seed, device, search) if search else (cell.settings, {})
        found = recipe(seed=seed, device=device, **settings)
    except Interrupted:
        raise
    except (InputError, StorageError) as error:
        found = {"missing": str(error)}
    except Exception as error:  # what fails in one cell must not cost the others, which may have taken hours
        found = {"failed": f"{type(error).__name__}: {error}"}
    used = "cpu" if cell.recipe in ON_PROCESSOR else device
    return found, circumstances(used, time.perf_counter() - begun) | trials


def circumstances(device: str, seconds: float) -> dict:
    """Versions, hardware and time of a measurement."""
    import numpy
    import torch

    on_gpu = device != "cpu" and torch.cuda.is_available()
    return {
        "sketchnet": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "torch": torch.__version__.partition("+")[0],
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
    }


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _note(cell: Cell, found: dict) -> str:
    what = " ".join(str(value) for value in cell.settings.values() if isinstance(value, str))
    outcome = "could not be measured" if "missing" in found else "failed" if "failed" in found else ""
    if isinstance(found.get("error"), int | float):
        outcome = f"{found['error']:.2f} %"
    return f"{cell.recipe} {what} {outcome}".strip()
