"""Out of core: project mapped rows into a .npy file, resumable after a kill at any point.

While it runs, the result lies in OUTPUT.partial beside OUTPUT.progress, a JSON file that says which job it is and how
many units are done. Units are recorded only after their bytes are on disk, and the file gets its name only at the end,
so nobody ever reads half a result. Units do not depend on each other: redoing one gives the same bytes.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sketchnet.data.csr import CsrBatch, as_csr
from sketchnet.errors import InputError, StorageError
from sketchnet.kernels import backend
from sketchnet.memory import parse_memory
from sketchnet.projection.operator import Operator, output_dtype

_RECORD_EVERY = 0.5  # seconds of work that a kill may cost; flushing after every unit would cost more


def project_to_file(
    operator: Operator,
    X: CsrBatch,
    path: str | Path,
    *,
    dtype=None,
    memory: str | int | None = None,
    source: object = None,
    overwrite: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> np.ndarray:
    """Project X into the .npy file `path` and return it mapped; an unfinished run of the same job is continued.

    `source` identifies X (checksums, say), so that a run is not continued on other data. `overwrite` replaces an
    existing result and forgets an unfinished one. `progress(done, total)` is called after each unit.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already; choose another name or ask to overwrite it")
    budget = parse_memory(memory)
    dtype = output_dtype(X.values, dtype)
    job = {
        "projection": operator.config(),
        "rows": X.n_rows,
        "entries": len(X.indices),
        "source": source,
        "dtype": dtype.name,
        "memory": budget,
    }
    partial, record = path.with_name(path.name + ".partial"), path.with_name(path.name + ".progress")
    with _Lock(path):
        done = 0 if overwrite else _done(partial, record, job)
        X = as_csr(X, operator.d)
        if X.n_rows == 0:  # nothing to map
            np.save(path, np.empty((0, operator.k), dtype))
            return np.load(path)
        if done == 0:
            out = _create(partial, record, (X.n_rows, operator.k), dtype, job)
        else:
            out = np.lib.format.open_memmap(partial, mode="r+")
        plan = operator.plan(X, budget)
        progress(done, len(plan.units))
        recorded = time.monotonic()
        for done in operator.run(X, out, plan, backend(), done):  # noqa: B020
            if time.monotonic() - recorded >= _RECORD_EVERY:
                out.flush()
                _write(record, {"job": job, "done": done})
                recorded = time.monotonic()
            progress(done, len(plan.units))
        out.flush()
        del out
        os.replace(partial, path)
        record.unlink()
    return np.load(path, mmap_mode="r")


def _done(partial: Path, record: Path, job: dict) -> int:
    """Units that an unfinished run of this very job has completed."""
    if not (partial.exists() and record.exists()):
        return 0
    try:
        found = json.loads(record.read_text())
        theirs, done = found["job"], int(found["done"])
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{record} is damaged; ask to overwrite, or remove it and {partial}") from None
    different = [key for key in job if theirs.get(key) != json.loads(json.dumps(job[key]))]
    if different:
        name = different[0]
        raise InputError(
            f"{partial} belongs to another job: its {name} is {theirs.get(name)}, this one's is {job[name]}; "
            "ask to overwrite it, or finish it first"
        )
    return done


def _create(partial: Path, record: Path, shape: tuple[int, int], dtype, job: dict) -> np.ndarray:
    record.unlink(missing_ok=True)
    try:
        out = np.lib.format.open_memmap(partial, mode="w+", dtype=dtype, shape=shape)
        # Take the disk space now: a mapped page that finds the disk full kills the process.
        with open(partial, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, partial.stat().st_size)
    except OSError as error:
        partial.unlink(missing_ok=True)
        if error.errno == errno.ENOSPC:
            size = shape[0] * shape[1] * np.dtype(dtype).itemsize
            raise StorageError(f"no room for {partial}: the result takes {size} bytes; nothing was written") from None
        raise StorageError(f"cannot write {partial}: {error.strerror}") from None
    _write(record, {"job": job, "done": 0})
    return out


def _write(path: Path, content: dict) -> None:
    """Replace a small file at once, so that a reader sees the old content or the new."""
    new = path.with_name(path.name + ".new")
    with open(new, "w") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


class _Lock:
    """Keeps a second process off an output; the system drops it when the process dies, however it dies."""

    def __init__(self, path: Path):
        self._path = path.with_name(path.name + ".lock")

    def __enter__(self) -> None:
        try:
            self._file = open(self._path, "w")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(self._file.fileno()).st_nlink == 0:  # its last owner removed it between the two lines above
                self._file.close()
                self.__enter__()
        except BlockingIOError:
            self._file.close()
            raise StorageError(f"another process is writing {self._path.with_suffix('')}") from None
        except OSError as error:
            raise StorageError(f"cannot write to {self._path.parent}: {error.strerror}") from None

    def __exit__(self, *exc) -> None:
        self._path.unlink(missing_ok=True)
        self._file.close()
