"""Contrastive divergence with momentum, epoch by epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from sketchnet import random
from sketchnet.checks import check_integer, check_real
from sketchnet.errors import InputError, Interrupted, TrainingError
from sketchnet.memory import pages_kept
from sketchnet.pretraining.rbm import RBM
from sketchnet.pretraining.units import UNITS

# Hinton's practical guide (2012).
_MOMENTUM, _SLOW_EPOCHS = (0.5, 0.9), 5  # in the first so many epochs, and then
_L2 = 2e-4  # on weights, not on biases
_NOISY = ("binary", "poisson")  # visible units that are sampled in the chain
_PARAMETERS = ("weight", "hidden_bias", "visible_bias")
_SEEDS = 1024  # drawn at once
_TRIES, _CALMER = 4, 0.25  # rates that are tried where none is given, each so much of the one before
_ENERGY_ROWS = 10_000  # at most, of either side of the free energy's gap


@dataclass(frozen=True)
class RBMTrainingConfig:
    """How an RBM is trained.

    steps: of the Gibbs chain, CD-`steps`. rate: None takes `default_rate` of the units' kinds, and a quarter of it,
    from the start, if the RBM does not stay finite, up to three times. In the chain, binary and poisson visible units
    are sampled, since their noise is the data's own; gaussian and relu units, whose noise would be as large as the
    data, are set to their means. Visible biases start where the RBM without weights fits the columns' means (log-odds,
    means, or logs of the words' shares).
    """

    epochs: int = 10
    batch_size: int = 100
    steps: int = 1
    rate: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        def fix(name: str, value) -> None:
            object.__setattr__(self, name, value)

        for name in ("epochs", "batch_size", "steps"):
            fix(name, check_integer(name, getattr(self, name), 1, 2**31))
        fix("seed", check_integer("seed", self.seed, 0, 2**64 - 1))
        if self.rate is not None:
            fix("rate", check_real("rate", self.rate))


def default_rate(visible: str, hidden: str, n_visible: int) -> float:
    """Units whose states have no upper bound need smaller rates: their gradients grow with the states, and where both
    sides have none, with the number of columns too.
    """
    if visible == "binary":
        return 0.1 if hidden == "binary" else 0.01
    if hidden == "binary":
        return 0.01 if visible == "poisson" else 0.001
    return min(0.001, 0.5 / n_visible)


@pages_kept()
def train_rbm(
    rbm: RBM,
    rows,
    config: RBMTrainingConfig,
    *,
    layer: int = 0,
    valid=None,
    report: Callable[[dict], None] = lambda record: None,
    tick: Callable[[int, int, str], None] = lambda done, total, note: None,
    asked_to_stop: Callable[[], bool] = lambda: False,
    save: Callable[[dict, dict], None] = lambda tensors, notes: None,
    state: tuple[dict, dict] | None = None,
) -> RBM:
    """Train the RBM in place on `rows` (see `rows.py`), and return it.

    After each epoch, and when asked to stop, `save(tensors, notes)` gets copies of all that is needed to go on: given
    back as `state`, they lead to the same weights. `report` is told each record, and `rbm.history` keeps them:
    {"stage": "rbm", "layer", "epoch", "reconstruction", "seconds"}, and with `valid` rows, where the RBM has a free
    energy, "free_energy_gap": the mean over those rows minus the mean over as many training rows, which grows when the
    RBM fits the training rows too closely. An RBM that begins again at a smaller rate leaves, instead of the
    epochs so far, {"stage": "rbm_restart", "layer", "epoch", "rate"}: in which epoch it was no longer finite, and the
    rate from then on. `tick(done, total, note)` is told each step.
    """
    if rows.n_columns > rbm.config.n_visible:
        raise InputError(f"rows have {rows.n_columns} columns, but there are {rbm.config.n_visible} visible units")
    learner = _Learner(rbm, config, layer)
    fresh: Any = {name: getattr(rbm, name).clone() for name in _PARAMETERS} if config.rate is None else None
    epoch = step = tries = 0
    error, begun = 0.0, time.perf_counter()
    if state is not None:
        tensors, notes = state
        learner.load(tensors)
        epoch, step, error, rbm.history = notes["epoch"], notes["step"], notes["error"], list(notes["history"])
        begun -= notes["seconds"]
        tries = notes.get("tries", 0)
        learner.rate *= _CALMER**tries
    else:
        rbm.history = []
        _survey(rbm, rows, True)
        if valid is not None:
            _survey(rbm, valid, False)
    total = config.epochs * rows.n_batches

    def keep() -> None:
        seconds = time.perf_counter() - begun
        notes = {"epoch": epoch, "step": step, "error": error, "seconds": seconds, "history": list(rbm.history)}
        notes["tries"] = tries
        save(learner.state(), notes)

    while epoch < config.epochs:
        errors = torch.full((), error, dtype=torch.float64, device=rbm.device)
        for batch in rows.batches(epoch, step):
            errors += learner.step(batch, epoch, step)
            step += 1
            tick(epoch * rows.n_batches + step, total, f"layer {layer + 1}, epoch {epoch + 1}")
            if asked_to_stop():
                error = float(errors)
                if math.isfinite(error):  # or what was saved before is better
                    keep()
                raise Interrupted("stopped as asked; run the same command again to go on")
        reconstruction = float(errors) / rows.n_rows
        if not (math.isfinite(reconstruction) and learner.is_finite()):
            if config.rate is None and tries + 1 < _TRIES:
                learner.begin_again(fresh, learner.rate * _CALMER)
                _survey(rbm, rows, True)
                record = {"stage": "rbm_restart", "layer": layer, "epoch": epoch + 1, "rate": learner.rate}
                rbm.history = [*(past for past in rbm.history if past["stage"] == "rbm_restart"), record]
                report(record)
                epoch, step, error, tries = 0, 0, 0.0, tries + 1
                continue
            raise TrainingError(
                f"layer {layer + 1} is no longer finite in epoch {epoch + 1} of its pretraining: "
                f"the rate {learner.rate:g} may be too high, or values too large"
            )
        record = {"stage": "rbm", "layer": layer, "epoch": epoch + 1, "reconstruction": reconstruction}
        if valid is not None and rbm.has_free_energy:
            record["free_energy_gap"] = _free_energy_gap(rbm, rows, valid)
        record["seconds"] = round(time.perf_counter() - begun, 3)
        rbm.history.append(record)
        report(record)
        epoch, step, error = epoch + 1, 0, 0.0
        keep()
    return rbm


def train_rbm_once(rbm: RBM, rows, config: RBMTrainingConfig, velocity: dict[str, torch.Tensor] | None = None) -> dict:
    """Train the RBM in place in one more pass over `rows`, which need not be those before; return its velocity, with
    which the next pass goes on.

    A pass counts as an epoch: for the momentum, and for what is drawn. Visible biases are set by the first rows.
    The rate is that which fitted before, and stays.
    """
    passes = [record["stage"] for record in rbm.history]
    state = None
    if passes:
        _survey(rbm, rows, False)
        calmer = default_rate(*_kinds(rbm)) * _CALMER ** passes.count("rbm_restart")
        config = replace(config, rate=calmer if config.rate is None else config.rate)
        velocity = velocity or {f"velocity.{name}": torch.zeros(()) for name in _PARAMETERS}
        tensors = {**{name: getattr(rbm, name) for name in _PARAMETERS}, **velocity}
        notes = {"epoch": passes.count("rbm"), "step": 0, "error": 0.0, "seconds": 0.0, "history": rbm.history}
        state = tensors, notes
    config = replace(config, epochs=passes.count("rbm") + 1)
    saved: list[dict] = []
    train_rbm(rbm, rows, config, state=state, save=lambda tensors, notes: saved.append(tensors))
    return {name: tensor for name, tensor in saved[-1].items() if name.startswith("velocity.")}


class _Learner:
    """Weights and their velocities, moved in place."""

    _seeds: Any  # of the steps of one block

    def __init__(self, rbm: RBM, config: RBMTrainingConfig, layer: int):
        self._rbm, self._config = rbm, config
        self._velocity = {name: torch.zeros_like(getattr(rbm, name)) for name in _PARAMETERS}
        self._generator = torch.Generator(rbm.device)
        self._seeds, self._at = None, (-1, -1)
        self._layer = layer
        self.rate = default_rate(*_kinds(rbm)) if config.rate is None else config.rate
        self._sample = rbm.config.visible in _NOISY

    def step(self, batch, epoch: int, step: int) -> torch.Tensor:
        """Take a step; returns the batch's reconstruction error, summed over its rows."""
        rbm, velocity = self._rbm, self._velocity
        self._generator.manual_seed(self._seed(epoch, step))
        chain = rbm.chain(batch, self._config.steps, self._generator, self._sample)
        momentum = _MOMENTUM[epoch >= _SLOW_EPOCHS]
        share = self.rate / len(chain.visible)
        chain.add_gradient(velocity["weight"], momentum, share)
        velocity["weight"].add_(rbm.weight, alpha=-self.rate * _L2)
        velocity["hidden_bias"].mul_(momentum).add_(chain.hidden_gradient(), alpha=share)
        velocity["visible_bias"].mul_(momentum).add_(chain.visible_gradient(), alpha=share)
        for name in _PARAMETERS:
            getattr(rbm, name).add_(velocity[name])
        return chain.error

    def _seed(self, epoch: int, step: int) -> int:
        """A function of (seed, layer, epoch, step), so that a run can go on in any step."""
        block, place = divmod(step, _SEEDS)
        if self._at != (epoch, block):
            steps = (epoch << 32) + np.arange(block * _SEEDS, (block + 1) * _SEEDS, dtype=np.uint64)
            drawn = random.words(self._config.seed, random.STREAM_RBM, steps, self._layer)
            self._seeds, self._at = drawn.view(np.uint64)[:, 0] >> np.uint64(1), (epoch, block)
        return int(self._seeds[place])

    def begin_again(self, parameters: dict[str, torch.Tensor], rate: float) -> None:
        self.load({**parameters, **{f"velocity.{name}": torch.zeros(()) for name in _PARAMETERS}})
        self.rate = rate

    def is_finite(self) -> bool:
        return all(bool(getattr(self._rbm, name).isfinite().all()) for name in _PARAMETERS)

    def state(self) -> dict[str, torch.Tensor]:
        found = {name: getattr(self._rbm, name) for name in _PARAMETERS}
        found |= {f"velocity.{name}": tensor for name, tensor in self._velocity.items()}
        return {name: copied(tensor) for name, tensor in found.items()}

    def load(self, tensors: dict[str, torch.Tensor]) -> None:
        for name in _PARAMETERS:
            getattr(self._rbm, name).copy_(tensors[name])
            self._velocity[name].copy_(tensors[f"velocity.{name}"])


