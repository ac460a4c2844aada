"""Settings of a network chosen by Optuna, on validation rows alone."""

from __future__ import annotations

from reproduction.experiments.experiment import Cell
from reproduction.experiments.recipes import SPACES, find_recipe
from sketchnet.checks import import_extra


def search_settings(cell: Cell, seed: int, device: str, n_trials: int) -> tuple[dict, dict]:
    """(the cell's settings with the best found, what to note of the search). Recipes without a space stay as they are.

    A trial is the recipe with other settings, judged by its "valid_error". The first trial is the cell as it is, so
    that a search never ends with a worse validation error than no search.
    """
    space = SPACES.get(cell.recipe)
    if not space:
        return cell.settings, {}
    optuna = load_optuna()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    recipe = find_recipe(cell.recipe)

    def outcome(trial) -> float:
        chosen = _suggest(trial, space) if trial.number else {}
        return recipe(seed=seed, device=device, **cell.settings | chosen)["valid_error"]

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(outcome, n_trials=n_trials)
    chosen = study.best_params if study.best_trial.number else {}
    return cell.settings | chosen, {"trials": n_trials, "searched": chosen, "valid_error": study.best_value}


def load_optuna():
    return import_extra("optuna", "search", "a search")


def _suggest(trial, space: dict) -> dict:
    """A space has, by name, either (low, high), on a logarithmic axis, or a list of values."""
    return {
        name: trial.suggest_categorical(name, values)
        if isinstance(values, list)
        else trial.suggest_float(name, *values, log=True)
        for name, values in space.items()
    }
