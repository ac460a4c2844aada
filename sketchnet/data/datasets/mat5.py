"""Numeric arrays from MATLAB 5 files. scipy's reader crashes the process on some damaged files; this one never does."""

from __future__ import annotations

import math
import zlib
from pathlib import Path

import numpy as np

from sketchnet.data.datasets.files import reading
from sketchnet.errors import InputError
from sketchnet.storage import check_regular

_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8", 12: "<i8", 13: "<u8"}
_HEADER = 128  # bytes: text, then version and byte order


def read_mat(path: Path) -> dict[str, np.ndarray]:
    """The real numeric arrays of the file by name. Anything else in it is skipped.

    After the header come elements: a type and a size of four bytes each, then the content. A compressed element is
    a deflated element. A matrix is a row of elements: flags, dimensions, name, numbers in column-major order.
    """
    with reading(path):
        check_regular(path)
        data = memoryview(path.read_bytes())
    if bytes(data[:10]) != b"MATLAB 5.0" or bytes(data[126:_HEADER]) != b"IM":
        raise InputError(f"{path} begins with {bytes(data[:10])!r}; it must be a little-endian MATLAB 5.0 file")
    arrays, at = {}, _HEADER
    try:
        while at < len(data):
            kind, content, at = _element(data, at, padded=False)
            if kind == _COMPRESSED:
                kind, content = _inflate(content)
            if kind == _MATRIX:
                arrays.update(_matrix(content))
    except (ValueError, zlib.error) as error:
        raise InputError(f"{path} is damaged: {error}") from error
    return arrays


def _element(data: memoryview, at: int, padded: bool = True) -> tuple[int, memoryview, int]:
    """(type, content, where the next element begins)."""
    if at + 8 > len(data):
        raise ValueError(f"it ends within an element at byte {at}")
    kind, size = np.frombuffer(data, "<u4", 2, at).tolist()
    if kind >> 16:  # a small element: size and type share four bytes, the content has the other four
        kind, size, start, end = kind & 0xFFFF, kind >> 16, at + 4, at + 8
        if size > 4:
            raise ValueError(f"the small element at byte {at} has {size} bytes; it may have 4")
    else:
        start = at + 8
        end = start + (-(-size // 8) * 8 if padded else size)
        if start + size > len(data):
            raise ValueError(f"the element at byte {at} has {size:,} bytes, of which {len(data) - start:,} are there")
    return kind, data[start : start + size], end


def _inflate(content: memoryview) -> tuple[int, memoryview]:
    """The one element in a compressed one. It says its size first, and no more is inflated."""
    inflater = zlib.decompressobj()
    tag = inflater.decompress(content, 8)
    if len(tag) < 8:
        raise ValueError("a compressed element ends within its first 8 bytes")
    kind, size = np.frombuffer(tag, "<u4").tolist()
    inflated = inflater.decompress(inflater.unconsumed_tail, size) if size else b""
    # The end of the stream carries a checksum, which is looked at only when all has been asked for.
    rest = inflater.decompress(inflater.unconsumed_tail, 1)
    if len(inflated) != size or rest or not inflater.eof:
        raise ValueError(f"a compressed element of {size:,} bytes has {len(inflated) + len(rest):,}, or no end")
    return kind, memoryview(inflated)


def _matrix(data: memoryview) -> dict[str, np.ndarray]:
    _, flags, at = _element(data, 0)
    dimensions_kind, dimensions, at = _element(data, at)
    _, name, at = _element(data, at)
    # Classes 6 to 15 are numeric; the ninth bit of complex ones is set.
    if len(flags) != 8 or not 6 <= flags[0] <= 15 or flags[1] & 8:
        return {}
    kind, content, _ = _element(data, at)
    if dimensions_kind != 5 or len(dimensions) % 4 or kind not in _NUMBERS:
        raise ValueError(f"dimensions of type {dimensions_kind} and numbers of type {kind}")
    shape = np.frombuffer(dimensions, "<i4").tolist()
    numbers = np.frombuffer(content, _NUMBERS[kind])
    if min(shape, default=0) < 0 or math.prod(shape) != len(numbers):
        raise ValueError(f"an array of shape {shape} has {len(numbers):,} numbers")
    return {bytes(name).decode("latin-1"): numbers.reshape(shape, order="F")}
