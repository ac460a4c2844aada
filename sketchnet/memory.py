"""Memory: budgets that users name, and what a piece of work really took."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from sketchnet.errors import InputError, Setting

DEFAULT_BUDGET = 512 * 2**20

_UNITS = {
    "": 1,
    "B": 1,
    **{f"{p}iB": 2 ** (10 * (i + 1)) for i, p in enumerate("KMGT")},
    **{f"{p}B": 10 ** (3 * (i + 1)) for i, p in enumerate("KMGT")},
}
_TRIM, _MAP = -1, -3  # names of glibc's mallopt: M_TRIM_THRESHOLD and M_MMAP_THRESHOLD
_KEPT = {_MAP: 2**27, _TRIM: 2**30}  # larger blocks are given back all the same: glibc may keep a few of a kind
_USUAL = {_MAP: 2**25, _TRIM: 2**26}  # what glibc comes to by itself once a block of 32 MiB was freed
_keeping, _lock = 0, threading.Lock()

_BY_LOWER_CASE = {unit.lower(): size for unit, size in _UNITS.items()}


def parse_memory(memory: str | int | None) -> int:
    """Bytes of a budget such as "2GiB", "500 MB" or 10**9; None gives the default, 512 MiB."""
    if memory is None:
        return DEFAULT_BUDGET
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", str(memory))
    unit = _BY_LOWER_CASE.get(match[2].lower()) if match else None
    if match is None or unit is None or float(match[1]) <= 0:
        setting = Setting("memory", memory)
        raise InputError(f'{setting} is not a size; give one such as "2GiB", "500MB" or a number of bytes', setting)
    return int(float(match[1]) * unit)


def format_memory(n_bytes: float) -> str:
    """Bytes for people: "1.4 GiB"."""
    for unit in ("B", "KiB", "MiB"):
        if abs(n_bytes) < 1024:
            return f"{n_bytes:.0f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} GiB"


def ran_out(error: BaseException) -> bool:
    """Whether an error says that there is too little memory. By its text, because torch's way is a RuntimeError, and
    asking must not load torch.
    """
    if isinstance(error, RuntimeError):
        return "can't allocate memory" in str(error) or "out of memory" in str(error)  # the processor's, a GPU's
    return isinstance(error, MemoryError)


@contextmanager
def pages_kept() -> Iterator[None]:
    """Let freed memory stay with the process meanwhile; afterwards what is free goes back to the system.

    A step of training frees what the next one asks for again. glibc hands large blocks back each time, and the system
    fills every page of the next one with zeros: that took up to a quarter of a step of wide layers on the processor,
    and half of a step of an RBM of 1000-3000 units. Other C libraries are left alone, and so is glibc where the
    environment sets its thresholds.
    """
    _keep(+1)
    try:
        yield
    finally:
        _keep(-1)


def _keep(more: int) -> None:
    global _keeping
    library = _glibc()
    if library is None:
        return
    with _lock:  # several may train at a time: the last one to end gives all back
        before, _keeping = _keeping, _keeping + more
        if bool(before) == bool(_keeping):
            return
        for name, size in (_KEPT if _keeping else _USUAL).items():
            if not library.mallopt(name, size):  # older ones refuse to keep blocks beyond 32 MiB
                library.mallopt(name, _USUAL[name])
        if not _keeping:
            library.malloc_trim(ctypes.c_size_t(0))


@cache
def _glibc() -> ctypes.CDLL | None:
    tuned = "_threshold" in os.environ.get("GLIBC_TUNABLES", "") or any(
        f"MALLOC_{what}_THRESHOLD_" in os.environ for what in ("MMAP", "TRIM")
    )
    library = ctypes.CDLL(None) if sys.platform == "linux" and not tuned else None
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


def anonymous_memory(pid: int | str = "self") -> int:
    """Anonymous resident bytes of a process (Linux). Pages of mapped files do not count: they can be dropped."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class PeakMemory:
    """Context manager that samples this process's anonymous memory: `peak` is the most above the start, in bytes."""

    def __init__(self, interval: float = 0.002):
        self._interval = interval
        self._stop = threading.Event()
        self.peak = 0

    def __enter__(self) -> PeakMemory:
        self._start = anonymous_memory()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc) -> None:
        self._stop.set()
        self._thread.join()
        self._look()

    def _sample(self) -> None:
        while not self._stop.wait(self._interval):
            self._look()

    def _look(self) -> None:
        self.peak = max(self.peak, anonymous_memory() - self._start)
