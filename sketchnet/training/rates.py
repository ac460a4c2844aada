"""The rate of the weights of columns, chosen by a trial."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from sketchnet.errors import TrainingError
from sketchnet.nn import SketchNetwork
from sketchnet.training.config import TrainingConfig
from sketchnet.training.examples import Examples, sample
from sketchnet.training.model import Model

_TRIAL_ROWS = 1 << 15  # that rates are tried on


def choose_rates(model: Model, examples: Examples, valid: Examples | None, attempt: Callable[[Model, Examples], None]):
    """A record with the rate of the columns' weights: that given, or the best of three after `attempt`, which trains a
    model on examples.

    Bold rates let rare columns speak after they were seen a few times, which text rewards and noise punishes: only
    validation rows can tell.
    """
    given, settings = model.training, model.network.config
    rates = {"bold": 0.1, "even": 0.01, "timid": 0.001}
    begun, tried, chosen = time.perf_counter(), {}, rates["even"]
    if given.sparse_rate is not None:
        chosen = given.sparse_rate
    elif given.optimiser == "sgd":
        chosen = 1.0
    elif valid is not None and settings.learn:
        some = sample(examples, _TRIAL_ROWS, given.seed)
        for name, rate in rates.items():
            once = replace(given, sparse_rate=rate, epochs=1, frozen_epochs=0)
            trial = Model(SketchNetwork(settings).to(model.network.device), model.task, once)
            try:
                attempt(trial, some)
                tried[name] = next(record["valid_error"] for record in trial.history if "valid_error" in record)
            except TrainingError:
                tried[name] = float("inf")
        chosen = rates[min(tried, key=lambda name: tried[name])]
    return {"stage": "rates", "sparse_rate": chosen, **tried, "seconds": round(time.perf_counter() - begun, 3)}


def even_rates(model: Model, examples: Examples) -> TrainingConfig:
    """The model's configuration with a rate for rows that come in portions, on which none can be tried."""
    return replace(model.training, **rates_of([choose_rates(model, examples, None, lambda trial, some: None)]))


def rates_of(history: list[dict]) -> dict:
    record = next(record for record in history if record.get("stage") == "rates")
    return {"sparse_rate": record["sparse_rate"]}
