"""A folder in which a verb keeps the rows that it has read, until it is done with them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sketchnet.errors import InputError
from sketchnet.storage import locked, writing

_MARK = ".sketchnet-work"  # in a folder that a verb made, and removes
_DONE = ".done"  # beside it while the folder is removed


@contextmanager
def work_folder(work: Path, overwrite: bool, in_vain: Callable[[Exception], bool]) -> Iterator[Path]:
    """Makes the folder, which goes when all is done, and after an error for which the rows were read `in_vain`; after
    an interruption it stays until a run goes on with it to the end, or is to `overwrite`.
    """
    check_ours(work)
    with locked(work):  # from the first row read to the last: another command must not remove them meanwhile
        if overwrite:
            _remove(work)
        begun = work.exists()
        with writing(work):
            work.mkdir(exist_ok=True)
            (work / _MARK).touch()
        try:
            yield work
        except Exception as error:
            if in_vain(error) and not begun:  # or what an interrupted run has read may be lost by a mistyped option
                _remove(work)
            raise
        with suppress(OSError):
            (work / _DONE).touch()
        _remove(work)


def discard(work: Path, only_done: bool = False) -> None:
    """Remove what an interrupted run left, or only one that was cut off while it removed the folder itself."""
    if (work / (_DONE if only_done else _MARK)).exists():
        with locked(work):
            _remove(work)


def check_ours(work: Path) -> None:
    """Files that no verb wrote are an error, where one would write and remove some."""
    if work.exists() and not (work / _MARK).exists() and not (work.is_dir() and not any(work.iterdir())):
        raise InputError(f"{work} was not made by sketchnet, which would keep its rows there; choose another place")


def _remove(work: Path) -> None:
    """The mark last: cut off in the middle, the folder is still known as ours."""
    if not (work / _MARK).exists():
        return
    with suppress(OSError):  # what cannot be removed harms no result
        for path in work.iterdir():
            if path.name != _MARK:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        (work / _MARK).unlink()
        work.rmdir()
