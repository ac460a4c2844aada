"""End a command at its n-th call that changes names or opens a file to write, as a kill at that moment would.

`python -m tests.attack.killed N -- VERB ...` runs `sketchnet VERB ...` and kills it just before the n-th such call; 0
lists the calls on standard error. Python's audit events tell of them; what libraries do in other languages is unseen.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

_CALLS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink", "os.chmod"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def each_change(folder: str, tell: Callable[[str, list[str]], None]) -> None:
    """From now on, call `tell(event, paths)` before each change in a folder. It cannot be ended: for children only."""
    folder, busy = os.path.realpath(folder), False

    def hook(event: str, args: tuple) -> None:
        nonlocal busy
        if busy or not (event in _CALLS or event == "open") or (event == "open" and not _writes(args)):
            return
        busy = True
        try:
            both = event in ("os.rename", "os.link", "os.symlink")
            inside = args[-1] if event in ("os.remove", "os.rmdir", "os.mkdir") else -1
            paths = [_absolute(path, inside) for path in args[: 1 + both]]
            paths = [path for path in paths if path.startswith(folder + os.sep)]
            if paths:
                tell(event, paths)
        finally:
            busy = False

    sys.addaudithook(hook)


def kill_at(number: int, folder: str) -> None:
    """Die before the n-th change in a folder."""
    count = 0

    def tell(event: str, paths: list[str]) -> None:
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    each_change(folder, tell)


def write_changes(descriptor: int, folder: str) -> None:
    """Write every change in a folder to an open file: the event and its paths, in a line, apart by NULs."""
    each_change(folder, lambda event, paths: os.write(descriptor, "\0".join([event, *paths, "\n"]).encode()))


def _writes(args: tuple) -> bool:
    path, mode, flags = args
    if isinstance(path, int):
        return False
    return any(c in mode for c in "wax+") if isinstance(mode, str) else bool(flags & _WRITING)


def _absolute(path, inside: int) -> str:
    """As it stands, links not followed; `inside`: in this open folder, as `shutil.rmtree` removes."""
    path = os.fsdecode(path) if not isinstance(path, int) else os.readlink(f"/proc/self/fd/{path}")
    if inside >= 0 and not os.path.isabs(path):
        path = os.path.join(os.readlink(f"/proc/self/fd/{inside}"), path)
    return os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(path))), os.path.basename(path))


if __name__ == "__main__":
    number, _, *command = sys.argv[1:]
    sys.argv = ["sketchnet", *command]
    from sketchnet.cli import main

    if int(number):
        kill_at(int(number), os.getcwd())
    else:
        write_changes(2, os.getcwd())
    main()
