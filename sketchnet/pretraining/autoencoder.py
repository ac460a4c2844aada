"""The course of an autoencoder's training: pretrained RBMs, unfolded, then finetuned by what is lost on the way."""

from __future__ import annotations

import dataclasses
from contextlib import closing

import numpy as np
import torch

from sketchnet import random
from sketchnet.checks import as_flag, check_integer, meant
from sketchnet.data.batches import iterate_batches, iterate_numbered
from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.memory import parse_memory
from sketchnet.nn import Autoencoder, AutoencoderConfig
from sketchnet.nn.numbering import drop_entries
from sketchnet.pretraining.course import pretrain_autoencoder
from sketchnet.training.config import TrainingConfig
from sketchnet.training.course import Course, Run, silent
from sketchnet.training.defaults import is_auto, rbm_epochs, with_density
from sketchnet.training.examples import Examples
from sketchnet.training.model import Model
from sketchnet.training.rows import timed
from sketchnet.training.steps import EagerSteps
from sketchnet.training.task import Task

_LOOKED_AT = 4096  # rows at a time, to tell counts from real numbers
_EPOCHS, _STEPS, _FEWEST = 50, 20_000, 5  # of finetuning: about so many steps, within so many epochs
_DROPPED = 0.8  # of a row's numbers: of documents a fifth of the words is enough to tell what they are about
_RATE, _REAL_RATE = 2e-3, 1e-3  # of counts, and of real rows; gradients are noisy with so much left out
_L2 = 0.05
_TOGETHER, _NUMBERS = 32, 1 << 23  # batches that are thinned and projected together, and numbers of their rows


