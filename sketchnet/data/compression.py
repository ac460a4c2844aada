"""Text files, plain or compressed: read in blocks of whole lines, written all or not at all."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import warnings
import zlib
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sketchnet.checks import import_extra
from sketchnet.errors import InputError, MissingFile, StorageError, UncheckedWarning
from sketchnet.storage import replacing

_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
SUFFIXES = tuple(_MAGIC.values())
_STEP = 1 << 16  # bytes that are read or searched at a time
_PIECE = 1 << 18  # and unpacked at a time


@dataclass(frozen=True)
class Limits:
    """What a file may ask of the memory, in bytes: by its longest line, and by what must be kept to unpack it (the
    window of zst, the dictionary of xz).
    """

    line: int = 1 << 28
    window: int = 1 << 28


USUAL = Limits()


def packing_of(start: bytes) -> str:
    """The suffix of files that begin like this, if they are packed."""
    if _is_skipped(start):
        return ".zst"
    if start.startswith(b"BZh") and start[4:6] not in (b"1A", b"\x17r"):  # a block, or the end: else it is text
        return ""
    return next((suffix for magic, suffix in _MAGIC.items() if start.startswith(magic)), "")


def open_reading(path: str | os.PathLike, window: int = USUAL.window) -> Any:
    """A binary stream of the unpacked bytes. The packing is told by the first bytes, not by the name; what needs more
    than `window` bytes of memory to unpack is refused.
    """
    path = Path(path)
    try:
        file: Any = open(path, "rb", buffering=1 << 16)  # noqa: SIM115 - the caller closes it
        start = file.peek(6)[:6]  # opened once and not rewound, so that pipes lose nothing
        suffix = packing_of(start)
        if not suffix and path.suffix in SUFFIXES:
            raise InputError(f"{path} does not hold {path.suffix[1:]} data; rename it if it is plain text")
        return _Unpacked(file, _UNPACK[suffix](file, window)) if suffix else file
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
def atomic_writing(path: str | os.PathLike) -> Iterator[io.IOBase]:
    """A binary stream, packed as the name's suffix says, that becomes the file only when the block ends well."""
    path = Path(path)
    with replacing(path) as new, open(new, "wb") as raw, _packing(raw, path.suffix) as file:
        yield file


@contextmanager
def _packing(raw, suffix: str):
    if suffix not in SUFFIXES:
        yield raw
        return
    if suffix == ".gz":  # without name and time, so that equal data gives equal files
        file = gzip.GzipFile("", "wb", 6, raw, mtime=0)
    elif suffix == ".zst":
        file = _zstandard().ZstdCompressor(write_checksum=True).stream_writer(raw, closefd=False)
    else:
        file = bz2.BZ2File(raw, "wb") if suffix == ".bz2" else lzma.LZMAFile(raw, "wb")  # noqa: SIM115
    with file:
        yield file


def _zstandard():
    return import_extra("zstandard", "zstd", "a zst file")


class _Unpacked(io.RawIOBase):
    """What comes in pieces as a stream, which closes the file below it."""

    def __init__(self, file, pieces: Iterator[bytes]):
        self.file, self._pieces, self._ready = file, pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, target) -> int:
        while not self._ready:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._ready = memoryview(piece)
        n = min(len(target), len(self._ready))
        target[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def close(self) -> None:
        self.file.close()
        super().close()


# Pieces are short, however much a few bytes unpack to. Unlike the libraries' own readers, the generators below take
# neither a stream that is cut off nor what is none for the file's end.


def _gzipped(file, window: int) -> Iterator[bytes]:
    with gzip.open(file) as stream:
        while piece := stream.read1(_PIECE):
            yield piece


def _streams(file, begin: Callable, padding: bytes = b"") -> Iterator[bytes]:
    """The content of streams, one behind the other; `begin` makes what unpacks one."""
    data = b""
    while data := data or file.read(_STEP):
        data = data.lstrip(padding) if padding else data
        if not data:
            continue
        stream = begin()
        while not stream.eof:
            if stream.needs_input and not data:
                data = file.read(_STEP)
                if not data:
                    raise EOFError("the file ends inside a stream")
            piece, data = stream.decompress(data, _PIECE), b""
            yield piece
        if getattr(stream, "check", None) == lzma.CHECK_NONE:
            _warn_unchecked(file)
        data = stream.unused_data


def _bzipped(file, window: int) -> Iterator[bytes]:
    try:
        yield from _streams(file, bz2.BZ2Decompressor)
    except OSError as error:
        raise error if error.errno else EOFError(str(error)) from None  # its way to report bad data


def _xz(file, window: int) -> Iterator[bytes]:
    try:
        yield from _streams(file, partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, window), b"\0")
    except lzma.LZMAError as error:
        if "Memory usage limit" in str(error):
            raise _too_wide(file, f"more than {window:,}", window) from None
        raise


