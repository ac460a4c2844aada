"""The training loop. It reads top to bottom."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import nn

from sketchnet import random
from sketchnet.data.batches import iterate_numbered
from sketchnet.errors import InputError, Interrupted, TrainingError
from sketchnet.memory import pages_kept, ran_out
from sketchnet.training import checkpoint
from sketchnet.training.config import TrainingConfig
from sketchnet.training.course import Course, Progress, Run, Supervised, silent
from sketchnet.training.divergence import explain_divergence
from sketchnet.training.examples import Examples
from sketchnet.training.model import Model
from sketchnet.training.processes import Processes
from sketchnet.training.steps import Steps, batch_loss, choose_updates, set_seed
from sketchnet.training.threads import step_work, thread_budget


@pages_kept()
def train(
    model: Model,
    examples: Examples,
    valid: Examples | None,
    *,
    course: Course = Supervised(),  # noqa: B008 (it has no state)
    folder: Path | None = None,
    overwrite: bool = False,
    memory: str | int | None = "1GiB",
    report: Callable[[dict], None] = silent,
    tick: Callable[[int, int, str], None] = silent,
    loaded: float | None = None,
    threads: int | None = None,
) -> None:
    """Train the model's network in place; afterwards it is the network of the best epoch on `valid`.

    With a `folder` the state is saved after every epoch and on SIGINT or SIGTERM, and a run that was cut off goes on
    where it was, to the same weights; a finished one is loaded. Another model in the folder is an error, unless
    `overwrite`. `report` is told each record of the history, `tick(done, total, note)` each step. Processes that
    torchrun started train together; all of them have the network in the end, the first one writes and reports. `course`
    is what comes before the epochs and after them. `loaded`: seconds that reading the rows took, for the history.
    `threads`: at most so many, instead of what variables and torch's settings say.
    """
    course.check(model)
    run = Run(folder and Path(folder), memory, report, tick, team=Processes.found(), loaded=loaded)
    if not run.team.is_first:
        run.report, run.tick = silent, silent
    with thread_budget(step_work(model.network, model.training.batch_size), threads):
        if run.folder is None:
            _train(model, examples, valid, course, run)
        else:
            _train_in_folder(model, examples, valid, course, run, overwrite)


def _train_in_folder(model: Model, examples: Examples, valid, course: Course, run: Run, overwrite: bool) -> None:
    assert run.folder is not None
    with checkpoint.held(run.folder) if run.team.is_first else nullcontext(), _signals() as run.asked_to_stop:
        if run.team.first_says(run.team.is_first and _claim_folder(run.folder, model, overwrite)):
            model.network.load_state_dict(checkpoint.read_tensors(run.folder / checkpoint.WEIGHTS)[0])
            model.network.eval()
            model.history = checkpoint.read_history(run.folder)
        else:
            try:
                _train(model, examples, valid, course, run)
            except Exception as error:
                in_vain = isinstance(error, InputError | TrainingError) or ran_out(error)
                if in_vain and run.team.is_first and not checkpoint.has_begun(run.folder):
                    # Nothing should stand in the way of another try, with other rows or settings.
                    (run.folder / checkpoint.CONFIG).unlink(missing_ok=True)
                raise
        run.team.wait()


def _claim_folder(folder: Path, model: Model, overwrite: bool) -> bool:
    """Whether the folder has just this model, finished. If it has none, it is made this one's."""
    ours = json.loads(json.dumps(model.config()))
    names = (checkpoint.CHECKPOINT, checkpoint.WEIGHTS, checkpoint.HISTORY, checkpoint.PRETRAINING)
    files = [folder / name for name in names]
    if overwrite:
        checkpoint.set_aside(folder)
    if (folder / checkpoint.CONFIG).exists():
        theirs = checkpoint.read_config(folder)
        if isinstance(theirs.get("training"), dict):  # settings that earlier versions did not have
            theirs["training"] = {**TrainingConfig().to_dict(), **theirs["training"]}
        different = [part for part in ours if theirs.get(part) != ours[part]]
        if different:
            raise InputError(f"{folder} has another model, with another {different[0]}; choose another or overwrite it")
        if not files[1].exists() or not any("best_epoch" in record for record in checkpoint.read_history(folder)):
            return False
        checkpoint.end(folder)  # a run that was killed may not have come to it
        return True
    if any(path.exists() for path in files):
        raise InputError(f"{folder} has parts of a model but no {checkpoint.CONFIG}; choose another or overwrite it")
    checkpoint.write_config(folder, ours)
    return False


