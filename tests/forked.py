"""Command lines in processes of their own, forked off one where all is imported: to start Python takes seconds.

That one has no threads yet, unlike the process of the tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path

from tests.attack.command import become

_NEEDED = """
    sketchnet.cli.train sketchnet.cli.learning sketchnet.cli.training_data sketchnet.cli.model_rows sketchnet.cli.lines
    sketchnet.training.loop sketchnet.training.model sketchnet.projection.on_disk sketchnet.data.ingestion
    sketchnet.experts.folder sketchnet.experts.network sketchnet.experts.trees sketchnet.experts.columns lightgbm
    sketchnet.data.svmlight sketchnet.data.npz sketchnet.data.synthetic sketchnet.evaluation.metrics
""".split()
_context = get_context("forkserver")
_context.set_forkserver_preload([*_NEEDED, "tests.forked"])


def start(*command: object, cwd: Path, streams: Sequence[str | Path] = (os.devnull,) * 3, before: Callable = int):
    """Start `sketchnet COMMAND` in a folder and return its process. `streams` are files, or named pipes; `before` is
    called just before it begins.
    """
    words = [str(word) for word in command]
    process = _context.Process(target=_begin, args=(words, Path(cwd), [str(path) for path in streams], before))
    process.start()
    return process


def answer_of(function: Callable, *args: object):
    """Return what a function says in a process of its own, in which no memory was freed before."""
    ours, theirs = _context.Pipe(duplex=False)
    process = _context.Process(target=_answer, args=(theirs, function, args))
    process.start()
    theirs.close()
    with ours:
        answer = ours.recv()
    process.join()
    return answer


def _answer(connection, function: Callable, args: tuple) -> None:
    connection.send(function(*args))


def _begin(command: list[str], cwd: Path, streams: list[str], before: Callable) -> None:
    modes = os.O_RDONLY, os.O_WRONLY, os.O_WRONLY
    become(command, cwd, [os.open(path, mode) for path, mode in zip(streams, modes)], before)
