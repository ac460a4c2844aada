"""What a page says, apart from how it is written: `page` writes it as HTML, `markdown` as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Number:
    """A number as it was found, and as it is shown.

    `name` says where it comes from, such as "tab:x/Gaussian/1000/ours", so that a program finds it in the page.
    """

    value: float
    shown: str
    name: str = ""


@dataclass(frozen=True)
class Verdict:
    """What was found of a value or a claim; `tone` is good, bad or neutral."""

    word: str
    tone: str = "neutral"


@dataclass(frozen=True)
class Code:
    """Text as a machine reads it."""

    text: str


@dataclass(frozen=True)
class Quiet:
    """Text that is less important than what stands beside it."""

    text: str


@dataclass(frozen=True)
class Link:
    """To a section of the same page."""

    text: str
    anchor: str


Part = str | Number | Verdict | Code | Quiet | Link
Content = Part | tuple[Part, ...]


def parts(content: Content) -> tuple[Part, ...]:
    return content if isinstance(content, tuple) else (content,)


def has_number(column: Iterable[Content]) -> bool:
    """Return whether a column of a table has a number."""
    return any(isinstance(part, Number) for content in column for part in parts(content))


@dataclass(frozen=True)
class Text:
    content: Content


@dataclass(frozen=True)
class Command:
    """A line to be typed."""

    text: str


@dataclass(frozen=True)
class Facts:
    """Names and what belongs to them."""

    rows: list[tuple[str, Content]]


@dataclass(frozen=True)
class Tiles:
    """The few numbers that a reader should see first: (number, what it counts, tone)."""

    title: str
    rows: list[tuple[Number, str, str]]


@dataclass(frozen=True)
class Table:
    """The first `heads` columns name the rows. A row whose first name is "" belongs to the one above.

    `shades` (0 to 1) colour the cells behind the heads, row by row.
    """

    caption: str
    header: Sequence[Content]
    rows: Sequence[Sequence[Any]]  # of Content
    heads: int = 1
    shades: list[list[float]] | None = None


@dataclass(frozen=True)
class Claims:
    """(what is claimed, what was found), and who claims it."""

    title: str
    rows: list[tuple[str, Verdict]]


@dataclass(frozen=True)
class Figure:
    """Drawings (SVG) side by side, their key (SVG swatch, name), and the numbers behind them."""

    caption: str
    drawings: list[str]
    key: list[tuple[str, str]] = field(default_factory=list)
    numbers: Table | None = None


Block = Text | Command | Facts | Tiles | Table | Claims | Figure


@dataclass(frozen=True)
class Section:
    anchor: str
    title: str
    blocks: list[Block]
    label: str = ""  # shown small above the title


@dataclass(frozen=True)
class Page:
    title: str
    about: str
    sections: list[Section]
