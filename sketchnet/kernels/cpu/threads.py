"""Threads for kernels that release the GIL.

Kernels are compiled without numba's own parallelism on purpose: its OpenMP layer dies in forked children (data-loader
workers), its work queue dies when two Python threads enter it, and both multiply compile time. Splitting rows here has
none of that, and a row's result never depends on who computes it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager

import numpy as np

# A call that is shorter than about a millisecond gains nothing from a second thread.
_SMALL = 1 << 18

_pools: dict[int, ThreadPoolExecutor] = {}
_lock = threading.Lock()
_here = threading.local()


def n_threads() -> int:
    """The number that `limited` has set; else SKETCHNET_THREADS, OMP_NUM_THREADS, or the number of cores."""
    limit = getattr(_here, "limit", None)
    if limit is not None:
        return limit
    for name in ("SKETCHNET_THREADS", "OMP_NUM_THREADS"):
        given = os.environ.get(name, "").partition(",")[0].strip()  # OpenMP takes a number for each level
        if given.isdigit() and int(given) > 0:
            return int(given)
    return cores()


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def limited(threads: int | None) -> Iterator[None]:
    """Let kernels that this Python thread calls use so many threads meanwhile; None changes nothing."""
    before = getattr(_here, "limit", None)
    _here.limit = before if threads is None else threads
    try:
        yield
    finally:
        _here.limit = before


def over_range(kernel: Callable[[int, int], object], n: int, work: int, threads: int | None = None) -> list:
    """Call `kernel(start, stop)` on pieces of range(n), in threads if `work` (steps in all) is worth it."""
    if work < _SMALL or n < 2:
        return [kernel(0, n)] if n else []
    threads = min(n_threads(), threads or n_threads())
    pieces = _pieces(n, threads)
    return _run(kernel, np.linspace(0, n, pieces + 1).astype(np.int64), threads)


def over_rows(
    kernel: Callable[[int, int], object], indptr: np.ndarray, work_per_entry: int = 1, threads: int | None = None
) -> list:
    """The same over the rows of a CSR matrix, in pieces of about equally many non-zeros."""
    n = len(indptr) - 1
    entries = int(indptr[-1]) - int(indptr[0])
    if (entries + n) * work_per_entry < _SMALL or n < 2:
        return [kernel(0, n)] if n else []
    threads = min(n_threads(), threads or n_threads())
    pieces = _pieces(n, threads)
    targets = int(indptr[0]) + np.linspace(0, entries, pieces + 1)
    edges = np.searchsorted(indptr, targets.astype(indptr.dtype))
    edges[0], edges[-1] = 0, n
    return _run(kernel, edges, threads)


def _pieces(n: int, threads: int) -> int:
    # Four pieces a thread even out rows of unequal cost.
    return 1 if threads == 1 else min(n, 4 * threads)


def _run(kernel, edges, threads: int) -> list:
    spans = [(int(a), int(b)) for a, b in zip(edges[:-1], edges[1:]) if a < b]
    if len(spans) <= 1:
        return [kernel(*span) for span in spans]
    # Inside the pool a call waiting for the same pool might wait for ever.
    if getattr(_here, "inside", False):
        return [kernel(*span) for span in spans]
    # The calling thread works too: it is awake, and waking another takes as long as a short kernel.
    others = [_pool(threads).submit(kernel, *span) for span in spans[1:]]
    try:
        return [kernel(*spans[0]), *(other.result() for other in others)]
    finally:
        wait(others)  # if this thread is interrupted, nobody may go on writing behind its back


def _pool(threads: int) -> ThreadPoolExecutor:
    """One lasting pool for each number of threads: starting threads takes longer than many a kernel."""
    with _lock:
        if threads not in _pools:
            _pools[threads] = ThreadPoolExecutor(threads, "sketchnet", lambda: setattr(_here, "inside", True))
        return _pools[threads]


def _forget_pools() -> None:
    """In a forked child: threads do not survive a fork, and the lock may have been held at that moment."""
    global _lock
    _lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)