def build_autoencoder(data, settings: dict, seed: int) -> Model:
    """An untrained model for rows like those of `data`; settings that are "auto", or not there, are chosen here."""
    given = {name: value for name, value in settings.items() if not is_auto(value)}
    of_network = {field.name for field in dataclasses.fields(AutoencoderConfig)} - {"n_columns", "seed"}
    of_training = {field.name for field in dataclasses.fields(TrainingConfig)} - {"seed", "frozen_epochs"}
    network = {name: given.pop(name) for name in list(given) if name in of_network}
    training = {name: given.pop(name) for name in list(given) if name in of_training}
    for name in given:
        raise InputError(f"an autoencoder has no setting {name}; {meant(name, of_network | of_training)}")
    counts = network.get("scheme") is None and _are_counts(data)
    network.setdefault("visible", "counts" if counts else "real")
    network.setdefault("units", "binary" if network["visible"] == "counts" else "relu")
    network.setdefault("feature_dropout", _DROPPED)
    training.setdefault("rate", _RATE if network["visible"] == "counts" else _REAL_RATE)
    training.setdefault("l2", _L2)
    n = max(1, data.n_rows)
    if as_flag(training.setdefault("pretrain", True)) is True:
        training["pretrain"] = rbm_epochs(n)
    batch_size = check_integer("batch_size", training.setdefault("batch_size", 100), 1, 2**31)
    epochs = training.setdefault("epochs", max(_FEWEST, min(_EPOCHS, _STEPS * batch_size // n)))
    training.setdefault("patience", max(5, check_integer("epochs", epochs, 1, 2**31) // 3))
    config = AutoencoderConfig(n_columns=max(1, data.n_columns), seed=seed, **network)
    config = with_density(config, n, config.n_columns)
    return Model(Autoencoder(config), Task("autoencoder"), TrainingConfig(seed=seed, **training))


def _are_counts(data) -> bool:
    return all(_no_count(batch) is None for batch in iterate_batches(data, _LOOKED_AT, shuffle=False))


def _words(data, at_once: int) -> float:
    """How many all rows have together, which must be counts."""
    total = 0.0
    for batch in iterate_batches(data, at_once, shuffle=False):
        bad = _no_count(batch)
        if bad is not None:
            law = "counts of words are whole numbers from 0; other values need visible='real'"
            raise InputError(f"a count is {bad:g}; {law}")
        total += float(batch.values[: batch.n_entries].sum(dtype=np.float64))
    return total


def _no_count(batch: CsrBatch) -> float | None:
    """A value that is no count of words, if there is one."""
    values = batch.values[: batch.n_entries]
    bad = ~((values >= 0) & (values == np.round(values)))
    return float(values[bad.argmax()]) if bad.any() else None


class Unsupervised(Course):
    """Targets are not looked at."""

    def start(self, model: Model, examples: Examples, valid: Examples | None, run: Run) -> AutoencoderSteps:
        network = model.network
        if network.config.visible == "counts":
            with timed("normalise", run.aside):
                words, *_ = (_words(part.data, network.at_once) for part in (examples, valid) if part is not None)
                network.set_length(words / max(1, examples.data.n_rows))
        if model.training.pretrain and not run.resuming:
            pretrain_autoencoder(model, examples, valid, run)
            run.team.equalise(network)
        note = run.aside if network.config.scheme else silent  # without a projection nothing is reduced
        return AutoencoderSteps(model, examples, parse_memory(run.memory), run.team, note)

    def finish(self, model: Model, examples: Examples) -> dict | None:
        """Codes get the mean zero, because angles between them depend on where zero is. Logistic ones stay."""
        network = model.network
        if network.config.binary_codes:
            return None
        mean = torch.zeros(network.config.n_codes, dtype=torch.float64, device=network.device)
        with torch.no_grad():
            for batch in iterate_batches(examples.data, network.at_once, shuffle=False):
                mean += network(batch).double().sum(dim=0) / examples.data.n_rows
            network.centre_codes(mean.to(network.encoder[-1].bias))
        return {"stage": "centre", "moved_by": float(mean.norm())}


class AutoencoderSteps(EagerSteps):
    """Rows are kept as the first layer takes them if they fit the budget, else read anew. What is left of them when
    some of their numbers are left out is made in every epoch, for many batches at a time.
    """

    def __init__(self, model: Model, examples: Examples, budget: int, team, note=silent):
        super().__init__(model.network, model.training, examples.data.n_rows, team)
        self._data, self._budget = examples.data, budget
        self._kept: torch.Tensor | None = None
        self._valid: tuple[Examples, list[torch.Tensor]] | None = None
        width = self._network.config.n_visible
        self._together = max(1, min(_TOGETHER, _NUMBERS // (width * self._config.batch_size)))
        if 4 * self._data.n_rows * width <= budget:
            self._kept = torch.empty(self._data.n_rows, width, device=self._network.device)
            done = 0
            with timed("reduce", note):
                for batch in iterate_batches(self._data, self._network.at_once, shuffle=False):
                    self._kept[done : done + batch.n_rows] = self._network.visible(batch)
                    done += batch.n_rows

    def batches(self, epoch: int, skip: int):
        """(row numbers, (dense rows, what the encoder sees of them)) in the epoch's order."""
        network, config, together = self._network, self._config, self._together
        at_once = together * config.batch_size
        chunks = iterate_numbered(self._data, at_once, seed=config.seed, epoch=epoch, skip=skip // together)
        with closing(chunks):
            for number, (rows, batch) in enumerate(chunks, start=skip // together):
                whole = self._rows(rows, batch)
                seen = whole
                if network.config.feature_dropout > 0:
                    key = random.hash_key(config.seed, random.STREAM_FEATURE_DROPOUT, epoch << 32 | number)
                    seen = network.visible(drop_entries(batch, network.config.feature_dropout, key))
                begun = max(0, skip - number * together) * config.batch_size
                for start in range(begun, len(rows), config.batch_size):
                    span = slice(start, start + config.batch_size)
                    yield rows[span], (whole[span], seen[span])

    def _rows(self, numbers: np.ndarray, batch: CsrBatch) -> torch.Tensor:
        if self._kept is None:
            return self._network.visible(batch)
        return self._kept[torch.from_numpy(numbers).to(self._kept.device)]

    def loss(self, rows: np.ndarray, batch: tuple, step: int, mine: slice) -> torch.Tensor:
        return self._network.losses(*batch, mine).sum() / len(rows)

    def evaluate(self, examples: Examples) -> tuple[float, float]:
        """What is lost of examples, twice: it is the error too."""
        self._network.eval()
        sums = torch.zeros(2, dtype=torch.float64, device=self._network.device)
        with torch.no_grad():
            for rows in self._valid_rows(examples):
                losses = self._network.losses(rows).double()
                sums += torch.stack([losses.sum(), torch.full_like(losses[0], len(losses))])
        total, n = self._team.sum(sums.cpu()).tolist()
        return total / n, total / n

    def _valid_rows(self, examples: Examples):
        """This process's share of them; kept from the first time on, if they fit the budget beside the others."""
        if self._valid is not None and self._valid[0] is examples:
            yield from self._valid[1]
            return
        n_rows = examples.data.n_rows + (0 if self._kept is None else len(self._kept))
        fits = 4 * n_rows * self._network.config.n_visible <= self._budget
        kept = []
        for number, batch in enumerate(iterate_batches(examples.data, self._network.at_once, shuffle=False)):
            if number % self._team.count == self._team.rank:
                rows = self._network.visible(batch)
                kept += [rows] if fits else []
                yield rows
        self._valid = (examples, kept) if fits else None
