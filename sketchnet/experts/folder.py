"""A blend in a folder: fitted there, or loaded if it is there; a run that was cut off goes on."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sketchnet.errors import InputError, Interrupted
from sketchnet.experts.fit import fit_blend_of_experts
from sketchnet.experts.model import BlendedModel, load_model
from sketchnet.experts.settings import BlendSettings
from sketchnet.storage import read_json, remove, workspace_of, write_json, writing
from sketchnet.training import checkpoint
from sketchnet.training.examples import Examples
from sketchnet.training.task import Task


def train_blend_in(
    folder: Path,
    overwrite: bool,
    task: Task,
    examples: Examples,
    valid: Examples | None,
    settings: BlendSettings,
    **how,
) -> BlendedModel:
    """Fit a blend and write it into a folder, or load it if it is there.

    A run that was cut off goes on with the first expert that was not finished. Another model in the folder is an error,
    unless `overwrite`; it is replaced when the new one is done.
    """
    about = {"columns": examples.data.n_columns, "training": settings.to_dict(), "task": task.to_dict()}
    about |= {"data": dict(how.get("data") or {})}
    about = json.loads(json.dumps(about))
    checkpoint.check_place(folder)
    with checkpoint.held(folder), _stopping():
        if not overwrite and (folder / checkpoint.CONFIG).exists():
            there = checkpoint.read_config(folder)
            different = [part for part in about if there.get(part) != about[part]] if "experts" in there else ["kind"]
            if different:
                wrong = f"{folder} has another model, with another {different[0]}"
                raise InputError(f"{wrong}; choose another or overwrite it")
            return load_model(folder)  # type: ignore[return-value]  # which the parts that agree make sure of
        work = workspace_of(folder, inside=True) / "blend"
        key = {**about, "rows": examples.data.n_rows, "entries": int(examples.data.n_entries)}
        if not (work / "about.json").exists() or read_json(work / "about.json") != key:
            remove(work)
            with writing(folder):
                work.mkdir()
            write_json(work / "about.json", key)
        model = fit_blend_of_experts(task, examples, valid, settings, work=work, **how)
        checkpoint.write_model(folder, model.tensors(), model.history, model.config())
    return model


@contextmanager
def _stopping() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into an error that says that the work can go on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number, frame):
        raise Interrupted("stopped as asked; run the same command again to go on")

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