def _frames(file, window: int) -> Iterator[bytes]:
    """The content of zst frames. Their blocks are told apart here, since the library unpacks all that it is given: of
    four bytes may come 128 KiB.
    """
    zstandard = _zstandard()

    def take(n: int) -> bytes:
        data = file.read(n)
        if len(data) < n:
            raise EOFError("the file ends inside a frame")
        return data

    try:
        while magic := file.read(4):
            if _is_skipped(magic):
                left = int.from_bytes(take(4), "little")
                while left:
                    left -= len(take(min(left, _STEP)))
                continue
            header = magic + take(1)
            header += take(zstandard.frame_header_size(header) - len(header))
            frame = zstandard.get_frame_parameters(header)
            if frame.window_size > window:
                raise _too_wide(file, f"{frame.window_size:,}", window)
            if not frame.has_checksum:
                _warn_unchecked(file)
            stream = zstandard.ZstdDecompressor(max_window_size=1 << zstandard.WINDOWLOG_MAX).decompressobj()
            stream.decompress(header)
            last = False
            while not last:
                start = take(3)
                bits = int.from_bytes(start, "little")  # 1: is it the last? 2: its kind. 21: its size
                last = bits & 1
                yield stream.decompress(start + take(1 if bits >> 1 & 3 == 1 else bits >> 3))
            if frame.has_checksum:
                stream.decompress(take(4))
            if not stream.eof:
                raise EOFError("a frame does not end where it should")
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from None


def _is_skipped(start: bytes) -> bool:
    """Whether a frame of zst begins that holds no data; pzstd writes such."""
    return start[1:4] == b"\x2a\x4d\x18" and start[0] >> 4 == 5


def _too_wide(file, needed: str, window: int) -> InputError:
    return InputError(f"{file.name} takes {needed} bytes of memory to unpack; allowed are {window:,}")


def _warn_unchecked(file) -> None:
    warnings.warn(UncheckedWarning(f"{file.name} was packed without checksums: damage may go unseen"), stacklevel=2)


_UNPACK = {".gz": _gzipped, ".bz2": _bzipped, ".xz": _xz, ".zst": _frames}


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


def line_blocks(
    path: str | os.PathLike, n_bytes: int, offset: int = 0, padding: int = 32, limits: Limits = USUAL
) -> Generator[Block, None, None]:
    """Blocks of whole lines of at most `n_bytes`, or of one line that is longer; a thread reads one block ahead.

    Where blocks end depends on the file's bytes and on `n_bytes` alone.
    """
    blocks = _line_blocks(Path(path), n_bytes, offset, padding, limits)
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


def _line_blocks(path: Path, n_bytes: int, offset: int, padding: int, limits: Limits) -> Generator[Block, None, None]:
    buffers, turn = [np.empty(0, np.uint8)] * 2, 0  # the consumer holds one while the other is filled
    tail, ended = np.empty(0, np.uint8), False
    with open_reading(path, limits.window) as stream:
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
                    if filled > limits.line:
                        raise InputError(f"{path} has a line of more than {limits.line:,} bytes from byte {offset} on")
                    searched, size = filled, min(2 * filled, limits.line + 1)
                    buffer = _at_least(buffer, size + 1 + padding)
                    filled, ended = _fill(stream, path, buffer, filled, size, ended)
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
        n = _read(stream, path, buffer.data[filled:size])
        filled, ended = filled + n, n == 0
    return filled, ended


def _read(stream, path: Path, target: memoryview) -> int:
    try:
        return stream.readinto(target)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is damaged or cut off: {error}") from None
    except OSError as error:
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
