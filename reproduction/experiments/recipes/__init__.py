"""How things are measured. A recipe takes a seed, a device and settings, and returns numbers by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

# Where each recipe lives; its module is loaded when it is wanted.
RECIPES: dict[str, str] = {
    "image_network": "initialisation",
    "initialised_digits": "initialised_digits",
    "synthetic_network": "synthetic",
    "synthetic_norm": "synthetic",
    "synthetic_bayes": "synthetic",
    "digits_network": "digits",
    "synthetic_reduced": "reduction",
    "digits_reduced": "reduction",
    "chosen_pixels": "reduction",
    "synthetic_linear": "linear_models",
    "digits_linear": "linear_models",
    "projection_time": "timing",
    "cost_slopes": "timing",
    "learning_slopes": "timing",
    "synthetic_row_lengths": "row_lengths",
    "digits_row_lengths": "row_lengths",
    "text_row_lengths": "row_lengths",
    "document_codes": "documents",
    "rival": "rivals",
}

# Recipes that measure time, so that nothing else may run beside them.
ALONE: set[str] = {"projection_time", "cost_slopes", "learning_slopes", "rival"}
# Recipes that use the processor, whatever device is asked for.
ON_PROCESSOR: set[str] = {
    "synthetic_linear", "digits_linear", "synthetic_norm", "synthetic_bayes", "chosen_pixels", "projection_time",
    "cost_slopes", "learning_slopes", "synthetic_row_lengths", "digits_row_lengths", "text_row_lengths",
}  # fmt: skip
# What a search may choose: (low, high) on a logarithmic axis, or a list of values.
SPACES: dict[str, dict] = {
    "synthetic_network": {"rate": (3e-4, 1e-2), "dropout": [0.0, 0.25, 0.5], "l2": [0.0, 0.01, 0.1]},
}


def find_recipe(name: str) -> Callable[..., dict]:
    """`find_recipe(name)(seed=0, device="cpu", **settings)` measures."""
    return getattr(import_module(f"reproduction.experiments.recipes.{RECIPES[name]}"), name)
