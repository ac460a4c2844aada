"""Rates of the weights of columns, chosen by a trial."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sketchnet.errors import TrainingError
from sketchnet.nn import SketchNetwork
from sketchnet.training.config import TrainingConfig
from sketchnet.training.examples import Examples, sample
from sketchnet.training.model import Model

_TRIAL_ROWS = 1 << 15  # that rates are tried on


def choose_rates(model: Model, examples: Examples, valid: Examples | None, attempt: Callable[[Model, Examples], None]):
    """A record with the rates of the columns' weights: those given, or the best of three after `attempt`, which trains
    a model on examples.

    Bold rates let rare columns speak after they were seen a few times, which text rewards and noise punishes: only
    validation rows can tell. A step of Adam moves a logit by about the rate times the row's sum of absolute values, so
    the wide path's rates are relative to that.
    """
    given, settings = model.training, model.network.config
    some = model.network.columns(examples.data.rows(slice(0, min(examples.data.n_rows, 4096))))
    with np.errstate(over="ignore"):  # training then says that values are too large
        row_sum = max(float(np.abs(some.values).sum()) / max(1, some.n_rows), 1e-12)
    rates = {
        name: {"sparse_rate": sparse, "wide_rate": wide / row_sum}
        for name, (sparse, wide) in {"bold": (0.1, 3.0), "even": (0.01, 1.0), "timid": (0.001, 0.1)}.items()
    }
    given_rates = {name: value for name in ("sparse_rate", "wide_rate") if (value := getattr(given, name)) is not None}
    begun, tried, chosen = time.perf_counter(), {}, rates["even"]
    if given.optimiser == "sgd":
        chosen = {"sparse_rate": 1.0, "wide_rate": 1.0}
    elif valid is not None and len(given_rates) < 2 and (settings.learn or settings.wide):
        some = sample(examples, _TRIAL_ROWS, given.seed)
        for name, candidate in rates.items():
            once = replace(given, **{**candidate, **given_rates}, epochs=1, frozen_epochs=0)
            trial = Model(SketchNetwork(settings).to(model.network.device), model.task, once)
            try:
                attempt(trial, some)
                tried[name] = next(record["valid_error"] for record in trial.history if "valid_error" in record)
            except TrainingError:
                tried[name] = float("inf")
        chosen = rates[min(tried, key=lambda name: tried[name])]
    return {"stage": "rates", **chosen, **given_rates, **tried, "seconds": round(time.perf_counter() - begun, 3)}


def even_rates(model: Model, examples: Examples) -> TrainingConfig:
    """The model's configuration with rates for rows that come in portions, which cannot be tried."""
    return replace(model.training, **rates_of([choose_rates(model, examples, None, lambda trial, some: None)]))


def rates_of(history: list[dict]) -> dict:
    record = next(record for record in history if record.get("stage") == "rates")
    return {name: record[name] for name in ("sparse_rate", "wide_rate")}
