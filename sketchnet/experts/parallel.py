"""Work that runs side by side, each piece with one thread, and that a signal can interrupt."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from sketchnet.kernels.cpu.threads import limited, n_threads

_GLANCE = 0.1  # seconds: signals are handled between two of them


def run_side_by_side(jobs: Sequence[Callable[[], Any]]) -> Generator[tuple[int, Any], None, None]:
    """Yield (number of the job, what it returned) as jobs end. The first error ends it all.

    As many run at once as kernels may have threads, each with one of them. Jobs that are under way when an error is
    raised here go on unheeded: they must leave nothing half done.
    """
    workers = min(n_threads(), len(jobs))
    if workers == 1:
        yield from ((number, job()) for number, job in enumerate(jobs))
        return
    waiting, done = SimpleQueue[int](), SimpleQueue[tuple[int, Any, BaseException | None]]()
    stopped = threading.Event()
    for number in range(len(jobs)):
        waiting.put(number)

    def work() -> None:
        with limited(1):
            while not stopped.is_set():
                try:
                    number = waiting.get_nowait()
                except Empty:
                    return
                try:
                    done.put((number, jobs[number](), None))
                except BaseException as error:  # it is raised again where it is waited for
                    done.put((number, None, error))

    for number in range(workers):  # daemons, so that who is interrupted need not wait for them
        threading.Thread(target=work, name=f"sketchnet-expert-{number}", daemon=True).start()
    try:
        for _ in jobs:
            while done.empty():
                stopped.wait(_GLANCE)
            number, result, error = done.get()
            if error is not None:
                raise error
            yield number, result
    finally:
        stopped.set()
