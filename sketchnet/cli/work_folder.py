"""Where in an output's workspace a verb keeps the rows that it has read, until it is done with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sketchnet.storage import remove


@contextmanager
def rows_folder(work: Path, overwrite: bool, in_vain: Callable[[Exception], bool]) -> Iterator[Path]:
    """Give the folder for rows in a workspace. They go with it when all is done, and after an error for which they were
    read `in_vain`; after an interruption they stay until a run goes on with them to the end, or is to `overwrite`.
    """
    rows = work / "rows"
    if overwrite:
        remove(rows)
    begun = rows.exists()
    try:
        yield rows
    except Exception as error:
        if in_vain(error) and not begun:  # else what an interrupted run has read may be lost by a mistyped option
            remove(rows)
        raise
