"""Precision against recall, a line for each set of codes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sketchnet.data.compression import atomic_writing
from sketchnet.errors import InputError
from sketchnet.escapes import escape_controls
from sketchnet.evaluation.retrieval import RetrievalResult

_FORMATS = ("png", "pdf", "svg")
_TICKS = [*(0.1 * 2.0**power for power in range(-10, 10)), 100]  # 0.1, 0.2, ... 51.2, 100 percent
_POINTS = 2000  # of a line: more than a figure can show


def draw_retrieval(results: Mapping[str, RetrievalResult], path: str | Path) -> None:
    """Draw curves into a PNG, PDF or SVG file, which is whole or absent.

    Recall doubles from tick to tick, as Salakhutdinov and Hinton draw it: the first few documents are what a user
    sees, and a linear axis would squeeze them into its left edge. The legend has the area under each curve.
    """
    path = Path(path)
    if not results:
        raise InputError("there are no results to draw")
    if path.suffix[1:] not in _FORMATS:
        raise InputError(f"{path} cannot be drawn; its name must end in .{', .'.join(_FORMATS)}")
    # Here, because it takes a second to load; and not by way of pyplot, which asks for a display and keeps figures.
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.add_subplot()
    for name, result in results.items():
        shown = _ranks_to_show(len(result.recall))
        marker = "o" if len(shown) == 1 else None
        label = f"{_plain(name)} (area {result.area:.4f})"
        axes.plot(100 * result.recall[shown], 100 * result.precision[shown], marker=marker, label=label)
    # At the first ranks nothing may be found yet, and a logarithm has no place for that.
    least = 100 * min(result.recall[result.recall > 0][0] for result in results.values())
    ticks = [tick for tick in _TICKS if tick >= least]
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(least, 50), 100)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{tick:g}" for tick in ticks]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("recall (%)")
    axes.set_ylabel("precision (%)")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside upper left", ncols=2 if len(results) > 3 else 1, frameon=False)
    with atomic_writing(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=150)


def _ranks_to_show(n: int) -> np.ndarray:
    """All ranks, or as many as can be seen, closer together where they count."""
    return np.unique(np.geomspace(1, n, _POINTS).round().astype(np.int64)) - 1 if n > _POINTS else np.arange(n)


def _plain(name: str) -> str:
    """A name as it is, where matplotlib would see a formula."""
    return escape_controls(name).replace("$", r"\$")
