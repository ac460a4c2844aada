"""Numbers for column ids of up to 63 bits, by a hash table whose size follows the ids that occur."""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import inlined, kernel
from sketchnet.kernels.cpu.threads import over_range

_FREE = -1  # no id is negative
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: neighbouring ids lie far apart


@inlined
def _place(keys, column):
    """Where an id is, or the free place where it would go."""
    mask, half = np.uint64(len(keys) - 1), np.uint64(32)  # a power of two, less one
    place = np.uint64(column) * _MULTIPLIER
    place = (place ^ (place >> half)) * _MULTIPLIER  # all bits of an id move all bits of its place
    place = (place ^ (place >> half)) & mask
    while keys[place] != column and keys[place] != _FREE:
        place = (place + np.uint64(1)) & mask
    return place


@kernel
def _count(indices, start, keys, counts, room):
    """Count ids from `start` on, until there is no room for a new one; returns (where it stopped, room left)."""
    for t in range(start, len(indices)):
        place = _place(keys, indices[t])
        if keys[place] == _FREE:
            if room == 0:
                return t, room
            room -= 1
            keys[place] = indices[t]
        counts[place] += 1
    return len(indices), room


@kernel
def _fill(columns, values, keys, table):
    for j in range(len(columns)):
        place = _place(keys, columns[j])
        keys[place], table[place] = columns[j], values[j]


@kernel
def _look_up(indices, start, stop, keys, table, absent, out):
    for t in range(start, stop):
        place = _place(keys, indices[t])
        out[t] = absent if keys[place] == _FREE else table[place]


class ColumnCounts:
    """How many entries each column has, for any number of columns that occur."""

    def __init__(self):
        self._keys, self._counts, self._room = np.full(1 << 12, _FREE, np.int64), np.zeros(1 << 12, np.int64), 1 << 11

    def add(self, indices: np.ndarray) -> None:
        start = 0
        while True:
            start, self._room = _count(indices, start, self._keys, self._counts, self._room)
            if start == len(indices):
                return
            columns, counts = self._used()
            self._keys, self._counts = _table(columns, counts, 4 * len(columns))
            self._room = len(self._keys) // 2 - len(columns)

    def _used(self) -> tuple[np.ndarray, np.ndarray]:
        used = self._keys != _FREE
        return self._keys[used], self._counts[used]

    def by_frequency(self) -> np.ndarray:
        """Return the ids, those with most entries first, equals in the order of ids."""
        columns, counts = self._used()
        return columns[np.lexsort((columns, -counts))]


class ColumnNumbers:
    """The place of each of some ids in a list of them; one that is not there has the length of the list."""

    def __init__(self, columns: np.ndarray):
        self._absent = np.uint32(len(columns))
        self._keys, self._table = _table(columns, np.arange(len(columns), dtype=np.uint32), 2 * len(columns))

    def look_up(self, indices: np.ndarray) -> np.ndarray:
        out = np.empty(len(indices), np.uint32)
        arrays = (self._keys, self._table, self._absent, out)
        over_range(lambda start, stop: _look_up(indices, start, stop, *arrays), len(indices), 8 * len(indices))
        return out


def _table(columns: np.ndarray, values: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a hash table of at least `size` places: keys, and a value for each."""
    places = 1 << max(12, int(size - 1).bit_length())
    keys, table = np.full(places, _FREE, np.int64), np.zeros(places, values.dtype)
    _fill(columns, values, keys, table)
    return keys, table
