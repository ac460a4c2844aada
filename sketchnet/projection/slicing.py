"""Bounded memory: which rows of the data meet which columns of P at a time (the dissertation's "Matrix slicing").

A plan is a list of units that together tile the output. It follows from the row lengths and the budget alone, so an
interrupted run finds its place again, and since no entry of the output depends on the tiling, any plan gives the same
bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from sketchnet.errors import InputError
from sketchnet.memory import format_memory

_ENTRY_BYTES = 80  # the most that numbering the distinct columns of a slice takes, per stored entry
_NARROW, _WIDE = 16, 128  # columns of a panel: one cache line at least; beyond 128, wider is not faster
_CACHED = 64 * 2**20  # panels up to this size may be as wide as they like
_UNIT_ENTRIES = 1 << 22  # rows are cut so that a unit takes a fraction of a second: progress shows, little is lost
_UNIT_OUTPUT = 1 << 24


@dataclass(frozen=True)
class Unit:
    """A tile of the output."""

    rows: slice
    columns: slice


@dataclass(frozen=True)
class Plan:
    """Units in order. `compact`: each row slice numbers its distinct columns; otherwise P is drawn for all columns."""

    units: list[Unit]
    compact: bool
    budget: int


def plan_panels(indptr: np.ndarray, d: int, k: int, budget: int) -> Plan:
    """For schemes that draw dense panels of P: row slices whose distinct columns fit, times column slices of P.

    A compact plan goes through the columns of P for each slice of rows; otherwise a panel serves all rows before the
    next one is drawn.
    """
    entries = int(indptr[-1]) - int(indptr[0])
    if 2 * d <= entries and 4 * _NARROW * d <= budget:
        units = [
            Unit(rows, columns)
            for columns in spans(k, _panel_width(d, budget))
            for rows in row_slices(indptr, _UNIT_OUTPUT // k + 1)
        ]
        return Plan(units, False, budget)
    units = []
    for rows in row_slices(indptr, len(indptr), budget, _ENTRY_BYTES + 4 * _NARROW):
        in_slice = int(indptr[rows.stop]) - int(indptr[rows.start])
        width = _panel_width(max(1, min(in_slice, d)), budget - _ENTRY_BYTES * in_slice)
        units += [Unit(rows, columns) for columns in spans(k, width)]
    return Plan(units, True, budget)


def plan_rows(indptr: np.ndarray, d: int, k: int, bytes_per_column: float, budget: int) -> Plan:
    """For schemes that hold `bytes_per_column` of P for each distinct column (perhaps none): row slices only."""
    entries = int(indptr[-1]) - int(indptr[0])
    compact = bytes_per_column > 0 and (2 * d > entries or bytes_per_column * d > budget)
    limits = (budget, _ENTRY_BYTES + bytes_per_column) if compact else ()
    slices = row_slices(indptr, _UNIT_OUTPUT // k + 1, *limits)
    return Plan([Unit(rows, slice(0, k)) for rows in slices], compact, budget)


def row_slices(
    indptr: np.ndarray, most_rows: int, budget: int | None = None, bytes_per_entry: float = 0
) -> list[slice]:
    """Cut the rows into slices of a handy size that, at so many bytes an entry, fit the budget."""
    longest = longest_row(indptr)
    most = max(longest, _UNIT_ENTRIES)
    if budget is not None:
        most = int(budget // bytes_per_entry)
        if longest > most:
            raise InputError(
                f"a row has {longest} entries, too many for a memory budget of {format_memory(budget)}; "
                f"at least {ceil(longest * bytes_per_entry / 1024)} KiB are needed"
            )
    slices, start, n = [], 0, len(indptr) - 1
    last = int(indptr[-1])
    while start < n:
        # in the offsets' own dtype: NumPy would otherwise convert all of them at every step
        target = indptr.dtype.type(min(last, int(indptr[start]) + most))
        stop = min(int(np.searchsorted(indptr, target, side="right")) - 1, start + most_rows, n)
        slices.append(slice(start, stop))
        start = stop
    return slices


def spans(n: int, step: int) -> list[slice]:
    """range(n) in pieces of `step`."""
    return [slice(start, min(n, start + step)) for start in range(0, n, step)]


def longest_row(indptr: np.ndarray) -> int:
    """The most entries in a row, found without a copy of the offsets."""
    step = 1 << 20
    pieces = (np.diff(indptr[start : start + step + 1]).max(initial=0) for start in range(0, len(indptr) - 1, step))
    return int(max(pieces, default=0))


def _panel_width(height: int, room: int) -> int:
    width = min(room, max(_CACHED, 4 * _WIDE * height)) // (4 * height)
    return max(_NARROW, width // _NARROW * _NARROW)
