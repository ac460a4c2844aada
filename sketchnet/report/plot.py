"""Curves as SVG. Colours come from the page's style, so that a drawing follows light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from sketchnet.report.axes import Axis

COLOURS = 8  # in the page's style; series beyond them are told apart by dashes and marks
_DASHES = ("", "6 3", "2 3")
_MARKED = 25  # points of a curve, at most, if each is to be seen
_MOST = 500  # points of a curve: more than a drawing can show


@dataclass(frozen=True)
class Curve:
    """Points of a series. `spans` are (low, high) for each of them, `published` points are drawn hollow.

    `as_band` draws the spans as a band; a `quiet` curve is there for comparison alone.
    """

    name: str
    points: Sequence[tuple[float | str, float]]
    spans: Sequence[tuple[float, float]] = ()
    published: Sequence[tuple[float | str, float]] = ()
    number: int = 0  # gives the colour
    as_band: bool = False
    quiet: bool = False
    joined: bool = True


@dataclass(frozen=True)
class Frame:
    """The size of a drawing, and what is left free for the axes' texts."""

    width: int = 640
    height: int = 340
    left: int = 78
    right: int = 16
    top: int = 14
    bottom: int = 62

    def x(self, place: float) -> float:
        return round(self.left + place * (self.width - self.left - self.right), 2)

    def y(self, place: float) -> float:
        return round(self.height - self.bottom - place * (self.height - self.top - self.bottom), 2)


WHOLE, PANEL = Frame(), Frame(420, 250, 70, 12, 34, 56)


def plot(curves: Sequence[Curve], x: Axis, y: Axis, description: str, *, frame: Frame = WHOLE, title="") -> str:
    """An SVG element. The description is what those hear who cannot see it."""
    drawn = [_grid(x, y, frame), *(_curve(curve, x, y, frame) for curve in sorted(curves, key=lambda c: not c.quiet))]
    if title:
        drawn.append(f'<text class="panel-title" x="{frame.left}" y="{frame.top - 12}">{escape(title)}</text>')
    size = f'viewBox="0 0 {frame.width} {frame.height}"'
    return f'<svg class="plot" {size} role="img" aria-label="{escape(description)}">{"".join(drawn)}</svg>'


def swatch(number: int, *, hollow: bool = False) -> str:
    """How a series looks, for the key beside a drawing. The sign for what is published has no colour of its own."""
    if hollow:
        sign = f'<g class="hollow any">{_mark(0, 14, 6)}</g>'
    else:
        line = f'<path class="line" {_dashes(number)} d="M0 6H28"/>'
        sign = f'<g class="{_colour(number)}">{line}<g class="point">{_mark(number, 14, 6)}</g></g>'
    return f'<svg class="swatch" viewBox="0 0 28 12" aria-hidden="true">{sign}</svg>'


def key_of(curves: Sequence[Curve]) -> list[tuple[str, str]]:
    """(swatch, name) of each series that is drawn, and the sign for published values if there are any."""
    key = [(swatch(curve.number), curve.name) for curve in curves if not curve.quiet]
    if any(curve.published for curve in curves):
        key.append((swatch(0, hollow=True), "published (hollow, in the series' colour)"))
    return key


def _colour(number: int) -> str:
    return f"s{number % COLOURS + 1}"


