"""REPORT: pages that need nothing else, of one model or of what a program puts together from these parts."""

from sketchnet.report.axes import Axis, axis_for
from sketchnet.report.document import (
    Block,
    Claims,
    Code,
    Command,
    Content,
    Facts,
    Figure,
    Link,
    Number,
    Page,
    Quiet,
    Section,
    Table,
    Text,
    Tiles,
    Verdict,
)
from sketchnet.report.markdown import markdown_of
from sketchnet.report.page import html_of
from sketchnet.report.plot import PANEL, Curve, key_of, plot
from sketchnet.report.rounding import decimals_for, shown, time_shown
from sketchnet.report.writing import write_page
