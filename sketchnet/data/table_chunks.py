"""Some rows of a table as readers of files give them: columns of cells, not yet features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from sketchnet.errors import InputError

SHORT = 60  # letters of a cell that a message shows
_SLIPS = 0.05  # of the cells of a column, at most, that are taken for slips


class NotANumber(Exception):
    """Cell `row` of a column, written `text`, is not a finite number; the encoder says where that is."""

    def __init__(self, row: int, text: str):
        self.row, self.text = row, text


class TextColumn:
    """Cells as text. Other kinds of column (see parquet.py) have the same four methods."""

    def __init__(self, cells: Sequence[str]):
        self.cells = cells

    def coded(self) -> tuple[list[str], np.ndarray]:
        """Distinct cells, and for each row the place of its cell among them, or -1 where it is null."""
        places = {text: place for place, text in enumerate(dict.fromkeys(self.cells))}
        return list(places), np.fromiter(map(places.__getitem__, self.cells), np.int64, len(self.cells))

    def numbers(self, missing: frozenset[str]) -> tuple[np.ndarray, np.ndarray]:
        """The cells as float64, zero where missing, and a mask of those present."""
        cells, present = self.cells, np.ones(len(self.cells), bool)
        if not missing.isdisjoint(cells):
            present = np.array([text not in missing for text in cells], bool)
            cells = ["0" if text in missing else text for text in cells]
        try:
            values = np.fromiter(map(float, cells), np.float64, len(cells))
            joined = "".join(cells)  # float() takes 1_000 and digits of other scripts; tables do not mean them
            if joined.isascii() and "_" not in joined and np.isfinite(values).all():
                return values, present
        except ValueError:
            pass
        raise NotANumber(*next((row, text) for row, text in enumerate(cells) if not is_number(text)))

    def looks_numeric(self, missing: frozenset[str]) -> bool:
        """Raises NotANumber where nearly all cells are numbers: a slip, which would make each number a category."""
        try:
            self.numbers(missing)
        except NotANumber:
            present = [text for text in self.cells if text not in missing]
            others = [text for text in present if not is_number(text)]
            if len(others) <= _SLIPS * len(present) or (others != present and all(map(is_infinite, others))):
                raise
            return False
        return True

    def whole(self, row: int) -> str | None:
        """The cell, if a whole number is written there."""
        text = self.cells[row].strip()
        return text if text.lstrip("+-").isdigit() else None


def is_infinite(text: str) -> bool:
    try:
        return bool(np.isinf(float(text)))
    except ValueError:
        return False


def is_number(text: str) -> bool:
    try:
        return text.isascii() and "_" not in text and bool(np.isfinite(float(text)))
    except ValueError:
        return False


@dataclass(frozen=True)
class TableChunk:
    """Some rows of a table: columns by name, and where a row stands, as in "a.csv, line 12"."""

    columns: dict[str, TextColumn]
    n_rows: int
    where: Callable[[int], str]


def some_of(names: Iterable[str]) -> str:
    shown = [shortened(name) for name in islice(names, 11)]
    return ", ".join(shown[:10]) + (", ..." if len(shown) > 10 else "")


def shortened(text: str) -> str:
    return repr(text if len(text) <= SHORT else text[:SHORT] + "...")


def check_names(names: Sequence[str], where: str, hint: str = "") -> None:
    """Refuse a table with two columns of one name."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise InputError(f"{where}: the column name {shortened(twice[0])} occurs twice{hint}")