def _dashes(number: int) -> str:
    dashes = _DASHES[number // COLOURS % len(_DASHES)]
    return f'stroke-dasharray="{dashes}"' if dashes else ""


def _grid(x: Axis, y: Axis, frame: Frame) -> str:
    left, right, top, bottom = frame.x(0), frame.x(1), frame.y(1), frame.y(0)
    drawn = []
    for place, text in y.ticks():
        at = frame.y(place)
        drawn.append(f'<path class="grid" d="M{left} {at}H{right}"/>')
        drawn.append(f'<text class="tick" x="{left - 8}" y="{at}" dy="0.35em" text-anchor="end">{escape(text)}</text>')
    named = bool(x.names)
    crowded = named and sum(len(name) for name in x.names) > (frame.width - frame.left) / 9
    for number, (place, text) in enumerate(x.ticks()):
        at, row = frame.x(place), (number % 2 if crowded else 0)
        drawn.append(f'<path class="grid" d="M{at} {bottom}v5"/>')
        text = escape(text if len(text) <= 24 else text[:23] + "…")
        drawn.append(
            f'<text class="tick" x="{at}" y="{bottom + 9 + 16 * row}" dy="0.8em" text-anchor="middle">{text}</text>'
        )
    drawn.append(f'<path class="axis" d="M{left} {top}V{bottom}H{right}"/>')
    middle, height = (left + right) / 2, (top + bottom) / 2
    drawn.append(
        f'<text class="name" x="{middle}" y="{frame.height - 6}" text-anchor="middle">{escape(x.title)}</text>'
    )
    turned = f'transform="translate(15 {height}) rotate(-90)"'
    drawn.append(f'<text class="name" {turned} text-anchor="middle">{escape(y.title)}</text>')
    return "".join(drawn)


def _curve(curve: Curve, x: Axis, y: Axis, frame: Frame) -> str:
    seen = [i for i, (at, value) in enumerate(curve.points) if x.shows(at) and y.shows(value)]
    if len(seen) > _MOST:
        seen = [seen[round(i * (len(seen) - 1) / (_MOST - 1))] for i in range(_MOST)]
    places = [(frame.x(x.place(curve.points[i][0])), frame.y(_height(y, curve.points[i][1]))) for i in seen]
    spans = [tuple(frame.y(_height(y, value)) for value in curve.spans[i]) for i in seen] if curve.spans else []
    lines, marks = [], []
    if curve.as_band and spans:
        there = [f"{at} {high}" for (at, _), (_, high) in zip(places, spans)]
        back = [f"{at} {low}" for (at, _), (low, _) in zip(places, spans)]
        lines.append(f'<path class="band" d="M{"L".join(there + back[::-1])}Z"/>')
    elif spans:
        bars = "".join(f"M{at} {low}V{high}m-4 0h8M{at - 4} {low}h8" for (at, _), (low, high) in zip(places, spans))
        lines.append(f'<path class="bar" d="{bars}"/>')
    if len(places) > 1 and curve.joined:
        line = "L".join(f"{at} {height}" for at, height in places)
        lines.append(f'<path class="line" {_dashes(curve.number)} d="M{line}"/>')
    if not curve.quiet and len(places) <= (_MARKED if curve.joined else _MOST):
        marks += [_point(curve, curve.points[i], *place) for i, place in zip(seen, places) if _inside(place, frame)]
    for at, value in curve.published:
        if x.shows(at) and y.shows(value):
            marks.append(_point(curve, (at, value), frame.x(x.place(at)), frame.y(y.place(value)), "published"))
    colour = "quiet" if curve.quiet else _colour(curve.number)
    return f'<g class="{colour}">{_window("".join(lines), frame)}{"".join(marks)}</g>'


def _window(lines: str, frame: Frame) -> str:
    """Lines that end where the axes do: an inner SVG shows nothing outside of itself."""
    left, top = frame.x(0), frame.y(1)
    width, height = frame.x(1) - left, frame.y(0) - top
    box = f'x="{left}" y="{top}" width="{width}" height="{height}" viewBox="{left} {top} {width} {height}"'
    return f"<svg {box}>{lines}</svg>" if lines else ""


def _inside(place: tuple[float, float], frame: Frame) -> bool:
    return frame.y(1) <= place[1] <= frame.y(0)


def _height(axis: Axis, value: float) -> float:
    """Its place, which may be outside; what a logarithm has no place for lies far below."""
    return axis.place(value) if axis.shows(value) else -10.0


def _point(curve: Curve, point: tuple, x: float, y: float, kind: str = "ours") -> str:
    at, value = point
    title = escape(f"{curve.name}, {at}: {value:.6g}{' (published)' if kind == 'published' else ''}")
    what = "point" if kind == "ours" else "hollow"
    data = f'data-x="{escape(str(at))}" data-y="{value!r}"'
    return f'<g class="{what}" {data}><title>{title}</title>{_mark(curve.number, x, y)}</g>'


def _mark(number: int, x: float, y: float) -> str:
    shape = number % 4
    if shape == 0:
        return f'<circle cx="{x}" cy="{y}" r="3.6"/>'
    if shape == 1:
        return f'<path d="M{x - 3.4:g} {y - 3.4:g}h6.8v6.8h-6.8z"/>'
    if shape == 2:
        return f'<path d="M{x:g} {y - 4.6:g}l4.4 7.6h-8.8z"/>'
    return f'<path d="M{x:g} {y - 4.8:g}l4.8 4.8l-4.8 4.8l-4.8 -4.8z"/>'
