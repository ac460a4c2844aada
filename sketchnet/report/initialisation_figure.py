"""Test error by epoch: each scheme of initialisation against the reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from reproduction.ranks import bands
from sketchnet.data.compression import atomic_writing
from sketchnet.errors import InputError

_FORMATS = ("png", "pdf", "svg")
_COLUMNS = 3  # panels side by side


def draw_initialisation(runs: Mapping[str, np.ndarray], reference: str, path: str | Path) -> None:
    """Draw medians over the seeds, with bands from quartile to quartile, into a PNG, PDF or SVG file.

    `runs` has an array for each scheme, a row a seed and a column an epoch, with errors as shares. Each scheme has a
    panel of its own beside the reference: with all in one, bands would hide each other.
    """
    path = Path(path)
    others = [name for name in runs if name != reference]
    if reference not in runs or not others:
        raise InputError(f"runs of {', '.join(runs) or 'nothing'} cannot be drawn; they need {reference} and another")
    if path.suffix[1:] not in _FORMATS:
        raise InputError(f"{path} cannot be drawn; its name must end in .{', .'.join(_FORMATS)}")
    found = {name: bands(100 * np.asarray(errors, np.float64)) for name, errors in runs.items()}
    # Here, because it takes a second to load; and not by way of pyplot, which asks for a display and keeps figures.
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    columns = min(_COLUMNS, len(others))
    rows = -(-len(others) // columns)
    figure = Figure(figsize=(1 + 3.2 * columns, 0.6 + 2.6 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, name in zip(panels.flat, others):
        for line, colour in ((reference, "tab:gray"), (name, "tab:blue")):
            epochs = np.arange(1, len(found[line].median) + 1)
            axes.plot(epochs, found[line].median, color=colour, label=f"{line} ({len(runs[line])})")
            axes.fill_between(epochs, found[line].lower, found[line].upper, color=colour, alpha=0.25, linewidth=0)
        how = {"frameon": False, "fontsize": "small", "title_fontsize": "small"}
        axes.legend(loc="upper right", title="scheme (seeds)", **how)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
    for axes in panels.flat[len(others) :]:
        axes.set_axis_off()
    for axes in panels.flat[len(others) - columns : len(others)]:  # the lowest of each column
        axes.tick_params(labelbottom=True)
    # The first epochs are as bad as guessing; what is to be seen lies far below them.
    late = [(b.lower[len(b.lower) // 10 :].min(), b.upper[len(b.upper) // 10 :].max()) for b in found.values()]
    low, high = min(low for low, _ in late), max(high for _, high in late)
    room = 0.05 * (high - low) or 1.0
    panels[0, 0].set_ylim(max(0.0, low - room), high + room)
    figure.supxlabel("epoch")
    figure.supylabel("test error (%), median and quartiles")
    with atomic_writing(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=150)
