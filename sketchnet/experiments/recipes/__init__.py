"""How things are measured. A recipe takes a seed, a device and settings, and returns numbers by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

# Where each recipe lives; its module is loaded when it is wanted.
RECIPES: dict[str, str] = {}

# Recipes that measure time, so that nothing else may run beside them.
ALONE: set[str] = set()
# What a search may choose: (low, high) on a logarithmic axis, or a list of values.
SPACES: dict[str, dict] = {}


def find_recipe(name: str) -> Callable[..., dict]:
    """`find_recipe(name)(seed=0, device="cpu", **settings)` measures."""
    return getattr(import_module(f"sketchnet.experiments.recipes.{RECIPES[name]}"), name)
