"""Bounded memory: which rows of the data meet which columns of P at a time (the dissertation's "Matrix slicing").

A plan is a list of units that together tile the output. It follows from the row lengths and the budget alone, so an
interrupted run finds its place again, and since no entry of the output depends on the tiling, any plan gives the same
bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchnet.errors import InputError
from sketchnet.memory import format_memory

_ENTRY_BYTES = 48  # the most that numbering the distinct columns of a slice takes, per stored entry
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


def plan_panels(indptr: np.ndarray, d: int, k: int, budget: int) -> Plan:
    """For schemes that draw dense panels of P: row slices whose distinct columns fit, times column slices of P."""
    n, entries = len(indptr) - 1, int(indptr[-1]) - int(indptr[0])
    compact = 2 * d > entries or 4 * _NARROW * d > budget
    if compact:
        slices = _cut(indptr, budget // (_ENTRY_BYTES + 4 * _NARROW), n, budget)
    else:
        slices = [slice(0, n)] if n else []
    units = []
    for rows in slices:
        in_slice = int(indptr[rows.stop]) - int(indptr[rows.start])
        distinct = max(1, min(in_slice, d))
        room = budget - (_ENTRY_BYTES * in_slice if compact else 0)
        width = min(room, max(_CACHED, 4 * _WIDE * distinct)) // (4 * distinct)
        units += [Unit(rows, columns) for columns in _spans(k, max(_NARROW, width // _NARROW * _NARROW))]
    return Plan(units, compact)


def plan_rows(indptr: np.ndarray, d: int, k: int, bytes_per_column: float, budget: int) -> Plan:
    """For schemes that hold `bytes_per_column` of P for each distinct column (perhaps none): row slices only."""
    entries = int(indptr[-1]) - int(indptr[0])
    compact = bytes_per_column > 0 and (2 * d > entries or bytes_per_column * d > budget)
    most = int(budget // (_ENTRY_BYTES + bytes_per_column)) if compact else max(entries, 1)
    slices = _cut(indptr, min(most, _UNIT_ENTRIES) if most >= _longest(indptr) else most, _UNIT_OUTPUT // k + 1, budget)
    return Plan([Unit(rows, slice(0, k)) for rows in slices], compact)


def dense_row_slices(n: int, d: int, budget: int) -> list[slice]:
    """Row slices of a dense array whose non-zeros, with their ids, take no more than half the budget."""
    return _spans(n, max(1, budget // (2 * 24 * d)))


def _spans(n: int, step: int) -> list[slice]:
    return [slice(start, min(n, start + step)) for start in range(0, n, step)]


def _longest(indptr: np.ndarray) -> int:
    return int(np.diff(indptr).max(initial=0))


def _cut(indptr: np.ndarray, most_entries: int, most_rows: int, budget: int) -> list[slice]:
    if _longest(indptr) > most_entries:
        needed = budget / max(most_entries, 1) * _longest(indptr)
        raise InputError(
            f"a row has {_longest(indptr)} entries, too many for a memory budget of {format_memory(budget)}; "
            f"at least {format_memory(needed)} is needed"
        )
    slices, start, n = [], 0, len(indptr) - 1
    while start < n:
        stop = int(np.searchsorted(indptr, int(indptr[start]) + most_entries, side="right")) - 1
        stop = min(stop, start + most_rows, n)
        slices.append(slice(start, stop))
        start = stop
    return slices
