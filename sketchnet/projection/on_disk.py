"""Out of core: project mapped rows, or a data set's shards, into a .npy file, resumable after a kill at any point.

While it runs, the result lies in OUTPUT's workspace beside a record that says which job it is and how many units are
done. Units are recorded only after their bytes are on disk, and the file gets its name only at the end, so nobody ever
reads half a result. Units do not depend on each other: redoing one gives the same bytes.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from sketchnet.data.csr import CsrBatch
from sketchnet.data.shard_set import ShardSet
from sketchnet.errors import InputError, StorageError
from sketchnet.kernels import backend
from sketchnet.memory import parse_memory
from sketchnet.projection.device_choice import gpu_for
from sketchnet.projection.operator import Operator, output_dtype
from sketchnet.projection.rows import checked_parts, joined_dtype, places
from sketchnet.projection.slicing import Plan, Unit
from sketchnet.storage import (
    RECORD,
    check_regular,
    read_json,
    remove,
    workspace,
    workspace_of,
    write_json,
    writing,
)

_RECORD_EVERY = 0.5  # seconds of work that a kill may cost; flushing after every unit would cost more


def project_to_file(
    operator: Operator,
    X: CsrBatch | ShardSet,
    path: str | Path,
    *,
    dtype=None,
    memory: str | int | None = None,
    source: object = None,
    overwrite: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
    device: str | None = None,
) -> np.ndarray:
    """Project X into the .npy file `path` and return it mapped; an unfinished run of the same job is continued.

    `source` identifies X (checksums, say), so that a run is not continued on other data. `overwrite` replaces an
    existing result, and an unfinished run of another job or a damaged one; this very job's goes on all the same.
    `progress(done, total)` is called after each unit. With `device="cuda"` rows pass through a GPU; "auto" takes one if
    there is one and it pays.
    """
    path, budget = Path(path), parse_memory(memory)
    with workspace(path):
        parts = checked_parts(X, operator.d)
        dtype = output_dtype(joined_dtype(parts), dtype)
        plans, run = _plans(operator, parts, dtype, memory, device)
        total, shape = sum(len(plan.units) for plan in plans), (X.n_rows, operator.k)
        job = {
            "projection": operator.config(),
            "rows": X.n_rows,
            "entries": X.n_entries,
            "source": source,
            "dtype": dtype.name,
            "memory": budget,
            "device": "cpu" if run == operator.run else "cuda",
            "plan": zlib.crc32(repr(plans).encode()),  # units are counted, so they must be the same ones
        }
        done = _done(path, job, overwrite)
        if was_ended(path) and done == total:
            return np.load(path, mmap_mode="r" if X.n_rows else None)
        if os.path.lexists(path) and not overwrite:
            raise _exists(path)
        out = _open(path, shape, dtype, overwrite) if done else None
        if out is None:
            done, out = 0, _create(path, shape, dtype, job)
        progress(done, total)
        recorded = time.monotonic()
        for done in _run(run, parts, plans, out, done):  # noqa: B020 (the count moves on)
            if time.monotonic() - recorded >= _RECORD_EVERY or done == total:
                _flush(out)
                write_json(_record(path), {"job": job, "done": done})
                recorded = time.monotonic()
            progress(done, total)
        del out
        with writing(path):
            os.replace(_partial(path), path)
    return np.load(path, mmap_mode="r" if X.n_rows else None)


def check_free(path: Path, overwrite: bool) -> None:
    """What `project_to_file` would refuse can be known before rows are read."""
    if os.path.lexists(path) and not overwrite and not was_ended(path):
        raise _exists(path)


def was_ended(path: Path) -> bool:
    """Whether a run was cut off when all was done but tidying up."""
    return path.exists() and _record(path).exists() and not _partial(path).exists()


def _record(path: Path) -> Path:
    return workspace_of(path) / RECORD


def _partial(path: Path) -> Path:
    return workspace_of(path) / "partial.npy"


def _exists(path: Path) -> InputError:
    return InputError(f"{path} exists already; choose another name or ask to overwrite it")


def _plans(operator: Operator, parts: list[CsrBatch], dtype, memory, device: str | None) -> tuple[list[Plan], Callable]:
    """Each part's units of work, and what runs them: the operator itself, or the same by way of a GPU."""
    gpu, budget = gpu_for(device, parts, operator.k, dtype, per_entry=operator.per_entry), parse_memory(memory)
    if gpu is None:
        return [operator.plan(part, budget) for part in parts], operator.run
    from sketchnet.projection.on_device import device_slices, run_on_device  # here, because it loads torch

    def run(X, out, plan, kernels, done):
        return run_on_device(operator, X, [unit.rows for unit in plan.units], gpu, out, done)

    slices = [device_slices(part, operator.k, memory) for part in parts]
    return [Plan([Unit(rows, slice(0, operator.k)) for rows in of_part], False, budget) for of_part in slices], run


