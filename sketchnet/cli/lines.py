"""Answers as lines, to standard output or to a file; where a file can be written."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import typer

from sketchnet.cli.printing import output_is_lost
from sketchnet.errors import InputError


@contextmanager
def lines_to(output: Path | None, *used: Path) -> Iterator[Callable[[str], None]]:
    """Gives a function that writes text: to a file, which is there only when all went well, or to standard output. The
    file must be none of those `used`, nor in a folder of them; "-" is standard input.
    """
    if output is not None:
        from sketchnet.data.compression import atomic_writing

        check_output("--output", output)
        check_apart(output, *used)
        with atomic_writing(output) as file:
            yield lambda text: file.write(text.encode())
        return

    def write(text: str) -> None:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()

    try:
        yield write
    except BrokenPipeError:  # the reader has had enough
        output_is_lost()
        raise typer.Exit(1) from None


def check_apart(output: Path, *used: Path) -> None:
    """An answer must not take the place of what it is made from, or of a part of it; "-" is standard input."""
    for path in used:
        if _is_part(output, path):
            what = "standard input" if str(path) == "-" else path
            raise InputError(f"--output {output} is {what}, or in it, which would be lost; choose another file")


def _is_part(output: Path, path: Path) -> bool:
    if str(path) == "-":
        with suppress(OSError, ValueError):  # not a real one, in a program that calls us
            return output.exists() and os.path.samestat(os.fstat(sys.stdin.fileno()), output.stat())
        return False
    if path.is_dir():  # a model's, where other files may lie, or a data set's
        from sketchnet.training.checkpoint import FILES

        inside = output.exists() and path.resolve() in output.resolve().parents
        return inside and (output.name in FILES or (path / "dataset.json").exists())
    return path.exists() and output.exists() and output.samefile(path)


def check_output(option: str, path: Path, *suffixes: str) -> None:
    """Say at once that a file cannot be written, before what goes into it is computed."""
    if path.is_dir() or not path.absolute().parent.is_dir() or (suffixes and path.suffix not in suffixes):
        kind = f"a {' or '.join(suffixes)} file" if suffixes else "a file"
        raise InputError(f"{option} {path} is not possible; it is {kind} in a folder that is there")
