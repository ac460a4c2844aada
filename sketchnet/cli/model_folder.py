"""The folder that `sketchnet train` writes, and where in it files are read to. What others put there stays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sketchnet.cli.work_folder import rows_folder
from sketchnet.errors import InputError, TrainingError
from sketchnet.memory import ran_out
from sketchnet.storage import make_folder, workspace, workspace_of
from sketchnet.training.checkpoint import check_place, has_begun


@contextmanager
def reading_folder(out: Path, team, overwrite: bool) -> Iterator[Path]:
    """Gives a folder in OUT to read files into, as long as the team needs it."""
    if not team.is_first:
        yield workspace_of(out, inside=True) / "rows"
        team.wait()
        return
    check_place(out)
    made = not out.exists()
    make_folder(out)

    def in_vain(error: Exception) -> bool:
        return isinstance(error, InputError | TrainingError) or (ran_out(error) and not has_begun(out))

    try:
        with workspace(out, inside=True) as work, rows_folder(work, overwrite, in_vain) as rows:
            yield rows
            team.wait()
    finally:
        if made:
            with suppress(OSError):
                out.rmdir()  # if nothing is in it
