"""What a model did on given rows: confusion, calibration, predictions, retrieval, top features."""

from __future__ import annotations

from dataclasses import dataclass, field

from sketchnet.report.axes import Axis, axis_for
from sketchnet.report.document import Code, Figure, Number, Section, Table
from sketchnet.report.plot import Curve, key_of, plot
from sketchnet.report.rounding import decimals_for, shown

_MOST_CLASSES = 20  # of a confusion matrix that a person reads
_MOST_MISTAKES = 20  # of those with more classes


@dataclass(frozen=True)
class OnRows:
    """What a model did on given rows. `metrics` are those of `evaluation.metrics`, `features` (name, importance)."""

    name: str
    rows: int
    seconds: float  # of predicting them
    metrics: dict = field(default_factory=dict)
    features: list[tuple[str, float]] = field(default_factory=list)
    feature_rows: int = 0
    pairs: list[tuple[float, float]] = field(default_factory=list)  # (true, predicted) numbers
    retrieval: list[tuple[float, float]] = field(default_factory=list)  # (recall, precision)
    queries: int = 0


def sections_on_rows(kind: str, classes: list[str], on: OnRows) -> list[Section]:
    sections = []
    if "confusion" in on.metrics:
        sections.append(Section("confusion", f"Confusion on {on.name}", [_confusion(classes, on.metrics["confusion"])]))
    if on.metrics.get("calibration"):
        which = f"class {classes[1]}" if kind == "binary" else "the likeliest class"
        sections.append(Section("calibration", "Calibration", [_calibration(on.metrics, which)]))
    if on.pairs:
        sections.append(Section("predictions", f"Predictions on {on.name}", [_scatter(on)]))
    if on.retrieval:
        sections.append(Section("retrieval", "Retrieval by codes", [_retrieval(on)]))
    if on.features:
        sections.append(Section("features", "Top features", [_features(on)]))
    return sections


def _confusion(classes: list[str], counts: list[list[int]]) -> Table:
    def cell(true: int, predicted: int) -> Number:
        n = counts[true][predicted]
        return Number(float(n), f"{n:,}", f"confusion/{true}/{predicted}")

    if len(classes) > _MOST_CLASSES:
        places = [(t, p) for t in range(len(classes)) for p in range(len(classes)) if t != p and counts[t][p]]
        worst = sorted(places, key=lambda place: -counts[place[0]][place[1]])[:_MOST_MISTAKES]
        rows = [[classes[t], classes[p], cell(t, p)] for t, p in worst]
        return Table("The most frequent mistakes", ["true class", "predicted", "rows"], rows)
    shades = [[n / max(1, sum(row)) for n in row] for row in counts]
    every = range(len(classes))
    rows = [[name, *(cell(true, predicted) for predicted in every)] for true, name in enumerate(classes)]
    return Table("Rows are true classes, columns predicted ones", ["", *classes], rows, shades=shades)


def _calibration(metrics: dict, which: str) -> Figure:
    bins = metrics["calibration"]
    points = [(bin["mean_probability"], bin["share_positive"]) for bin in bins]
    x, y = Axis(f"predicted probability of {which}", 0.0, 1.0), Axis("share that was so", 0.0, 1.0)
    curves = [Curve("model", points), Curve("perfect", [(0.0, 0.0), (1.0, 1.0)], quiet=True)]
    drawing = plot(curves, x, y, f"How often predictions of a probability of {which} come true")
    rows = [
        [Number(float(value), shown(value), f"calibration/{number}/{key}") for key, value in bin.items()]
        for number, bin in enumerate(bins)
    ]
    rows = [[str(number + 1), *row] for number, row in enumerate(rows)]
    table = Table("Bins of equal width that have rows", ["bin", "mean probability", "share", "rows"], rows)
    caption = f"Expected calibration error {shown(metrics['calibration_error'])}; the grey line is perfect."
    return Figure(caption, [drawing], key_of(curves), table)


def _scatter(on: OnRows) -> Figure:
    both = [value for pair in on.pairs for value in pair]
    x, y = axis_for("true value", both), axis_for("predicted value", both)
    ends = [(x.low, x.low), (x.high, x.high)]
    curves = [Curve("rows", on.pairs, joined=False), Curve("perfect", ends, quiet=True)]
    drawing = plot(curves, x, y, "Predicted numbers by true ones")
    return Figure(f"{len(on.pairs):,} of {on.rows:,} rows; the grey line is perfect.", [drawing])


def _retrieval(on: OnRows) -> Figure:
    curve = Curve("codes", on.retrieval)
    x = axis_for("recall", [at for at, _ in on.retrieval], log=True)
    y = axis_for("precision", [value for _, value in on.retrieval], zero=True)
    caption = f"Precision by recall, averaged over {on.queries:,} queries: rows with the same labels are to be found."
    return Figure(caption, [plot([curve], x, y, "Precision by recall of the codes")])


def _features(on: OnRows) -> Table:
    digits = decimals_for([x for _, x in on.features])
    rows = [
        [Code(name), Number(float(x), shown(x, digits), f"features/{place}")]
        for place, (name, x) in enumerate(on.features)
    ]
    largest = max((x for _, x in on.features), default=0.0) or 1.0
    caption = f"Mean absolute contribution to the predicted output, over {on.feature_rows:,} rows"
    return Table(caption, ["column", "contribution"], rows, shades=[[x / largest] for _, x in on.features])
