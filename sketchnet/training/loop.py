"""The training loop. It reads top to bottom."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from sketchnet import random
from sketchnet.data.batches import iterate_numbered
from sketchnet.errors import InputError, SketchnetError
from sketchnet.memory import parse_memory
from sketchnet.nn import SketchNetwork
from sketchnet.storage import locked, writing
from sketchnet.training import checkpoint
from sketchnet.training.captured import make_steps
from sketchnet.training.config import TrainingConfig
from sketchnet.training.examples import Examples, hold_back
from sketchnet.training.linear import blend_linear
from sketchnet.training.model import Model, load_model
from sketchnet.training.processes import Processes
from sketchnet.training.rows import scale_input
from sketchnet.training.steps import batch_loss, choose_updates, set_seed

_WITH_CLASSES = ("binary", "multiclass")
_TRIAL_ROWS = 1 << 15  # that rates are tried on


class TrainingError(SketchnetError):
    """Training cannot go on."""


class Interrupted(SketchnetError):
    """Asked to stop; what was reached is saved."""


@dataclass
class Progress:
    """How far training has come; together with the weights, all that a checkpoint needs."""

    epoch: int = 0
    step: int = 0  # within the epoch
    loss: float = 0.0  # summed over the epoch so far
    weight: float = 0.0
    best_epoch: int = -1
    best: tuple[float, float] = (float("inf"), float("inf"))  # validation error, then loss
    seconds: float = 0.0
    history: list[dict] = field(default_factory=list)


def train(
    model: Model,
    examples: Examples,
    valid: Examples | None,
    *,
    folder: Path | None = None,
    overwrite: bool = False,
    memory: str | int | None = "1GiB",
    report: Callable[[dict], None] = lambda record: None,
    tick: Callable[[int, int, str], None] = lambda done, total, note: None,
) -> None:
    """Train the model's network in place; afterwards it is the network of the best epoch on `valid`.

    With a `folder` the state is saved after every epoch and on SIGINT or SIGTERM, and a run that was cut off goes on
    where it was, to the same weights; a finished one is loaded. Another model in the folder is an error, unless
    `overwrite`. `report` is told each record of the history, `tick(done, total, note)` each step. Processes that
    torchrun started train together; all of them have the network in the end, the first one writes and reports.
    """
    team = Processes.found()
    if not team.is_first:
        report, tick = _silent, _silent
    if folder is None:
        return _train(model, examples, valid, None, memory, report, tick, lambda: False, team)
    folder = Path(folder)
    with _held(folder, team), _signals() as asked_to_stop:
        if team.first_says(team.is_first and _is_done(folder, model, overwrite)):
            finished = load_model(folder)
            model.network.load_state_dict(finished.network.state_dict())
            model.history = finished.history
        else:
            _train(model, examples, valid, folder, memory, report, tick, asked_to_stop, team)
        team.wait()


def _silent(*_) -> None:
    pass


@contextmanager
def _held(folder: Path, team: Processes) -> Iterator[None]:
    """The folder, made if there is none, and locked by the first process."""
    if not team.is_first:
        yield
        return
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        yield


def _is_done(folder: Path, model: Model, overwrite: bool) -> bool:
    """Whether the folder has just this model, finished. If it has none, it is made this one's."""
    ours = json.loads(json.dumps(model.config()))
    files = [folder / name for name in (checkpoint.CHECKPOINT, checkpoint.WEIGHTS, checkpoint.HISTORY)]
    if overwrite:
        for path in (folder / checkpoint.CONFIG, *files):
            path.unlink(missing_ok=True)
    if (folder / checkpoint.CONFIG).exists():
        theirs = checkpoint.read_config(folder)
        different = [part for part in ours if theirs.get(part) != ours[part]]
        if different:
            raise InputError(f"{folder} has another model, with another {different[0]}; choose another or overwrite it")
        return files[1].exists() and any("best_epoch" in record for record in checkpoint.read_history(folder))
    if any(path.exists() for path in files):
        raise InputError(f"{folder} has parts of a model but no {checkpoint.CONFIG}; choose another or overwrite it")
    checkpoint.write_config(folder, ours)
    return False


