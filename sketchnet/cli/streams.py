"""Standard streams that are closed, or cannot be written to."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from sketchnet.cli.printing import tell
from sketchnet.errors import InputError, StorageError, UncheckedWarning


def check_streams() -> None:
    """Raise if standard output was closed from the start (`>&-`): Python has no object for it then."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (to the end)
    if sys.stdout is None:
        raise StorageError("standard output is closed; to see nothing, send it to /dev/null")
    if hasattr(sys.stdout, "reconfigure"):  # a name may have letters that the terminal's encoding lacks
        sys.stdout.reconfigure(errors="backslashreplace")


def standard_input():
    """Its bytes."""
    if sys.stdin is None:
        raise InputError("standard input is closed; give a file")
    return sys.stdin.buffer


@contextmanager
def warnings_told() -> Iterator[None]:
    """Tell what is wrong with files, though they can be read, once and in one line."""
    told: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("always", UncheckedWarning)
        others = warnings.showwarning

        def show(message, category, *place) -> None:
            if not issubclass(category, UncheckedWarning):
                others(message, category, *place)
            elif str(message) not in told:
                told.add(str(message))
                tell(f"sketchnet: {message}")

        warnings.showwarning = cast(Any, show)
        yield