def _kinds(rbm: RBM) -> tuple[str, str, int]:
    return rbm.config.visible, rbm.config.hidden, rbm.config.n_visible


def copied(tensor: torch.Tensor) -> torch.Tensor:
    """For a file: on the processor, in plain order, and no longer changing."""
    return tensor.detach().cpu().clone(memory_format=torch.contiguous_format)


def _survey(rbm: RBM, rows, set_bias: bool) -> None:
    """Look at all rows once: whether the visible units can take their values, and at the columns' sums."""
    sums = torch.zeros(rbm.config.n_visible, dtype=torch.float64, device=rbm.device)
    for batch in rows.in_order():
        batch = rbm.dense(batch)
        rbm.check_visible(batch)
        sums += batch.sum(0)
    if set_bias:
        rbm.visible_bias.copy_(UNITS[rbm.config.visible].bias(sums, rows.n_rows))


def _free_energy_gap(rbm: RBM, rows, valid) -> float:
    n = min(rows.n_rows, valid.n_rows, _ENERGY_ROWS)
    return _mean_free_energy(rbm, valid, n) - _mean_free_energy(rbm, rows, n)


def _mean_free_energy(rbm: RBM, rows, n: int) -> float:
    """Over n rows, the same each time, of a shuffle: rows are often stored class by class."""
    total, left = 0.0, n
    for energies in (rbm.free_energy(batch) for batch in rows.batches(0)):
        total += float(energies[:left].double().sum())
        left -= len(energies[:left])
        if left == 0:
            break
    return total / n
