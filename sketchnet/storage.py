"""Files that are whole or absent: atomic replacement, one writer at a time, clear errors from a full disk."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sketchnet.errors import InputError, SketchnetError, StorageError

try:
    import fcntl
except ImportError:  # Windows: two writers are not kept apart there
    fcntl = None


def check_regular(path: Path) -> os.stat_result:
    """Return a file's status; a folder, a pipe or a device, which might never end, is an error."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} is no regular file")
    return status


def read_json(path: Path):
    """Return the content of a JSON file; a damaged one is an error that names it. FileNotFoundError passes."""
    check_regular(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged: {error}") from None


@contextmanager
def replacing(path: Path, alone: bool = True) -> Iterator[Path]:
    """Gives a place beside `path` to write to. It becomes the file when the block ends well, so that a reader sees the
    old content or the new, and is removed when it does not.

    `alone`: a lock, or the folder, keeps other writers away. The place is then always the same, so that what a killed
    process left there is written over by the next; else its name has the process's number.
    """
    new = path.with_name(f"{path.name}.new" if alone else f".{path.name}.{os.getpid()}.new")
    try:
        with writing(path):
            yield new
            with open(new, "r+b") as file:  # once more, as some libraries write a file of their own
                os.fsync(file.fileno())
            os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise


def write_json(path: Path, content: dict) -> None:
    """Replace a small file."""
    with replacing(path) as new, open(new, "w") as file:
        json.dump(content, file)  # in the order given: an encoder's columns stand in it


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes off an output; the system drops the lock when the process dies, however it dies."""
    lock = Path(os.path.abspath(path) + ".lock")
    file = _acquire(lock, path)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        file.close()


def _acquire(lock: Path, path: Path):
    while True:
        try:
            file = open(lock, "w")  # noqa: SIM115 (closed by the caller, when the lock is given up)
        except OSError as error:
            raise StorageError(f"cannot write to {path.absolute().parent}: {error.strerror}") from None
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise StorageError(f"another process is writing {path}") from None
        if fcntl is None or os.fstat(file.fileno()).st_nlink > 0:
            return file
        file.close()  # its last owner removed it after we had opened it: take the new one


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
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from None
