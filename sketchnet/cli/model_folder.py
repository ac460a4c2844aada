"""The folder that `sketchnet train` writes, and where in it files are read to. What others put there stays."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sketchnet.errors import InputError, TrainingError
from sketchnet.memory import ran_out
from sketchnet.storage import locked, writing
from sketchnet.training.checkpoint import check_place, has_begun

_MARK = ".sketchnet-train"  # in a folder that train made, and removes


@contextmanager
def reading_folder(out: Path, team, overwrite: bool) -> Iterator[Path]:
    """Gives a folder in OUT to read files into. It goes when all is done, and when the input turns out to be bad or the
    network too large; after an interruption it stays until a run goes on with it to the end, or is to overwrite.
    """
    work = out / "data"
    if not team.is_first:
        yield work
        team.wait()
        return
    _check_out(out, work)
    made = not out.exists()
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    try:
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
                useless = isinstance(error, InputError | TrainingError) or (ran_out(error) and not has_begun(out))
                if useless and not begun:  # or what an interrupted run has read may be lost by a mistyped option
                    _remove(work)
                raise
            team.wait()
            _remove(work)
    finally:
        if made:
            with suppress(OSError):
                out.rmdir()  # if nothing is in it


def _check_out(out: Path, work: Path) -> None:
    """Files that train did not write are an error, where it would write or remove some."""
    check_place(out)
    if work.exists() and not (work / _MARK).exists() and not (work.is_dir() and not any(work.iterdir())):
        raise InputError(f"{out} has a data that no train wrote; choose an empty or new folder (--out)")


def _remove(work: Path) -> None:
    """The mark last: cut off in the middle, the folder is still known as ours."""
    if not (work / _MARK).exists():
        return
    with suppress(OSError):  # what cannot be removed harms no model
        for path in work.iterdir():
            if path.name != _MARK:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        (work / _MARK).unlink()
        work.rmdir()
