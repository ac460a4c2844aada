"""Standard streams that are closed, or cannot be written to."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

from sketchnet.errors import InputError, StorageError, UncheckedWarning


def check_streams() -> None:
    """Python has no object for a stream that was closed from the start (`>&-`)."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (to the end)
    if sys.stdout is None:
        raise StorageError("standard output is closed; to see nothing, send it to /dev/null")


def standard_input():
    """Its bytes."""
    if sys.stdin is None:
        raise InputError("standard input is closed; give a file")
    return sys.stdin.buffer


def output_is_lost() -> bool:
    """Whether standard output takes no more. If so, what is left goes nowhere: Python would try again when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):  # not a real one, in a program that calls us
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


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
                print(f"sketchnet: {message}", file=sys.stderr)

        warnings.showwarning = cast(Any, show)
        yield
