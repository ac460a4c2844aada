"""How often predictions of a probability are right."""

from __future__ import annotations

from pathlib import Path

from sketchnet.data.compression import atomic_writing
from sketchnet.escapes import escape_controls


def draw_calibration(found: dict, positive: str | None, path: str | Path) -> None:
    """Draw what `metrics` found into a PNG file, which is whole or absent.

    Probabilities are those of the class `positive`, of two; of the likeliest one, if there are more and none is named.
    """
    from matplotlib.figure import Figure

    keys = ("mean_probability", "share_positive", "count")
    mean, share, count = ([bin[key] for bin in found["calibration"]] for key in keys)
    what = "the likeliest class"
    if positive is not None:
        what = "class " + escape_controls(positive).replace("$", r"\$")  # a plain one begins a formula
    figure = Figure(figsize=(5, 6), layout="constrained")
    upper, lower = figure.subplots(2, sharex=True, height_ratios=[3, 1])
    upper.plot([0, 1], [0, 1], color="0.7", label="perfect")
    upper.plot(mean, share, "o-", label=f"model, error {found['calibration_error']:.3g}")
    upper.set(ylabel="share that was right" if positive is None else f"share of {what}", xlim=(0, 1), ylim=(0, 1))
    upper.legend()
    lower.bar(mean, count, width=0.04)
    lower.set(xlabel=f"predicted probability of {what}", ylabel="rows")
    with atomic_writing(path) as file:
        figure.savefig(file, format="png", dpi=150)