def _run(run: Callable, parts: list[CsrBatch], plans: list[Plan], out: np.ndarray, done: int) -> Iterator[int]:
    """Part by part, leaving out the first `done` units of all; yields how many are done."""
    before = 0
    for part, plan, rows in zip(parts, plans, places(parts)):
        if done < before + len(plan.units):
            for number in run(part, out[rows], plan, backend(), max(0, done - before)):
                yield before + number
        before += len(plan.units)


def _done(path: Path, job: dict, overwrite: bool) -> int:
    """Units that an unfinished run of this very job has completed."""
    record = _record(path)
    if not record.exists():
        return 0
    try:
        content = read_json(record)
        theirs, done = dict(content["job"]), int(content["done"])
    except (InputError, ValueError, KeyError, TypeError):
        if overwrite:
            return 0
        raise InputError(f"{record} is damaged; ask to overwrite, or remove {record.parent}") from None
    different = [key for key in job if theirs.get(key) != json.loads(json.dumps(job[key]))]
    if different and not overwrite and not was_ended(path):
        name = different[0]
        raise InputError(
            f"{path} is what another job was making when it was interrupted: its {name} is {theirs.get(name)}, this "
            f"one's is {job[name]}; ask to overwrite it, or finish it first"
        )
    return 0 if different else done


def _open(path: Path, shape: tuple[int, int], dtype, overwrite: bool) -> np.ndarray | None:
    """The unfinished result, if it is as large as it was made; else None, or an error if it may not be overwritten."""
    partial = _partial(path)
    if not partial.exists():
        return None
    try:
        check_regular(partial)
        np.load(partial, mmap_mode="r")  # refuses a file that is too short, which "r+" would fill up with zeros
        array = np.load(partial, mmap_mode="r+")
        if array.shape == shape and array.dtype == dtype:
            return array
        wrong = f"holds {array.shape} of {array.dtype}, not {shape} of {dtype}"
    except (OSError, ValueError, EOFError) as error:
        wrong = f"is damaged ({error})"
    if overwrite:
        return None
    raise InputError(f"the unfinished {path}, in {partial.parent}, {wrong}; ask to overwrite it")


def _create(path: Path, shape: tuple[int, int], dtype, job: dict) -> np.ndarray:
    partial, record = _partial(path), _record(path)
    remove(record)
    remove(partial)
    try:
        with writing(path):
            if shape[0] == 0:  # nothing to map
                with open(partial, "wb") as file:
                    np.save(file, np.empty(shape, dtype))
            else:
                np.lib.format.open_memmap(partial, mode="w+", dtype=dtype, shape=shape)
                if hasattr(os, "posix_fallocate"):  # a mapped page that finds the disk full kills the process
                    with open(partial, "r+b") as file:
                        os.posix_fallocate(file.fileno(), 0, partial.stat().st_size)
    except StorageError:
        remove(partial)
        raise
    write_json(record, {"job": job, "done": 0})
    return np.load(partial, mmap_mode="r+" if shape[0] else None)


def _flush(out: np.ndarray) -> None:
    if isinstance(out, np.memmap):
        out.flush()