def _train(model: Model, examples: Examples, valid: Examples | None, course: Course, run: Run) -> None:
    network, team = model.network, run.team
    run.resuming = run.folder is not None and (run.folder / checkpoint.CHECKPOINT).exists()
    if run.folder is not None and run.resuming:
        tensors, run.progress = _read(run.folder)
    team.wait()  # until all have read what is about to change
    if run.loaded is not None:
        run.aside({"stage": "load", "seconds": round(run.loaded, 3)})

    steps = course.start(model, examples, valid, run)
    with torch.random.fork_rng(devices=_cuda(network)), closing(steps), team.training(network):
        if run.resuming:
            _load(tensors, network, steps)
            del tensors  # else they stay until training ends
            run.begun -= run.progress.seconds
        best = _Epochs(model, steps, examples, valid, run).go()
    team.wait()
    if run.progress.best_epoch < 0:
        raise TrainingError(f"no epoch gave a finite error: {_explain(model, examples, run)}")
    _finish(model, examples, course, run, best)


class _Epochs:
    """The epochs that `run.progress` leaves to do."""

    def __init__(self, model: Model, steps: Steps, examples: Examples, valid: Examples | None, run: Run):
        self._model, self._network, self._config = model, model.network, model.training
        self._steps, self._examples, self._valid, self._run = steps, examples, valid, run
        self._best: dict[str, torch.Tensor] | None = None

    def go(self) -> dict[str, torch.Tensor] | None:
        """The best epoch's network, where no folder keeps it."""
        state = self._run.progress
        while state.epoch < self._config.epochs:
            self._learn()
            self._judge()
            state.epoch, state.step, state.loss, state.weight = state.epoch + 1, 0, 0.0, 0.0
            if self._is_enough():
                break
            self._save()
        return self._best

    def _learn(self) -> None:
        state, steps, team = self._run.progress, self._steps, self._run.team
        total = self._config.epochs * steps.n_batches
        for loss, weight in steps.epoch(state.epoch, state.step):
            if not np.isfinite(loss):
                place = f"epoch {state.epoch + 1}, step {state.step + 1}"
                raise TrainingError(f"the loss is {loss / weight} in {place}: {self._explain()}")
            state.loss, state.weight = state.loss + loss, state.weight + weight
            state.step, state.seconds = state.step + 1, time.perf_counter() - self._run.begun
            done = state.epoch * steps.n_batches + state.step
            self._run.tick(done, total, f"epoch {state.epoch + 1}, loss {state.mean_loss:.4f}")
            # A team asks when losses become known: asking all processes takes time.
            if (team.alone or weight) and team.any(self._run.asked_to_stop()):
                self._stop()

    def _stop(self) -> None:
        state = self._run.progress
        loss, weight = self._steps.pending()
        state.loss, state.weight = state.loss + loss, state.weight + weight
        if np.isfinite(loss):  # or what was saved before is better
            self._save()
        self._run.team.wait()  # who leaves early takes the others along, in the middle of writing
        raise Interrupted("stopped as asked; run the same command again to go on")

    def _judge(self) -> None:
        """Note what the epoch reached, and keep the network if it is the best one."""
        state, team, network = self._run.progress, self._run.team, self._network
        record = {"epoch": state.epoch + 1, "loss": state.mean_loss}
        reached = (0.0, -state.epoch)  # without validation rows, the last epoch is the best
        if self._valid is not None:
            reached = self._steps.evaluate(self._valid)
            record |= {"valid_error": reached[0], "valid_loss": reached[1]}
        if team.any(not (all(map(np.isfinite, reached)) and _is_finite(network))):
            raise TrainingError(f"epoch {state.epoch + 1} left weights too large: {self._explain()}")
        state.seconds = team.first_says(time.perf_counter() - self._run.begun)
        self._run.note({**record, "seconds": round(state.seconds, 3)})
        reached = (round(reached[0], 6), reached[1])  # errors of weights next to nothing are ties
        if reached < state.best:
            state.best, state.best_epoch = reached, state.epoch
            if self._run.folder is None:
                self._best = {name: tensor.clone() for name, tensor in network.state_dict().items()}
            elif team.is_first:
                checkpoint.write_tensors(self._run.folder / checkpoint.WEIGHTS, network.state_dict())

    def _is_enough(self) -> bool:
        state, config = self._run.progress, self._config
        since = max(state.best_epoch + 1, config.frozen_epochs)  # patience is for what comes after them
        if config.patience is not None and state.epoch - since >= config.patience:
            return True
        return config.seconds is not None and state.seconds > config.seconds

    def _save(self) -> None:
        run = self._run
        if run.folder is None or not run.team.is_first:
            return
        network, state = self._network.state_dict(), self._steps.state()
        tensors = {f"network.{name}": network[name] for name in network if not _is_table(name, state)}
        tensors |= {f"optimiser.{name}": tensor for name, tensor in state.items()}
        checkpoint.write_tensors(run.folder / checkpoint.CHECKPOINT, tensors, asdict(run.progress))
        checkpoint.write_history(run.folder, run.progress.history)

    def _explain(self) -> str:
        return _explain(self._model, self._examples, self._run)


