"""A progress bar with time left, on a terminal; silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sketchnet.escapes import escape_controls


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[[int, int], None]]:
    """Gives a function `update(done, total)`."""
    with progress_steps(description) as update:
        yield lambda done, total: update(done, total, "")


@contextmanager
def progress_rows(description: str | None) -> Iterator[Callable[[float | None, int], None]]:
    """Gives a function `update(fraction, rows)`, for input whose number of rows is not known; None: without a bar."""
    with progress_steps(description) as update:
        yield lambda fraction, rows: update(fraction, None if fraction is None else 1.0, f"{rows:,} rows")


@contextmanager
def progress_steps(description: str | None) -> Iterator[Callable]:
    """Gives a function `update(done, total, note)`."""
    if description is None or not sys.stderr.isatty():
        yield lambda done, total, note: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as TimeLeftColumn

    texts = [TextColumn(f"{{task.{name}}}", markup=False) for name in ("description", "fields[note]")]
    columns = (texts[0], BarColumn(), TaskProgressColumn(), texts[1])
    with Progress(
        *columns, TimeElapsedColumn(), TextColumn("left"), TimeLeftColumn(), console=Console(stderr=True)
    ) as p:
        task = p.add_task(escape_controls(description), total=None, note="")
        yield lambda done, total, note: p.update(task, completed=done, total=total, note=note)
