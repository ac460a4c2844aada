"""Files that are whole or absent: replaced at once, one writer at a time, clear errors from a full disk.

What is unfinished lies in a workspace, a hidden folder with a sign that it is ours: nothing else is ever written over.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sketchnet.errors import InputError, SketchnetError, StorageError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: two writers are not kept apart there
    fcntl = None

RECORD = "job.json"  # in a workspace: what is being made, and how much of it is done
_TRASH = "trash"
_LONGEST_NAME = 255  # bytes that a file system allows
_OWNER, _SIGN = "owner", b"sketchnet keeps unfinished work here\n"
_ENTERED: set[tuple[Path, int]] = set()  # workspaces that a thread of this process holds


def check_regular(path: Path) -> os.stat_result:
    """Return a file's status; a folder, a pipe or a device, which might never end, is an error."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} is no regular file")
    return status


def read_json(path: Path):
    """Return the content of a JSON file; a damaged one is an error that names it. FileNotFoundError passes."""
    try:
        check_regular(path)
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, SketchnetError):
        raise
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged: {error}") from None


def workspace_of(output: Path, inside: bool = False) -> Path:
    """Return the hidden folder for what is unfinished of an output: beside it, or `inside` it if that is a folder."""
    output = Path(os.path.abspath(output))
    name = f".{output.name}.sketchnet"
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = f".{hashlib.sha256(os.fsencode(output.name)).hexdigest()}.sketchnet"
    return output / ".sketchnet" if inside else output.with_name(name)


@contextmanager
def workspace(output: Path, inside: bool = False, keep: bool = False) -> Iterator[Path]:
    """Give the folder for what is unfinished of an output, and keep other processes off that output meanwhile.

    When the block ends well the folder goes with all that is in it, unless it is to `keep`; after an error what is in
    it stays, for the next run to go on with. A thread that holds a workspace may enter it again: then the outer block
    ends it. The system drops the lock when a process dies, however it dies. What is not ours in its place is an error.
    """
    place = workspace_of(output, inside)
    entered = place, threading.get_ident()
    if entered in _ENTERED:
        yield place
        return
    lock = _lock(place, output)
    _ENTERED.add(entered)
    try:
        yield place
        if not keep:
            _clear(place)
    finally:
        _ENTERED.remove(entered)
        _let_go(place, lock)


def _lock(place: Path, output: Path) -> int:
    """Make a workspace, or take over what a dead process left; returns the descriptor that keeps others off."""
    while True:
        with writing(output), suppress(FileExistsError):
            place.mkdir()
        lock = _open_owner(place)
        if lock is None:
            continue
        _claim(lock, place, output)
        try:
            if os.fstat(lock).st_nlink > 0 or fcntl is None:
                with writing(output):
                    os.lseek(lock, 0, os.SEEK_SET)
                    os.write(lock, _SIGN)
                return lock
            os.close(lock)  # its last owner removed it after we had opened it: take the new one
        except BaseException:
            _let_go(place, lock)
            raise


def _claim(lock: int, place: Path, output: Path) -> None:
    """Lock the file that says whose a workspace is; where another process has it, nothing of it is touched."""
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        taken = isinstance(error, BlockingIOError)
        what = f"another process is writing {output}" if taken else f"cannot lock {place}: {error.strerror or error}"
        raise StorageError(what) from None


def _open_owner(place: Path) -> int | None:
    """Open the file that says that a workspace is ours; None if the workspace is just being removed. Nothing is changed
    in a folder that is not ours.
    """
    no_wait = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        names = set(os.listdir(place)) if stat.S_ISDIR(os.lstat(place).st_mode) else None
        if names is not None and (not names or _OWNER in names):
            lock = os.open(place / _OWNER, os.O_RDWR | no_wait | (os.O_CREAT if not names else 0), 0o666)
            # A process that was killed may not have come to write all of its sign.
            if stat.S_ISREG(os.fstat(lock).st_mode) and _SIGN.startswith(os.read(lock, len(_SIGN) + 1)):
                return lock
            os.close(lock)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR):  # a link or a folder in the place of our file
            raise StorageError(f"cannot write to {place}: {error.strerror}") from None
    raise InputError(f"{place} is where sketchnet would keep unfinished work, but it is not sketchnet's; move it away")


def _let_go(place: Path, lock: int) -> None:
    """Unlock a workspace, and remove it if nothing is in it."""
    with suppress(OSError):
        if os.listdir(place) == [_OWNER]:
            os.unlink(place / _OWNER)
            place.rmdir()
    os.close(lock)


def remove(path: Path) -> None:
    """Remove a file or a folder of a workspace, if it is there. Cut off at any point, no torso is left in its place."""
    with writing(path):
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
        elif path.name == _TRASH:
            shutil.rmtree(path)
        else:
            remove(path.with_name(_TRASH))
            path.rename(path.with_name(_TRASH))
            remove(path.with_name(_TRASH))


def _clear(place: Path) -> None:
    """Remove what is in a workspace. The record goes last: until then the next run knows what has been done."""
    with suppress(StorageError):  # the result is there all the same
        for path in sorted(place.iterdir(), key=lambda path: path.name == RECORD):
            if path.name != _OWNER:
                remove(path)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a place to write to, which becomes `path` when the block ends well, so that a reader sees the old content or
    the new. It may become a file or a folder; a folder takes the place of none but an empty one.
    """
    path = Path(path)
    with workspace(path) as work, writing(path):
        new = work / "new"
        remove(new)  # what a process that was killed has left
        try:
            yield new
            if not new.is_dir():
                with open(new, "r+b") as file:  # once more, as some libraries write a file of their own
                    os.fsync(file.fileno())
            os.replace(new, path)
        except BaseException:
            with suppress(OSError):
                remove(new)
            raise


def tidy(path: Path) -> None:
    """Remove what a process that was killed while it replaced a file has left of the new one."""
    if os.path.lexists(workspace_of(path)):
        with workspace(path):
            pass


def write_json(path: Path, content: dict) -> None:
    """Replace a small file."""
    with replacing(path) as new, open(new, "w") as file:
        json.dump(content, file)  # in the order given: an encoder's columns stand in it


def make_folder(path: Path) -> None:
    """Make a folder where there is none, and those that it lies in; something else in its place is an error."""
    if os.path.lexists(path) and not path.is_dir():
        what = "a file" if path.exists() else "a link that leads nowhere"
        raise InputError(f"{path} is {what}; it must be a folder, or a name that is free")
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the system's refusals to write `path` into a clear error."""
    try:
        yield
    except OSError as error:
        if isinstance(error, SketchnetError):
            raise
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageError(f"no room on the disk for {path}; what was finished before is kept") from None
        if error.errno == errno.EFBIG:
            raise StorageError(
                f"no room for {path}: the system allows no larger file; what was finished is kept"
            ) from None
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from None
