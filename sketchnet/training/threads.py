"""How many threads a piece of work gets: torch's, and those of our own kernels.

Sums that torch's threads share round by their number. So the number depends on the work's size, on settings and on
variables alone, never on what else the machine does.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import torch
from torch import nn

from sketchnet.checks import check_integer
from sketchnet.kernels.cpu.threads import cores, limited, n_threads

_WORTH = 1 << 22  # multiplications: a step, or a prediction, with fewer for each thread takes no less time with more

_lock = threading.Lock()
_here = threading.local()
_row_work: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()  # the walk takes longer than some predictions may
_users, _usual = 0, 0  # Python threads with a budget, and torch's number before the first of them


def step_work(network: nn.Module, n_rows: int) -> int:
    """Return the multiplications of so many rows with the network's dense layers."""
    if network not in _row_work:
        linear = (layer for layer in network.modules() if isinstance(layer, nn.Linear))
        _row_work[network] = sum(layer.weight.numel() for layer in linear)
    return n_rows * _row_work[network]


def choose_threads(work: int, most: int | None = None) -> int:
    """Return how many threads torch should have for `work`: as many as `most`, or as variables and torch allow."""
    if most is not None:
        check_integer("threads", most, 1, 1 << 12)
    if work < 2 * _WORTH:  # asked before the variables, which take longer to read than some predictions may
        return 1
    return min(most or min(n_threads(), torch.get_num_threads()), work // _WORTH)


@contextmanager
def thread_budget(work: int, most: int | None = None) -> Iterator[None]:
    """Let torch use as many threads as `work` is worth, and our kernels `most`; afterwards all is as it was."""
    with _torch_restored():
        wanted = choose_threads(work, most)
        if wanted == 1 and most is None:  # a few rows, whose answer is a matter of microseconds
            torch.set_num_threads(1)
            yield
            return
        with limited(most), _short_waits(wanted):
            torch.set_num_threads(wanted)  # after that, because it holds for threads that begin later, too
            yield


@contextmanager
def _torch_restored() -> Iterator[None]:
    """Give this Python thread back torch's number. A new one begins with what another's budget has just set."""
    global _users, _usual
    outermost = not getattr(_here, "inside", False)
    with _lock:
        if _users == 0:
            _usual = torch.get_num_threads()
        before = _usual if outermost else torch.get_num_threads()
        _users += 1
    if outermost and _users > 1:
        torch.set_num_threads(before)
    _here.inside = True
    try:
        yield
    finally:
        with _lock:
            _users -= 1
        torch.set_num_threads(before)
        _here.inside = not outermost


@contextmanager
def _short_waits(n: int) -> Iterator[None]:
    """Let n threads of torch sleep where they wait for each other, instead of spinning for milliseconds.

    Where processes share cores, who spins keeps another from the work that it waits for: two fits at once took four
    times as long as one. libgomp spins briefly while a process has more of its threads than cores. So a second team
    rests meanwhile, large enough for that. Where variables say how to wait, they are right.
    """
    if n == 1 or getattr(_here, "waits", False) or {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & set(os.environ):
        yield
        return
    ready, over = threading.Event(), threading.Event()

    def rest() -> None:
        try:
            size = max(2, cores() + 2 - n)
            torch.set_num_threads(size)
            torch.zeros(size << 16, dtype=torch.uint8).add_(1)  # work for each, that the team comes into being
        finally:
            ready.set()
        over.wait()

    team = threading.Thread(target=rest, name="sketchnet-rest", daemon=True)
    team.start()
    _here.waits = True
    try:
        ready.wait()
        yield
    finally:
        _here.waits = False
        over.set()
        team.join()
