"""Text files, plain or compressed: read in blocks of whole lines, written all or not at all."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from sketchnet.checks import import_extra
from sketchnet.errors import InputError, MissingFile, StorageError
from sketchnet.storage import replacing

_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
SUFFIXES = tuple(_MAGIC.values())
LONGEST_LINE = 1 << 28  # a file without newlines must not fill the memory
_STEP = 1 << 16


def packing_of(start: bytes) -> str:
    """The suffix of files that begin like this, if they are packed."""
    if start[1:4] == b"\x2a\x4d\x18" and start[0] >> 4 == 5:  # a frame to skip, with which pzstd begins
        return ".zst"
    if start.startswith(b"BZh") and start[4:6] not in (b"1A", b"\x17r"):  # a block, or the end: else it is text
        return ""
    return next((suffix for magic, suffix in _MAGIC.items() if start.startswith(magic)), "")


def open_reading(path: str | Path) -> io.IOBase:
    """A binary stream of the unpacked bytes. The packing is told by the first bytes, not by the name."""
    path = Path(path)
    try:
        file = open(path, "rb", buffering=1 << 16)  # noqa: SIM115 - the caller closes it
        start = file.peek(6)[:6]  # opened once and not rewound, so that pipes lose nothing
        suffix = packing_of(start)
        if not suffix and path.suffix in SUFFIXES:
            raise InputError(f"{path} does not hold {path.suffix[1:]} data; rename it if it is plain text")
        return _UNPACK[suffix](file)
    except FileNotFoundError:
        raise MissingFile(f"there is no file {path}") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder, not a file") from None
    except InputError:
        file.close()
        raise
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror or error}") from None


@contextmanager
def atomic_writing(path: str | Path) -> Iterator[io.IOBase]:
    """A binary stream, packed as the name's suffix says, that becomes the file only when the block ends well."""
    path = Path(path)
    with replacing(path, alone=False) as new, open(new, "wb") as raw, _packing(raw, path.suffix) as file:
        yield file


@contextmanager
def _packing(raw, suffix: str):
    if suffix not in SUFFIXES:
        yield raw
        return
    if suffix == ".gz":  # without name and time, so that equal data gives equal files
        file = gzip.GzipFile("", "wb", 6, raw, mtime=0)
    elif suffix == ".zst":
        file = _zstandard().ZstdCompressor().stream_writer(raw, closefd=False)
    else:
        file = {".bz2": bz2.open, ".xz": lzma.open}[suffix](raw, "wb")
    with file:
        yield file


def _zstandard():
    return import_extra("zstandard", "zstd", "a zst file")


class _Unpacked(io.RawIOBase):
    """A stream of unpacked bytes that closes the file below it."""

    def __init__(self, file, unpack: Callable[[io.IOBase], io.IOBase]):
        self.file, self._stream = file, unpack(file)

    def readable(self) -> bool:
        return True

    def readinto(self, target) -> int:
        return self._stream.readinto(target)

    def close(self) -> None:
        self.file.close()
        super().close()


class _StreamsReader(io.RawIOBase):
    """Unpacks streams (zst: frames) that stand one behind the other. `begin` makes what unpacks one.

    Unlike the libraries' own readers, it takes neither a stream that is cut off nor what is none for the file's end.
    """

    _INPUT = 2048  # a block of 4 bytes may unpack to 128 KiB: at most 64 MiB come of one input

    def __init__(self, file, begin: Callable, error: type[Exception], padding: bytes = b""):
        self._file, self._begin, self._error, self._padding = file, begin, error, padding
        self._stream, self._ready, self._used = None, b"", 0

    def readinto(self, target) -> int:
        while self._used == len(self._ready):
            if self._stream is not None and self._stream.eof:
                rest, self._stream = self._stream.unused_data, None
            else:
                rest = b""
            data = rest or self._file.read(self._INPUT)
            if not data:
                if self._stream is not None:
                    raise EOFError("the file ends inside a stream")
                return 0
            if self._stream is None:
                data = data.lstrip(self._padding) if self._padding else data
                if not data:
                    continue
                self._stream = self._begin()
            try:
                self._ready, self._used = self._stream.decompress(data), 0
            except self._error as error:
                raise EOFError(str(error)) from None
        n = min(len(target), len(self._ready) - self._used)
        target[:n] = self._ready[self._used : self._used + n]
        self._used += n
        return n


def _xz() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ)


def _frames(file) -> _StreamsReader:
    zstandard = _zstandard()
    return _StreamsReader(file, lambda: zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError)


_UNPACK = {
    "": lambda file: file,
    ".gz": partial(_Unpacked, unpack=gzip.open),
    ".bz2": partial(_Unpacked, unpack=partial(_StreamsReader, begin=bz2.BZ2Decompressor, error=OSError)),
    ".xz": partial(_Unpacked, unpack=partial(_StreamsReader, begin=_xz, error=lzma.LZMAError, padding=b"\0")),
    ".zst": partial(_Unpacked, unpack=_frames),
}


