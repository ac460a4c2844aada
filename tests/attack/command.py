"""Run a command line in a child that is forked off this process, where all is imported, and watch what it uses.

Starting Python anew takes seconds; a fork takes milliseconds. Memory counts from the fork on.
"""

from __future__ import annotations

import io
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_LOOK = 0.002  # seconds between two looks at a child
_MOST_OUTPUT = 64 << 20
_SPARE = 1 << 30  # beyond the bound: where a child is stopped, so that none fills the machine's memory


@dataclass
class Outcome:
    """What a command line did. A negative code is the signal that ended it."""

    command: tuple[str, ...]
    code: int = 0
    out: bytes = b""
    err: bytes = b""
    seconds: float = 0.0
    peak: int = 0  # anonymous memory beyond that at its start
    stopped: str = ""  # "time" or "memory", if it went beyond its bound and was killed


@dataclass
class Bounds:
    """What a command may use, in seconds and in bytes of anonymous memory."""

    seconds: float = 15.0
    memory: int = 200 << 20


@dataclass
class Child:
    """A command line that runs. `before` is called in the child just before it begins."""

    command: Sequence[str]
    here: Path
    before: Callable[[], None] = lambda: None
    bounds: Bounds = field(default_factory=Bounds)
    kill_after: float | None = None  # seconds

    def start(self) -> Child:
        self.outcome, self._begun = Outcome(tuple(self.command)), time.monotonic()
        pipes = [os.pipe(), os.pipe()]
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            nothing = os.open(os.devnull, os.O_RDONLY)
            become(self.command, self.here, [nothing, *(write for _, write in pipes)], self.before)
        for _, write in pipes:
            os.close(write)
        self._pieces: dict[int, list[bytes]] = {read: [] for read, _ in pipes}
        self._open, self._started_with = set(self._pieces), anonymous(self.pid)
        return self

    def watch(self) -> bool:
        """Take what it says, look at what it uses; true while it runs."""
        for read in select.select(list(self._open), [], [], _LOOK)[0] if self._open else ():
            self._take(read)
        done, status, _ = os.wait4(self.pid, os.WNOHANG)
        self.outcome.seconds = time.monotonic() - self._begun
        if done:
            self._end(status)
            return False
        if not self._open:
            time.sleep(_LOOK)
        self.outcome.peak = max(self.outcome.peak, anonymous(self.pid) - self._started_with)
        late = self.outcome.seconds > self.bounds.seconds
        if late or self.outcome.peak > self.bounds.memory + _SPARE:
            self.outcome.stopped = "time" if late else "memory"
            self.kill()
        elif self.kill_after is not None and self.outcome.seconds > self.kill_after:
            self.kill()
        return True

    def kill(self) -> None:
        """It and what it started: it leads a group of its own. It has not been waited for, so the number is its own."""
        for send in (os.killpg, os.kill):
            try:
                send(self.pid, signal.SIGKILL)
            except ProcessLookupError:  # before it made its group
                continue

    def _take(self, read: int) -> bool:
        piece = os.read(read, 1 << 16)
        if not piece:
            self._open.discard(read)
        elif sum(map(len, self._pieces[read])) < _MOST_OUTPUT:
            self._pieces[read].append(piece)
        return bool(piece)

    def _end(self, status: int) -> None:
        for read in self._pieces:
            while read in self._open and select.select([read], [], [], 0)[0] and self._take(read):
                pass
            os.close(read)
        self.outcome.code = os.waitstatus_to_exitcode(status)
        self.outcome.out, self.outcome.err = (b"".join(pieces) for pieces in self._pieces.values())


def run(*children: Child) -> list[Outcome]:
    """Run command lines, all at once."""
    running = [child.start() for child in children]
    try:
        while running:
            running = [child for child in running if child.watch()]
    finally:
        for child in running:
            child.kill()
            os.waitpid(child.pid, 0)
    return [child.outcome for child in children]


def limit_files(n_bytes: int) -> None:
    """In a child: no file may become longer. Python ignores the signal, so that writing gives an error."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


def anonymous(pid: int) -> int:
    """Resident bytes of a process that belong to no file."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            return next((int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon:")), 0)
    except OSError:
        return 0


def become(command: Sequence[str], here: Path, streams: Sequence[int], before: Callable[[], object]) -> None:
    """Be `sketchnet COMMAND` in a folder, or `python -m reproduction`, as a shell would start it, and end. `streams`
    are descriptors of its input, its output and its errors.
    """
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which what runs in the background ignores
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(here)
        for number, target in enumerate(streams):
            os.dup2(target, number)
        sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False), encoding="utf-8")  # noqa: SIM115
        sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), encoding="utf-8")  # noqa: SIM115
        sys.stderr = io.TextIOWrapper(
            open(2, "wb", closefd=False, buffering=0),  # noqa: SIM115
            encoding="utf-8",
            errors="backslashreplace",
            write_through=True,
        )
        if command[:1] == ["reproduction"]:
            sys.argv = ["reproduction", *command[1:]]
            from reproduction.commands import main
        else:
            sys.argv = ["sketchnet", *command]
            from sketchnet.cli import main

        before()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code & 255)