def _train(model, examples, valid, folder, memory, report, tick, asked_to_stop, team: Processes) -> None:
    network, task, config, state = model.network, model.task, model.training, Progress()
    resuming = folder is not None and (folder / checkpoint.CHECKPOINT).exists()
    begun = time.perf_counter()

    def note(record: dict) -> None:
        state.history.append(record)
        report(record)

    kept = None  # the best network, where no folder keeps it
    if resuming:
        tensors, state = _read(folder)
    team.wait()  # until all have read what is about to change
    aside = _silent if resuming else note  # what was noted when it was first done
    scale_input(network, examples.data, aside)
    if not resuming:
        note(_choose_rates(model, examples, valid, memory, asked_to_stop, team))
    rates = replace(config, **_rates(state.history))
    steps = make_steps(network, task, examples, rates, parse_memory(memory), aside, team)
    with torch.random.fork_rng(devices=_cuda(network)), closing(steps), team.training(network):
        if resuming:
            _load(tensors, network, steps)
            begun -= state.seconds
        total = config.epochs * steps.n_batches
        while state.epoch < config.epochs:
            for loss, weight in steps.epoch(state.epoch, state.step):
                if not np.isfinite(loss):
                    place = f"epoch {state.epoch + 1}, step {state.step + 1}"
                    raise TrainingError(f"the loss is {loss / weight} in {place}: {_advice(config, folder)}")
                state.loss, state.weight = state.loss + loss, state.weight + weight
                state.step, state.seconds = state.step + 1, time.perf_counter() - begun
                done, mean = state.epoch * steps.n_batches + state.step, state.loss / max(state.weight, 1e-300)
                tick(done, total, f"epoch {state.epoch + 1}, loss {mean:.4f}")
                if team.any(asked_to_stop()) if weight else team.alone and asked_to_stop():
                    loss, weight = steps.pending()
                    state.loss, state.weight = state.loss + loss, state.weight + weight
                    if folder is not None and np.isfinite(loss):  # or what was saved before is better
                        _save(folder, network, steps, state, team)
                    raise Interrupted("stopped as asked; run the same command again to go on")
            record = {"epoch": state.epoch + 1, "loss": state.loss / max(state.weight, 1e-300)}
            reached = (0.0, -state.epoch)  # without validation rows, the last epoch is the best
            if valid is not None:
                reached = steps.evaluate(valid)
                record |= {"valid_error": reached[0], "valid_loss": reached[1]}
            if not (all(map(np.isfinite, reached)) and _is_finite(network)):
                raise TrainingError(f"epoch {state.epoch + 1} left weights too large: {_advice(config, folder)}")
            state.seconds = team.first_says(time.perf_counter() - begun)
            note({**record, "seconds": round(state.seconds, 3)})
            reached = (round(reached[0], 6), reached[1])  # errors of weights next to nothing are ties
            if reached < state.best:
                state.best, state.best_epoch = reached, state.epoch
                if folder is None:
                    kept = {name: tensor.clone() for name, tensor in network.state_dict().items()}
                elif team.is_first:
                    checkpoint.write_tensors(folder / checkpoint.WEIGHTS, network.state_dict())
            state.epoch, state.step, state.loss, state.weight = state.epoch + 1, 0, 0.0, 0.0
            enough = config.patience is not None and state.epoch - 1 - state.best_epoch >= config.patience
            if enough or (config.seconds is not None and state.seconds > config.seconds):
                break
            if folder is not None:
                _save(folder, network, steps, state, team)
    team.wait()
    if state.best_epoch < 0:
        raise TrainingError(f"no epoch gave a finite error: {_advice(config, folder)}")
    blended = None
    if folder is not None:
        kept, notes = checkpoint.read_tensors(folder / checkpoint.WEIGHTS)
        blended = notes.get("blended")  # and cut off right after
    network.load_state_dict(kept)
    network.requires_grad_(True)
    network.eval()
    model._double = None  # of the network as it was before
    weighted = examples.weights is not None  # which the linear model would not know of
    if config.blend and network.wide is not None and valid is not None and not weighted and task.kind in _WITH_CLASSES:
        record = blended or {"stage": "linear", **blend_linear(model, examples, valid)}
        note(record)
        team.wait()  # until all have read the weights
        if folder is not None and team.is_first:
            lasting = {key: value for key, value in record.items() if key != "seconds"}  # the same in every run
            checkpoint.write_tensors(folder / checkpoint.WEIGHTS, network.state_dict(), {"blended": lasting})
    model.history = [*state.history, {"best_epoch": state.best_epoch + 1, "seconds": round(state.seconds, 3)}]
    if folder is not None and team.is_first:
        checkpoint.write_history(folder, model.history)
        (folder / checkpoint.CHECKPOINT).unlink(missing_ok=True)


def _is_finite(network: SketchNetwork) -> bool:
    return all(bool(tensor.isfinite().all()) for tensor in network.state_dict().values())


def _advice(config: TrainingConfig, folder: Path | None) -> str:
    kept = f"; {folder} keeps the state before it" if folder is not None else ""
    return f"the rate {config.rate:g} may be too high, or values too large{kept}"


