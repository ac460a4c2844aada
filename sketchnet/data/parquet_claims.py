"""What a Parquet file claims to hold, by its own metadata, before any of it is unpacked.

A few bytes may stand for any number of equal list elements. pyarrow knows how many, but ends the process where the
metadata of columns are damaged, so these are read here: a structure of Thrift's compact protocol at the file's end.
"""

from __future__ import annotations

from pathlib import Path

from sketchnet.errors import InputError

_FOOTER = 1 << 20  # bytes that are looked at, at most: what claims much in little has a short one
_VALUE_BYTES = 8
_PLAUSIBLE = 100  # bytes of elements that a byte of a file may stand for
_GROUPS, _COLUMNS, _ROWS, _META, _VALUES = 4, 1, 3, 3, 5  # numbers of fields


def check_claims(path: Path, most: int) -> None:
    """Raise if the lists of a row group claim more than `most` bytes, and far more than the file could tell apart."""
    size = path.stat().st_size
    for number, claimed in enumerate(_claims(path, size)):
        if claimed > max(most, _PLAUSIBLE * size):
            raise InputError(f"{path}: the lists of row group {number} take {claimed:,} bytes; allowed are {most:,}")


def _claims(path: Path, size: int) -> list[int]:
    """Return the bytes that the list elements of each row group take, by the metadata; nothing if they are damaged."""
    with open(path, "rb") as file:
        file.seek(max(0, size - 8))
        length = int.from_bytes(file.read(4), "little")
        if not 0 < length <= min(_FOOTER, size - 8):
            return []
        file.seek(size - 8 - length)
        footer = file.read(length)
    try:
        groups = _struct(footer, 0)[0][_GROUPS]
        numbers = [(group[_ROWS], [column[_META][_VALUES] for column in group[_COLUMNS]]) for group in groups]
        return [_VALUE_BYTES * sum(n for n in values if n > rows) for rows, values in numbers]
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
        return None, at + length
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
