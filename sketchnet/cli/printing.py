"""What verbs print: lines and JSON as answers, notes on standard error. No other module prints: names, and whatever
comes from data, may hold anything, and here a terminal is kept from obeying it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress

from sketchnet.escapes import escape_controls, escape_json


def print_line(text: str = "") -> None:
    """Print a line of an answer."""
    print(escape_controls(text), flush=True)


def print_json(value: object, indent: int | None = None) -> None:
    """Print a value as JSON."""
    sys.stdout.flush()
    sys.stdout.buffer.write(f"{json_text(value, indent)}\n".encode())  # JSON is UTF-8, whatever the terminal's encoding
    sys.stdout.buffer.flush()


def json_text(value: object, indent: int | None = None) -> str:
    """Return a value as JSON; without `indent`, on one line."""
    return escape_json(json.dumps(value, ensure_ascii=False, indent=indent))


def print_note(what: object) -> None:
    """Print a line, or a value as JSON, on work whose result lies in files: that its reader has had enough does not
    stop the work.
    """
    try:
        print_line(what) if isinstance(what, str) else print_json(what)
    except BrokenPipeError:
        output_is_lost()


def print_table(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> None:
    """Print names, in the columns `left`, to the left, figures to the right."""
    rows = [[escape_controls(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        cells = (cell.ljust(w) if at in left else cell.rjust(w) for at, (cell, w) in enumerate(zip(row, widths)))
        print_line("  ".join(cells).rstrip())


def output_is_lost() -> bool:
    """Whether standard output takes no more. If so, what is left goes nowhere: Python would try again when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):  # not a real one, in a program that calls us
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def tell(text: str) -> None:
    """Print a line that is no answer, on standard error."""
    print(escape_controls(text), file=sys.stderr)
