"""svmlight / LIBSVM text: `label [qid:n] id:value ... [# comment]`, one row a line.

Fields are set apart by spaces and tabs; lines end in a newline, perhaps after a carriage return. Empty lines and lines
with only a comment are no rows. Ids are whole numbers from 0 to 2**63 - 1, in any order; repeated ids are kept. Numbers
are decimal, finite and rounded correctly: to float64, and from there to float32, as scikit-learn does. A row may have
several labels, set apart by commas, or none. Query ids stand on every row or on none. A byte order mark at the very
beginning is left out.

A byte range of a file has the rows whose lines begin in it, so ranges that meet have every row once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from sketchnet.checks import check_integer
from sketchnet.data.compression import USUAL, Block, Limits, line_blocks, open_reading
from sketchnet.data.csr import CsrBatch
from sketchnet.data.svmlight_parser import Parser, unmarked
from sketchnet.data.svmlight_rows import Rows
from sketchnet.errors import InputError
from sketchnet.kernels.cpu.numbers import PADDING

_CHUNK = 16 << 20
_FOREVER = 2**64


def read_svmlight(
    paths: str | os.PathLike | Sequence[str | os.PathLike],
    *,
    n_columns: int | None = None,
    base: int | str = "auto",
    labels: str = "auto",
    dtype=np.float32,
    on_error: str = "raise",
    offset: int = 0,
    length: int | None = None,
) -> CsrBatch:
    """Read one file or several into memory, one after the other.

    `base` is what the first column is called: 0, 1, or "auto", which is 0 if an id 0 occurs in any file, else 1.
    `labels` is "single", "multi", "ignore", which takes whatever stands there and keeps none, or "auto", which is
    "multi" if any row has several labels or no row has any; if some have one and others none, that is an error. Labels
    are float64 in the order written; ids are int32 where all fit, else int64. `n_columns` is by default one more than
    the largest id; an id beyond it is an error. `on_error="skip"` leaves out the lines that are malformed or have such
    an id, "skip_malformed" only the malformed; `SvmlightReader` counts them.

    `offset` and `length` read a part of one plain file: the rows whose lines begin in these bytes, to the end of the
    file where `length` is None. What is "auto" could differ from part to part: `n_columns` and `base` must be given,
    and there is one label a row unless `labels` says otherwise.
    """
    paths = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not paths:
        raise InputError("no file was given to read")
    part = _Part(offset, length)
    if part and len(paths) > 1:
        raise InputError(f"offset and length are for one file, but {len(paths)} are given")
    rows, parser = Rows(dtype), Parser(n_columns, *part.decided(n_columns, base, labels), on_error)
    for path in paths:
        begin, end = part.of(path)
        parser.begin(path, begin, None if begin else 1)
        for block in _blocks(path, _CHUNK, begin, end):
            # How much of the same is still to come; nobody knows for packed files.
            further = (os.path.getsize(path) - block.end) / block.size
            parser.parse(unmarked(block, parser.line), rows, further if further >= 0 and not part else None)
    if not parser.settle(rows):
        return read_svmlight(paths, n_columns=n_columns, base=0, labels=labels, dtype=dtype, on_error=on_error)
    return rows.batch(rows.max_id + 1 if n_columns is None else n_columns, parser)


class SvmlightReader:
    """Reads a file in chunks: iterating gives a CsrBatch for each `chunk_bytes` of text (or line, if that is longer).

    The parameters are those of `read_svmlight`, and `limits` on what the file may ask of the memory. What is "auto" is
    decided by the first chunk with rows; if a later chunk contradicts, that is an error even with `on_error="skip"`.
    Rows without labels may go on to rows with several, but not to rows with one. Without `n_columns`, a chunk has as
    many columns as were seen so far.

    After each chunk, `offset` and `line` tell where the next begins, in bytes of the unpacked text and in lines from 1
    (None in a part of a file); a reader with `start=(offset, line)` goes on there. `skipped` counts the lines left out
    since the start, `n_rows` the rows given, `bytes_read` what was read of the file as it lies on the disk; `base`,
    `labels` and `n_columns` are what was found so far. `so_far` is what the rows so far decided, a dictionary of plain
    values, None before any; a reader that goes on, there or in another file, should be given it.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        *,
        n_columns: int | None = None,
        base: int | str = "auto",
        labels: str = "auto",
        dtype=np.float32,
        on_error: str = "raise",
        chunk_bytes: int = _CHUNK,
        start: tuple[int, int] = (0, 1),
        so_far: dict | None = None,
        offset: int = 0,
        length: int | None = None,
        limits: Limits = USUAL,
    ):
        if chunk_bytes < 1:
            raise InputError(f"chunk_bytes is {chunk_bytes}; it must be at least 1")
        part = _Part(offset, length)
        if part and tuple(start) != (0, 1):
            raise InputError("start is given, and offset or length; a part goes on at its reader's offset")
        base, labels = part.decided(n_columns, base, labels)
        self.path, self.chunk_bytes, self.so_far, self._limits = Path(path), chunk_bytes, so_far, limits
        self.base, self.labels, self.n_columns = base, labels, n_columns or 0
        self.offset: int
        self.line: int | None
        self.offset, self.line = start
        self.skipped = self.n_rows = self.bytes_read = 0
        self._asked, self._n_columns = (n_columns, base, labels, on_error), n_columns
        self._part, self._end = part, None if part else _FOREVER
        self._dtype = Rows(dtype).values.dtype
        Parser(*self._asked)  # checks the rest

    def __iter__(self) -> Iterator[CsrBatch]:
        if self._end is None:
            self.offset, self._end = self._part.of(self.path)
            self.line = None if self.offset else 1
        begin = self.offset
        parser = Parser(*self._asked)
        if self.so_far is not None:
            parser.go_on(self.so_far, same_file=begin > 0)
        elif begin > 0 and not self._part:  # wherever reading begins, the file's first chunk decides
            parser.begin(self.path)
            with closing(line_blocks(self.path, self.chunk_bytes, padding=PADDING, limits=self._limits)) as head:
                while not parser.decided and parser.start < begin:
                    self._decide(parser, next(head))
        parser.begin(self.path, begin, self.line)
        parser.skipped = self.skipped
        for block in _blocks(self.path, self.chunk_bytes, begin, self._end, self._limits):
            rows = self._decide(parser, block)
            if self._n_columns is None:
                self.n_columns = max(self.n_columns, rows.max_id + 1)
            self.base, self.labels, self.so_far = parser.base, parser.labels, parser.so_far
            self.offset, self.line, self.skipped = block.end, parser.line, parser.skipped
            self.bytes_read = block.read
            self.n_rows += rows.n_rows
            yield rows.batch(self.n_columns, parser)

    def _decide(self, parser: Parser, block: Block) -> Rows:
        block = unmarked(block, parser.line)
        while True:
            line, start, skipped, rows = parser.line, parser.start, parser.skipped, Rows(self._dtype)
            parser.parse(block, rows)
            if parser.settle(rows):
                return rows
            parser.base, parser.line, parser.start, parser.skipped = 0, line, start, skipped