def _finish(model: Model, examples: Examples, course: Course, run: Run, best) -> None:
    """The best network, what the course makes of it, and the history."""
    network, folder, team, finished = model.network, run.folder, run.team, None
    if folder is not None:
        best, notes = checkpoint.read_tensors(folder / checkpoint.WEIGHTS)
        finished = notes.get("finished")  # and cut off right after
    network.load_state_dict(best)
    network.requires_grad_(True)
    network.eval()
    model.forget_double()
    finished = finished or course.finish(model, examples)
    team.wait()  # until all have read the weights
    if finished is not None:
        run.note(finished)
        if folder is not None and team.is_first:
            lasting = {key: value for key, value in finished.items() if key != "seconds"}  # the same in every run
            checkpoint.write_tensors(folder / checkpoint.WEIGHTS, network.state_dict(), {"finished": lasting})
    model.history = [*run.progress.history, _end(run.progress)]
    if folder is not None and team.is_first:
        checkpoint.write_history(folder, model.history)
        checkpoint.end(folder)


def _end(state: Progress) -> dict:
    """The last record: the best epoch, and the seconds until its end and in all."""
    best = state.best_epoch + 1
    until = next(record["seconds"] for record in state.history if "loss" in record and record["epoch"] == best)
    return {"best_epoch": best, "seconds_to_best": until, "seconds": round(state.seconds, 3)}


def _is_finite(network: nn.Module) -> bool:
    return all(bool(tensor.isfinite().all()) for tensor in network.state_dict().values())


def _explain(model: Model, examples: Examples, run: Run) -> str:
    kept = run.folder is not None and checkpoint.has_begun(run.folder)
    explained = explain_divergence(model, examples.data, model.training.rate)
    return explained + (f"; {run.folder} keeps the state before it" if kept else "")


def train_once(model: Model, examples: Examples, optimiser, threads: int | None = None) -> None:
    """One pass over examples at constant rates, for rows that come in portions; steps go on from the optimiser's."""
    network, task, config = model.network, model.task, model.training
    order, work = {"seed": config.seed, "epoch": optimiser.steps}, step_work(network, config.batch_size)
    network.train()
    try:
        with thread_budget(work, threads), torch.random.fork_rng(devices=_cuda(network)):
            for rows, batch in iterate_numbered(examples.data, config.batch_size, **order):
                step = optimiser.steps
                optimiser.schedule(0, None)
                set_seed(network, config.seed, step)
                choose_updates(network, config.seed, step)
                key = random.hash_key(config.seed, random.STREAM_FEATURE_DROPOUT, step)
                loss = batch_loss(task, network(network.read(batch, key)), examples, rows, len(rows))
                value = float(loss.detach())
                if not np.isfinite(value):
                    explained = explain_divergence(model, examples.data, config.rate)
                    raise TrainingError(f"the loss is {value} in step {step + 1}: {explained}")
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
    finally:  # whoever goes on with the network, after an error too, finds it in order
        optimiser.settle()
        network.eval()
        model.forget_double()


def _read(folder: Path) -> tuple[dict, Progress]:
    tensors, notes = checkpoint.read_tensors(folder / checkpoint.CHECKPOINT)
    return tensors, Progress(**{**notes, "best": tuple(notes["best"])})


def _load(tensors: dict, network: nn.Module, steps: Steps) -> None:
    parts: dict[str, dict] = {"network": {}, "optimiser": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    tables = {name: own for name, own in network.state_dict().items() if _is_table(name, parts["optimiser"])}
    network.load_state_dict({**tables, **parts["network"]})
    steps.load_state(parts["optimiser"])


def _is_table(name: str, state: dict) -> bool:
    """Whether weights stand in the rows that the optimiser keeps: a checkpoint need not have them twice."""
    return f"sparse.{name.removesuffix('.weight')}" in state


@contextmanager
def _signals() -> Iterator[Callable[[], bool]]:
    """Gives a function that tells whether SIGINT or SIGTERM came. A second one acts as usual."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before: dict = {}

    def on_signal(number, frame):
        asked.set()
        signal.signal(number, before[number])

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, on_signal)
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _cuda(network: nn.Module) -> list:
    return [network.device] if network.device.type == "cuda" else []
