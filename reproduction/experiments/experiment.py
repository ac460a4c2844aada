"""What a table or a figure of the dissertation is: cells to measure, published values, claims to test.

Both are one thing here: numbers that belong to a `series` (a row of a table, a curve of a figure) and to an `x` (a
column, a place on the axis). What is measured is a `Cell`, a recipe with its settings; cells are known by these alone,
so that labels which ask for the same network share its result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

SCALES = ("smoke", "small", "full")


@dataclass(frozen=True)
class Cell:
    """A recipe of `reproduction.experiments.recipes` and its settings, which JSON can hold."""

    recipe: str
    settings: dict = field(hash=False)

    @property
    def key(self) -> str:
        return f"{self.recipe} {json.dumps(self.settings, sort_keys=True)}"


@dataclass(frozen=True)
class Entry:
    """One number of a table, or one point of a figure. Without a cell it is published only, and quoted."""

    series: str
    x: str | float
    cell: Cell | None
    quantity: str = "error"  # which of the recipe's results it shows
    published: float | None = None


def table_entries(
    published: Mapping[str, Sequence], columns: Sequence[str], cells: Mapping[tuple, Cell], quantity: str = "error"
) -> list[Entry]:
    """The entries of a table whose published rows have the order of `columns`; `cells` by (series, x)."""
    return [
        Entry(series, x, cells.get((series, x)), quantity, value)
        for series, row in published.items()
        for x, value in zip(columns, row)
    ]


class Values:
    """What was measured for an experiment: means over the seeds, by series and x."""

    def __init__(self, found: Mapping[tuple[str, str | float], list[float]]):
        self.runs = dict(found)  # one number a seed

    def __call__(self, series: str, x: str | float) -> float:
        """KeyError, if it was not measured: the claim that asks is then undecided."""
        return fmean(self.runs[series, x])

    def of(self, series: str) -> dict:
        """All that was measured of a series, by x; KeyError if nothing was."""
        found = {x: fmean(values) for (name, x), values in self.runs.items() if name == series}
        if not found:
            raise KeyError(series)
        return found


@dataclass(frozen=True)
class Claim:
    """What the dissertation says of its result, and whether measured values agree; or what we say, if it is `ours`."""

    text: str
    holds: Callable[[Values], bool]
    ours: bool = False


@dataclass(frozen=True)
class Experiment:
    """A label of the dissertation. `entries(scale)` lists what to measure at that scale.

    `slack`: a measured value of a table agrees with the published one if it is no more than this above it (below it,
    if `larger_is_better`); None if values cannot be compared (times of other machines).
    """

    label: str
    title: str
    entries: Callable[[str], list[Entry]]
    x_name: str = "data set"
    unit: str = "error (%)"
    claims: tuple[Claim, ...] = ()
    seeds: Mapping[str, int] = field(default_factory=lambda: {"smoke": 1, "small": 1, "full": 1})
    figure: bool = False
    log_x: bool = False
    log_y: bool = False
    slack: float | None = 0.5
    larger_is_better: bool = False
    note: str = ""  # what differs from the dissertation's experiment, and why

    def cells(self, scale: str, seeds: int | None = None, first_seed: int = 0) -> list[tuple[Cell, int]]:
        """Everything to measure, with its seed: of as many as the label asks for at that scale, unless told."""
        found = {}
        n_seeds = self.seeds[scale] if seeds is None else seeds
        for seed in range(first_seed, first_seed + n_seeds):
            for entry in self.entries(scale):
                if entry.cell is not None:
                    found[entry.cell.key, seed] = (entry.cell, seed)
        return list(found.values())
