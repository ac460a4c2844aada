"""Drawings of a label: its numbers over x, and the lists that its records have (curves, epochs, chosen pixels)."""

from __future__ import annotations

from statistics import fmean

import numpy as np

from reproduction.experiments.experiment import Experiment
from reproduction.report.label_table import label_table
from reproduction.report.measured import Measured
from reproduction.report.pixels import draw_pixels, ranges
from sketchnet.report import PANEL, Curve, Figure, Number, Table, axis_for, decimals_for, key_of, plot, shown

_SIDES = (8, 28)  # of images: scikit-learn's digits, and MNIST's
_TOLD = 10  # epochs or ranks whose numbers are told in words


def label_figures(measured: Measured) -> list[Figure]:
    epochs_and_pixels = [*_epochs(measured), *_pixels(measured)]
    if not measured.experiment.figure:  # curves of retrieval belong to figures, though tables share their cells
        return epochs_and_pixels
    return [_over_x(measured), *_retrieval(measured), *epochs_and_pixels]


def _over_x(measured: Measured) -> Figure:
    experiment, runs = measured.experiment, measured.values.runs
    entries = measured.entries
    curves = []
    for number, series in enumerate(dict.fromkeys(entry.series for entry in entries)):
        of_series = [entry for entry in entries if entry.series == series]
        xs = [entry.x for entry in of_series if (series, entry.x) in runs]
        if not any(isinstance(x, str) for x in xs):
            xs = sorted(xs)
        points = [(x, fmean(runs[series, x])) for x in xs]
        several = any(len(runs[series, x]) > 1 for x in xs)
        spans = [(min(runs[series, x]), max(runs[series, x])) for x in xs] if several else []
        published = [(entry.x, entry.published) for entry in of_series if entry.published is not None]
        joined = not any(isinstance(entry.x, str) for entry in entries)
        curves.append(Curve(series, points, spans, published, number, joined=joined))
    places = [x for curve in curves for x, _ in [*curve.points, *curve.published]]
    heights = [y for curve in curves for _, y in [*curve.points, *curve.published, *curve.spans]]
    heights += [least for curve in curves for least, _ in curve.spans]
    x = axis_for(experiment.x_name, places, log=experiment.log_x)
    y = axis_for(experiment.unit, heights, log=experiment.log_y)
    seeds = " Bars go from the least to the largest of the seeds." if any(curve.spans for curve in curves) else ""
    measured_here = any(curve.points for curve in curves)
    caption = f"{experiment.title}. {_with_logarithms(experiment)}{seeds}".strip()
    description = f"{experiment.title}: {experiment.unit} by {experiment.x_name}, for {_listed(curves)}"
    drawings = [plot(curves, x, y, description)] if measured_here or any(curve.published for curve in curves) else []
    key = key_of(curves) if drawings else []
    return Figure(
        caption if drawings else "Nothing was measured for this figure.", drawings, key, label_table(measured)
    )


def _with_logarithms(experiment: Experiment) -> str:
    axes = [name for name, log in (("horizontal", experiment.log_x), ("vertical", experiment.log_y)) if log]
    return f"The {' and '.join(axes)} {'axis is' if len(axes) == 1 else 'axes are'} logarithmic." if axes else ""


def _listed(curves: list[Curve]) -> str:
    return ", ".join(curve.name for curve in curves)


def _names(found: dict) -> dict:
    """Short names: without x where all have the same."""
    several = len({x for _, x in found}) > 1
    return {(series, x): f"{series}, {x}" if several else series for series, x in found}


def _retrieval(measured: Measured) -> list[Figure]:
    """Precision by recall, of the first seed."""
    found = measured.lists("recall", "precision")
    if not found:
        return []
    names, curves, rows = _names(found), [], []
    for number, (place, runs) in enumerate(found.items()):
        points = list(zip(runs[0]["recall"], runs[0]["precision"]))
        curves.append(Curve(names[place], points, number=number))
        for rank in _spread(len(points)):
            rows.append([names[place], *(_told(measured, place, what, rank, v) for what, v in zip("rp", points[rank]))])
    x = axis_for("recall", [at for curve in curves for at, _ in curve.points], log=True)
    y = axis_for("precision", [value for curve in curves for _, value in curve.points], zero=True)
    caption = "Precision by recall, averaged over the queries; recall on a logarithmic axis."
    drawing = plot(curves, x, y, f"Precision by recall, for {_listed(curves)}")
    table = Table("Some points of the curves", ["codes", "recall", "precision"], rows)
    return [Figure(caption, [drawing], key_of(curves), table)]


def _epochs(measured: Measured) -> list[Figure]:
    """Errors by epoch: a panel for each kind of run, with the medians of the others behind it."""
    found = measured.lists("errors")
    if not found:
        return []
    names, medians, spans, rows = _names(found), {}, {}, []
    for place, runs in found.items():
        length = min(len(run["errors"]) for run in runs)
        lower, median, upper = np.quantile([run["errors"][:length] for run in runs], [0.25, 0.5, 0.75], axis=0).tolist()
        medians[place] = list(enumerate(median, start=1))
        spans[place] = list(zip(lower, upper))
        for at in _spread(length):
            quartiles = (spans[place][at][0], medians[place][at][1], spans[place][at][1])
            told = [_told(measured, place, f"q{n}", at, value) for n, value in enumerate(quartiles, 1)]
            rows.append([names[place], f"{at + 1}", *told])
    x = axis_for("epoch", [epoch for points in medians.values() for epoch, _ in points], whole=True)
    # The first epochs are as bad as guessing; what is to be seen lies far below them.
    late = [value for of in spans.values() for span in of[len(of) // 10 :] for value in span]
    y = axis_for("test error (%)", late)
    panels = []
    for number, place in enumerate(found):
        others = [Curve(names[other], medians[other], quiet=True) for other in found if other != place]
        curve = Curve(names[place], medians[place], spans[place], number=number, as_band=True)
        title = f"{names[place]} ({len(found[place])} seed{'s' if len(found[place]) > 1 else ''})"
        description = f"Median test error by epoch of {names[place]}, and quartiles over the seeds"
        panels.append(plot([*others, curve], x, y, description, frame=PANEL, title=title))
    caption = "Test error by epoch: median and quartiles over the seeds. The medians of the others are grey."
    table = Table("Some epochs", ["runs", "epoch", "lower quartile", "median", "upper quartile"], rows)
    return [Figure(caption, panels, numbers=table)]


def _pixels(measured: Measured) -> list[Figure]:
    found = {place: runs[0]["columns"] for place, runs in measured.lists("columns").items()}
    if not found:
        return []
    last = max(max(numbers) for numbers in found.values())
    side = next((side for side in _SIDES if last < side * side), None)
    if side is None:
        return []
    names = _names(found)
    drawings = [draw_pixels(numbers, side, names[place]) for place, numbers in found.items()]
    rows = [[names[place], str(len(set(numbers))), ranges(numbers)] for place, numbers in found.items()]
    table = Table("Chosen pixels, numbered row by row from 0", ["chosen by", "how many", "which"], rows)
    return [Figure(f"Which of the {side} × {side} pixels were chosen.", drawings, numbers=table)]


def _spread(n: int) -> list[int]:
    """Some of n places, from the first to the last."""
    return sorted({round(i * (n - 1) / (_TOLD - 1)) for i in range(_TOLD)}) if n > _TOLD else list(range(n))


def _told(measured: Measured, place: tuple, what: str, at: int, value: float) -> Number:
    return Number(
        float(value), shown(value, decimals_for([value])), f"{measured.label}/{place[0]}/{place[1]}/{what}{at}"
    )
