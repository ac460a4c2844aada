"""What a Parquet file claims to hold, by its own metadata, before any of it is unpacked.

A few bytes may stand for any number of equal list elements, or for a page of any length. pyarrow knows how many, but
ends the process where the metadata of columns are damaged, so these are read here: structures of Thrift's compact
protocol, one at the file's end and one before each page.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from operator import index
from pathlib import Path
from typing import Any, BinaryIO

from sketchnet.errors import InputError

_FOOTER = 1 << 20  # bytes that are looked at, at most: what claims much in little has a short one
_HEADERS = 1 << 8, 1 << 20  # bytes that the header of a page takes, as a rule and at most
_VALUE_BYTES = 8
_PLAUSIBLE = 100  # bytes of elements that a byte of a file may stand for
_GROUPS, _COLUMNS, _ROWS, _META = 4, 1, 3, 3  # numbers of fields
_PATH, _VALUES, _PACKED, _FIRST_PAGE, _DICTIONARY = 3, 5, 7, 9, 11  # and of a column's
_KIND, _PAGE, _PACKED_PAGE = 1, 2, 3  # and of a page's
_OF_DICTIONARY = 2  # kind of page
_USUAL_PAGE = 2 << 20  # bytes; writers end pages earlier, unless single values are long
_COPIES = 3  # times that a long page is held while it is read, by twice the bytes that a limit is half of


def check_claims(path: Path, most: int) -> None:
    """Raise if the lists of a row group claim more than `most` bytes, and far more than the file could tell apart."""
    size = path.stat().st_size
    for number, claimed in enumerate(_claims(path, size)):
        if claimed > max(most, _PLAUSIBLE * size):
            raise InputError(f"{path}: the lists of row group {number} take {claimed:,} bytes; allowed are {most:,}")


def check_pages(path: Path, names: Collection[str], most: int) -> None:
    """Raise if the longest pages of a row group's columns, each unpacked at once, take more than `most` bytes."""
    wanted = [name.encode() for name in names]
    with open(path, "rb") as file:
        for number, group in enumerate(_groups(path, path.stat().st_size)):
            needed = sum(_longest(file, column) for name, column in _columns(group) if name in wanted)
            if needed > most:
                way_out = "give more memory, or write shorter row groups"
                raise InputError(
                    f"{path}: row group {number} takes {needed:,} bytes at once; allowed are {most:,}; {way_out}"
                )


def _longest(file: BinaryIO, column: dict) -> int:
    """Return the bytes that a column's dictionary and longest page take, where they are longer than usual."""
    longest = {True: 0, False: 0}  # of dictionaries, and of other pages
    for kind, size in _pages(file, column):
        if size > _USUAL_PAGE:
            longest[kind == _OF_DICTIONARY] = max(longest[kind == _OF_DICTIONARY], _COPIES * size)
    return sum(longest.values())


def _pages(file: BinaryIO, column: dict) -> Iterator[tuple[int, int]]:
    """Yield kind and unpacked bytes of a column's pages, up to one whose header is damaged."""
    try:
        at = min(column[_FIRST_PAGE], column.get(_DICTIONARY) or column[_FIRST_PAGE])
        end = min(at + column[_PACKED], file.seek(0, os.SEEK_END))
        while 0 <= at < end:
            header, length = _page_header(file, at)
            kind, size, packed = (index(header[field]) for field in (_KIND, _PAGE, _PACKED_PAGE))
            yield kind, size
            at += length + max(0, packed)
    except (IndexError, KeyError, TypeError, AttributeError, RecursionError):
        return


def _page_header(file: BinaryIO, at: int) -> tuple[dict, int]:
    file.seek(at)
    start = file.read(_HEADERS[0])
    try:
        return _struct(start, 0)
    except IndexError:  # it has long statistics
        return _struct(start + file.read(_HEADERS[1]), 0)


def _claims(path: Path, size: int) -> list[int]:
    """Return the bytes that the list elements of each row group take, by the metadata; nothing if they are damaged."""
    try:
        numbers = [(group[_ROWS], [column[_VALUES] for _, column in _columns(group)]) for group in _groups(path, size)]
        return [_VALUE_BYTES * sum(n for n in values if n > rows) for rows, values in numbers]
    except (KeyError, TypeError):
        return []


def _columns(group: dict) -> list[tuple[Any, dict]]:
    """Return the columns of a row group, each with the name that the schema's first level has."""
    return [(column[_META][_PATH][0], column[_META]) for column in group[_COLUMNS]]


def _groups(path: Path, size: int) -> list[dict]:
    """Return what the metadata say of row groups; nothing if they are damaged."""
    with open(path, "rb") as file:
        file.seek(max(0, size - 8))
        length = int.from_bytes(file.read(4), "little")
        if not 0 < length <= min(_FOOTER, size - 8):
            return []
        file.seek(size - 8 - length)
        footer = file.read(length)
    try:
        groups = _struct(footer, 0)[0][_GROUPS]
        for group in groups:
            _columns(group)
        return groups
    except (IndexError, KeyError, TypeError, RecursionError):
        return []


def _struct(data: bytes, at: int) -> tuple[dict, int]:
    """Return a structure's fields by number, and where it ends."""
    fields, number = {}, 0
    while data[at]:
        step, kind = data[at] >> 4, data[at] & 15
        if step:
            number, at = number + step, at + 1
        else:
            number, at = _integer(data, at + 1)
        fields[number], at = (kind == 1, at) if kind in (1, 2) else _value(data, at, kind)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[object, int]:
    if kind in (1, 2, 3):  # elements of lists that are true or false, and bytes
        return data[at], at + 1
    if kind in (4, 5, 6):
        return _integer(data, at)
    if kind == 7:
        return None, at + 8
    if kind == 8:
        length, at = _varint(data, at)
        return data[at : at + length], at + length
    if kind in (9, 10):
        length, inner = data[at] >> 4, data[at] & 15
        at += 1
        if length == 15:
            length, at = _varint(data, at)
        elements = []
        for _ in range(length):
            element, at = _value(data, at, inner)
            elements.append(element)
        return elements, at
    if kind == 12:
        return _struct(data, at)
    raise KeyError(kind)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while data[at] & 128:
        number, shift, at = number | (data[at] & 127) << shift, shift + 7, at + 1
    return number | data[at] << shift, at + 1


def _integer(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    return (number >> 1) ^ -(number & 1), at