def _choose_rates(model: Model, examples: Examples, valid: Examples | None, memory, asked_to_stop, team) -> dict:
    """A record with the rates of the columns' weights: those given, or the best of three after a trial.

    Bold rates let rare columns speak after they were seen a few times, which text rewards and noise punishes: only
    validation rows can tell. A step of Adam moves a logit by about the rate times the row's sum of absolute values, so
    the wide path's rates are relative to that.
    """
    given, settings = model.training, model.network.config
    sample = model.network.columns(examples.data.rows(slice(0, min(examples.data.n_rows, 4096))))
    row_sum = max(float(np.abs(sample.values).sum()) / max(1, sample.n_rows), 1e-12)
    rates = {
        name: {"sparse_rate": sparse, "wide_rate": wide / row_sum}
        for name, (sparse, wide) in {"bold": (0.1, 3.0), "even": (0.01, 1.0), "timid": (0.001, 0.1)}.items()
    }
    given_rates = {name: value for name in ("sparse_rate", "wide_rate") if (value := getattr(given, name)) is not None}
    begun, tried, chosen = time.perf_counter(), {}, rates["even"]
    if given.optimiser == "sgd":
        chosen = {"sparse_rate": 1.0, "wide_rate": 1.0}
    elif valid is not None and len(given_rates) < 2 and (settings.learn or settings.wide):
        some, _ = hold_back(examples, max(0.0, 1 - _TRIAL_ROWS / examples.data.n_rows), given.seed)
        for name, candidate in rates.items():
            once = replace(given, **{**candidate, **given_rates}, epochs=1, blend=False)
            trial = Model(SketchNetwork(settings).to(model.network.device), model.task, once)
            try:
                _train(trial, some, valid, None, memory, _silent, _silent, asked_to_stop, team)
                tried[name] = next(record["valid_error"] for record in trial.history if "valid_error" in record)
            except TrainingError:
                tried[name] = float("inf")
        chosen = rates[min(tried, key=tried.get)]
    seconds = team.first_says(round(time.perf_counter() - begun, 3))
    return {"stage": "rates", **chosen, **given_rates, **tried, "seconds": seconds}


def even_rates(model: Model, examples: Examples) -> TrainingConfig:
    """The model's configuration with rates for rows that come in portions, which cannot be tried."""
    record = _choose_rates(model, examples, None, None, lambda: False, Processes())
    return replace(model.training, **_rates([record]))


def _rates(history: list[dict]) -> dict:
    record = next(record for record in history if record.get("stage") == "rates")
    return {name: record[name] for name in ("sparse_rate", "wide_rate")}


def train_once(model: Model, examples: Examples, optimiser) -> None:
    """One pass over examples at constant rates, for rows that come in portions; steps go on from the optimiser's."""
    network, task, config = model.network, model.task, model.training
    order = {"seed": config.seed, "epoch": optimiser.steps}
    network.train()
    try:
        with torch.random.fork_rng(devices=_cuda(network)):
            for rows, batch in iterate_numbered(examples.data, config.batch_size, **order):
                step = optimiser.steps
                optimiser.schedule(0, None)
                set_seed(network, config.seed, step)
                choose_updates(network, config.seed, step)
                key = random.hash_key(config.seed, random.STREAM_FEATURE_DROPOUT, step)
                loss = batch_loss(task, network(network.read(batch, key)), examples, rows, len(rows))
                value = float(loss.detach())
                if not np.isfinite(value):
                    raise TrainingError(f"the loss is {value} in step {step + 1}: the rates may be too high")
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
    finally:  # whoever goes on with the network, after an error too, finds it in order
        optimiser.settle()
        network.eval()
        model._double = None


def _save(folder: Path, network: SketchNetwork, steps, state: Progress, team: Processes) -> None:
    if not team.is_first:
        return
    tensors = {f"network.{name}": tensor for name, tensor in network.state_dict().items()}
    tensors |= {f"optimiser.{name}": tensor for name, tensor in steps.state().items()}
    checkpoint.write_tensors(folder / checkpoint.CHECKPOINT, tensors, asdict(state))
    checkpoint.write_history(folder, state.history)


def _read(folder: Path) -> tuple[dict, Progress]:
    tensors, notes = checkpoint.read_tensors(folder / checkpoint.CHECKPOINT)
    return tensors, Progress(**{**notes, "best": tuple(notes["best"])})


def _load(tensors: dict, network: SketchNetwork, steps) -> None:
    parts: dict[str, dict] = {"network": {}, "optimiser": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    network.load_state_dict(parts["network"])
    steps.load_state(parts["optimiser"])


@contextmanager
def _signals() -> Iterator[Callable[[], bool]]:
    """Gives a function that tells whether SIGINT or SIGTERM came. A second one acts as usual."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = {}

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


def _cuda(network: SketchNetwork) -> list:
    return [network.device] if network.device.type == "cuda" else []
