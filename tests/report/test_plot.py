"""Drawings put numbers where their axes say."""

import re
from xml.etree import ElementTree

import pytest

from reproduction.report.pixels import draw_pixels, ranges
from sketchnet.report.axes import Axis, axis_for, tick_text
from sketchnet.report.plot import WHOLE, Curve, key_of, plot
from sketchnet.report.rounding import decimals_for, shown


def test_points_are_in_proportion():
    points = [(10, 1.0), (100, 2.0), (1000, 4.0)]
    x, y = axis_for("k", [10, 1000], log=True), Axis("y", 0.0, 4.0)
    drawn = ElementTree.fromstring(plot([Curve("a", points)], x, y, "what it shows"))
    assert drawn.attrib["aria-label"] == "what it shows"
    places = [(float(circle.attrib["cx"]), float(circle.attrib["cy"])) for circle in drawn.iter("circle")]
    (x0, y0), (x1, y1), (x2, y2) = places
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.02)
    assert (y1 - y2) == pytest.approx(2 * (y0 - y1), abs=0.02)
    assert y2 == WHOLE.y(1)


def test_names_and_hostile_text_stay_text():
    curve = Curve("<b>", [("<i>", 1.0), ("b", 2.0)], published=[("b", 3.0)], joined=False)
    drawn = plot([curve], axis_for("&", ["<i>", "b"]), axis_for("y", [1, 3]), '"<x>')
    assert "<i>" not in drawn
    assert "<b>" not in drawn
    root = ElementTree.fromstring(drawn)
    assert [group.attrib["data-y"] for group in root.iter("g") if group.attrib["class"] == "hollow"] == ["3.0"]
    assert next(name for _, name in key_of([curve])) == "<b>"


def test_what_a_logarithm_has_no_place_for_is_left_out():
    drawn = plot(
        [Curve("a", [(0.0, 1.0), (1.0, 0.0), (2.0, 3.0)])],
        axis_for("x", [0, 2]),
        axis_for("y", [0, 1, 3], log=True),
        "d",
    )
    assert re.findall('data-y="(.*?)"', drawn) == ["1.0", "3.0"]


def test_ticks():
    assert [text for _, text in axis_for("x", [0, 10]).ticks()] == ["0", "2", "4", "6", "8", "10"]
    assert [text for _, text in axis_for("x", [1e-6, 1e-2], log=True).ticks()] == [
        "10⁻⁶",
        "10⁻⁵",
        "10⁻⁴",
        "0.001",
        "0.01",
    ]
    assert all(0 <= place <= 1 for place, _ in axis_for("x", [100, 3000], log=True).ticks())
    assert (tick_text(3e-6), tick_text(100_000), tick_text(2500)) == ("3·10⁻⁶", "10⁵", "2,500")
    for values in ([5.0], [0.0], [], [-3, 4], [1e-300, 1e300], [float("inf"), 1.0]):
        axis = axis_for("x", values)
        assert len(axis.ticks()) >= 2


def test_rounding():
    assert decimals_for([44.9, 0.72]) == 2
    assert decimals_for([0.4123, 0.05]) == 4
    assert decimals_for([5200.0, 0.7]) is None
    assert decimals_for([3.0, 200.0]) == 0
    assert (shown(44.9, 2), shown(0.00012345), shown(1234567.0), shown(1e-9)) == (
        "44.90",
        "0.000123",
        "1,234,567",
        "1.00e-09",
    )
    assert shown(float("nan")) == "not finite"


def test_pixels():
    drawn = draw_pixels([0, 29, 29], 28, "a <b>")
    assert 'd="M0 0h1v1h-1zM1 1h1v1h-1z"' in drawn
    assert "a &lt;b&gt;: 2 of 784 pixels" in drawn
    assert ranges([5, 3, 6, 7, 7]) == "3, 5-7"