def some_row_has_several_labels(
    paths: Sequence[str | os.PathLike],
    *,
    base: int | str = "auto",
    labels: str = "auto",
    dtype=np.float32,
    on_error: str = "raise",
    chunk_bytes: int = _CHUNK,
) -> bool:
    """Return whether any row of the files has several labels, looking no further than the first."""
    for path in paths:
        parser = Parser(None, base, labels, on_error)
        parser.begin(path)
        for block in line_blocks(path, chunk_bytes, padding=PADDING):
            parser.parse(unmarked(block, parser.line), Rows(dtype))
            if parser.several_seen:
                return True
    return False


class _Part:
    """The bytes of a file that are to be read; false if that is all of them."""

    def __init__(self, offset: int, length: int | None):
        self._offset = check_integer("offset", offset, 0, 2**63)
        self._end = _FOREVER if length is None else offset + check_integer("length", length, 0, 2**63)

    def __bool__(self) -> bool:
        return self._offset > 0 or self._end < _FOREVER

    def decided(self, n_columns: int | None, base: int | str, labels: str) -> tuple[int | str, str]:
        """Base and labels, none of them "auto" for a part."""
        if self:
            for name, value in (("n_columns", n_columns), ("base", None if base == "auto" else base)):
                if value is None:
                    raise InputError(f"{name} must be given with offset or length: it could differ from part to part")
        return base, "single" if self and labels == "auto" else labels

    def of(self, path: str | os.PathLike) -> tuple[int, int]:
        """Where the first line that begins in the part does, and where lines of it begin no more."""
        if not self:
            return 0, self._end
        with open_reading(path) as file:
            if not file.seekable():
                raise InputError(f"{path} is packed, or a pipe; offset and length are for plain files")
            size, begin = os.fstat(file.fileno()).st_size, 0
            if self._offset > 0:
                file.seek(self._offset - 1)  # a line that begins at the offset comes after a newline there
                while (piece := file.readline(1 << 20)) and not piece.endswith(b"\n"):
                    pass
                begin = min(file.tell(), size)
        return begin, self._end


def _blocks(path: str | os.PathLike, n_bytes: int, begin: int, end: int, limits: Limits = USUAL) -> Iterator[Block]:
    """Blocks of the lines that begin at `begin` or later, and before `end`."""
    with closing(line_blocks(path, n_bytes, begin, PADDING, limits)) as blocks:
        for block in blocks:
            if block.end > end:
                if begin < end:
                    size = block.buffer[: block.size].tobytes().index(b"\n", end - 1 - begin) + 1
                    if size < block.size:
                        block.buffer[size : size + PADDING] = 10
                        block = replace(block, size=size, end=begin + size, last=True)
                    yield block
                return
            yield block
            begin = block.end