@dataclass(frozen=True)
class Block:
    """Whole lines in buffer[:size], the last with a newline, then at least the padding asked for, all newlines.

    `end` is where the next block begins in the unpacked file, `read` how much of the file itself has been read. The
    buffer is used again for the block after the next.
    """

    buffer: np.ndarray
    size: int
    end: int
    last: bool
    read: int


def line_blocks(path: str | Path, n_bytes: int, offset: int = 0, padding: int = 32) -> Iterator[Block]:
    """Blocks of whole lines of at most `n_bytes`, or of one line that is longer; a thread reads one block ahead.

    Where blocks end depends on the file's bytes and on `n_bytes` alone.
    """
    blocks = _line_blocks(Path(path), n_bytes, offset, padding)
    try:
        block = next(blocks, None)
        if block is None or block.last:
            yield from () if block is None else (block,)
            return
        with ThreadPoolExecutor(1) as pool:
            while block is not None:
                ahead = pool.submit(next, blocks, None)
                yield block
                block = ahead.result()
    finally:
        blocks.close()


def _line_blocks(path: Path, n_bytes: int, offset: int, padding: int) -> Iterator[Block]:
    buffers, turn = [np.empty(0, np.uint8)] * 2, 0  # the consumer holds one while the other is filled
    tail, ended = np.empty(0, np.uint8), False
    with open_reading(path) as stream:
        _skip(stream, path, offset)
        while not (ended and len(tail) == 0):
            buffer = _at_least(buffers[turn], max(n_bytes, len(tail)) + 1 + padding)
            buffer[: len(tail)] = tail
            filled, ended = _fill(stream, path, buffer, len(tail), n_bytes, ended)
            searched = min(filled, n_bytes)
            cut = filled if ended and filled <= n_bytes else _after_last_newline(buffer, searched)
            while cut == 0 and filled > 0:  # a line longer than a block: up to its end
                cut = _after_first_newline(buffer, searched, filled) or (filled if ended else 0)
                if cut == 0:
                    if filled > LONGEST_LINE:
                        raise InputError(f"{path} has a line of more than {LONGEST_LINE} bytes from byte {offset} on")
                    searched, buffer = filled, _at_least(buffer, 2 * filled + 1 + padding)
                    filled, ended = _fill(stream, path, buffer, filled, 2 * filled, ended)
            tail = buffer[cut:filled].copy()
            offset += cut
            if cut and buffer[cut - 1] != 10:  # only at the end of the file
                buffer[cut] = 10
                cut += 1
            buffer[cut : cut + padding] = 10
            buffers[turn], turn = buffer, 1 - turn
            if cut:
                raw = stream.file if isinstance(stream, _Unpacked) else stream
                yield Block(buffer, cut, offset, ended and len(tail) == 0, raw.tell() if raw.seekable() else offset)


def _at_least(buffer: np.ndarray, size: int) -> np.ndarray:
    if len(buffer) >= size:
        return buffer
    longer = np.empty(size, np.uint8)
    longer[: len(buffer)] = buffer
    return longer


def _fill(stream, path: Path, buffer: np.ndarray, filled: int, size: int, ended: bool) -> tuple[int, bool]:
    """Read until buffer[:size] is full or the stream ends; returns how much is filled, and whether it ended."""
    while not ended and filled < size:
        n = _read(stream, path, memoryview(buffer)[filled:size])
        filled, ended = filled + n, n == 0
    return filled, ended


def _read(stream, path: Path, target: memoryview) -> int:
    try:
        return stream.readinto(target)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is damaged or cut off: {error}") from None
    except OSError as error:
        if error.errno is None:  # bz2 reports bad data so
            raise InputError(f"{path} is damaged: {error}") from None
        raise StorageError(f"cannot read {path}: {error.strerror}") from None


def _skip(stream, path: Path, offset: int) -> None:
    if isinstance(stream, io.BufferedReader) and stream.seekable():
        size = os.fstat(stream.fileno()).st_size
        if offset > size:
            raise InputError(f"{path} has {size} bytes; it cannot be read from byte {offset} on")
        stream.seek(offset)
        return
    scratch = memoryview(bytearray(min(offset, 1 << 20)))
    while offset > 0:
        n = _read(stream, path, scratch[: min(offset, len(scratch))])
        if n == 0:
            raise InputError(f"{path} ends {offset} bytes before the place to read on from")
        offset -= n


def _after_last_newline(buffer: np.ndarray, stop: int) -> int:
    """The place after the last newline in buffer[:stop]; 0 if there is none."""
    for end in range(stop, 0, -_STEP):
        start = max(0, end - _STEP)
        at = buffer[start:end].tobytes().rfind(b"\n")
        if at >= 0:
            return start + at + 1
    return 0


def _after_first_newline(buffer: np.ndarray, start: int, stop: int) -> int:
    for begin in range(start, stop, _STEP):
        at = buffer[begin : min(stop, begin + _STEP)].tobytes().find(b"\n")
        if at >= 0:
            return begin + at + 1
    return 0
