"""CSV and TSV files as tables, read a chunk of rows at a time."""

from __future__ import annotations

import csv
import io
import lzma
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import numpy as np

from sketchnet.data.compression import USUAL, Limits, open_reading
from sketchnet.data.csr import CsrBatch
from sketchnet.data.table_chunks import TableChunk, TextColumn, check_names, is_number
from sketchnet.data.tables import TableEncoder
from sketchnet.errors import InputError

KIND_ROWS = 1000  # kinds are found from so many rows, whatever the chunks, so that chunks cannot change them
CHUNK_CELLS = 1 << 20  # at most; a cell takes about 100 bytes as a Python string
CHUNK_ROWS = 1 << 13  # at most; Python's collector walks over all live rows again and again
CHUNK_TEXT = 1 << 25  # characters, about, at most
HEAD_CELLS = 4_000_000  # of the rows from which kinds are found, at most
MAX_LINE = 1 << 26  # characters; keeps an endless line from filling the memory
_CELL = 3  # so many characters of the longest line are there for each cell that is held at a time
_COLUMN = 8  # and so many cells for each column
_SAMPLE = 1 << 20  # characters that tell the delimiter
_DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError)


def read_csv_batches(path: str | Path, encoder: TableEncoder, *, labels: bool = True, **options) -> Iterator[CsrBatch]:
    """Rows of a CSV or TSV file as batches; a one-hot encoder must be fitted before (`fit_csv`).

    Options are those of `csv_chunks`. The batches together are the same whatever `chunk_rows`.
    """
    for chunk in csv_chunks(path, encoder, **options):
        yield encoder.transform(chunk, labels)


def fit_csv(paths: str | Path | Sequence[str | Path], encoder: TableEncoder, **options) -> TableEncoder:
    """Fit an encoder to one file or several; options as for `csv_chunks`."""
    paths = [paths] if isinstance(paths, str | Path) else paths
    return encoder.fit(chain.from_iterable(csv_chunks(path, encoder, **options) for path in paths))


def csv_chunks(
    path: str | Path,
    encoder: TableEncoder,
    *,
    delimiter: str = "auto",
    header: str | bool = "auto",
    chunk_rows: int | None = None,
    start_row: int = 0,
    limits: Limits = USUAL,
) -> Iterator[TableChunk]:
    """The file's rows, a chunk at a time; the encoder learns the columns' kinds from the first of them.

    A chunk has at most `chunk_rows` rows; rows before `start_row` are skipped. Files are UTF-8, plain or packed, with
    quotes as in RFC 4180; blank lines are skipped. `delimiter="auto"` looks at the name and the first lines.
    `header="auto"` takes the first row for names unless it holds a number; without names, columns are c0, c1, ...
    """
    if header != "auto" and not isinstance(header, bool):
        raise InputError(f'header={header!r} is not allowed; give "auto", True or False')
    if start_row < 0 or (chunk_rows is not None and chunk_rows < 1):
        raise InputError(f"start_row={start_row}, chunk_rows={chunk_rows} is not allowed; rows are 0 or more, chunks 1")
    with _open_text(path, limits.window) as file:
        rows = _CsvRows(path, file, delimiter, min(limits.line, MAX_LINE))
        first = rows.first()
        # A name may be a number, such as a year, where others are asked for by name.
        asked = {encoder.label, encoder.label_, *encoder.categorical, *encoder.ignore, *(encoder.kinds_ or ())}
        numbers = any(map(is_number, first)) and asked.isdisjoint(first)
        named = header is True or (header == "auto" and not numbers)
        names = first if named else [f"c{i}" for i in range(len(first))]
        hint = "; give header=False to sketchnet.data.csv_files.read_csv_batches if the file has no names"
        check_names(names, f"{path}, line {rows.line + 1}", hint)
        rows.expect(len(names))
        if named:
            rows.take(1)
        head = rows.take(min(KIND_ROWS, max(1, HEAD_CELLS // len(names))))
        encoder.learn_kinds(rows.chunk(names, head))
        rows.put_back(head)
        size = chunk_rows or max(1, min(CHUNK_ROWS, min(CHUNK_CELLS, rows.most_cells // 2) // len(names)))
        skip = start_row
        while raw := rows.take(min(size, skip) if skip else size):
            chunk = rows.chunk(names, raw)
            if skip:
                skip -= chunk.n_rows
                encoder.see_classes(chunk)
            elif chunk.n_rows:
                yield chunk
        if skip:
            raise InputError(f"{path} has {start_row - skip} rows; start_row={start_row} is beyond them")


def _open_text(path: str | Path, window: int):
    # Bad bytes become lone surrogates here, and an error with its line number in _lines.
    stream = io.BufferedReader(open_reading(path, window))
    return io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")


def _check_utf8(text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{where}: there are bytes that are not UTF-8") from None


class _CsvRows:
    """Records of a CSV file, blank ones too, and the lines on which they stand. None has more than `most` characters,
    and no more cells are taken at a time than take as much memory.
    """

    def __init__(self, path, file, delimiter: str, most: int):
        self._path, self._most, self.most_cells = path, most, most // _CELL
        self._ahead: list[list[str]] = []  # records put back
        self.line = 0  # before the next record
        self._n_cells: int | None = None
        self._n_characters = self._begun = 0  # read so far, and before the record at hand
        lines, first = self._lines(file), list[str]()
        while len(first) < 20 and sum(len(line) for line in first) < _SAMPLE and (line := next(lines, None)):
            first.append(line)
        if delimiter == "auto":
            delimiter = _find_delimiter(path, [line[:_SAMPLE] for line in first])
        if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '\r\n"':
            raise InputError(f'delimiter={delimiter!r} is not allowed; give "auto" or one character')
        self._reader = csv.reader(self._counted(chain(first, lines)), delimiter=delimiter, strict=True)

    def _lines(self, file) -> Iterator[str]:
        number = 0
        try:
            while line := file.readline(self._most + 1):
                number += 1
                if "\0" in line:
                    raise InputError(f"{self._path}, line {number}: there is a NUL byte; tables are text in UTF-8")
                if not line.isascii():
                    _check_utf8(line, f"{self._path}, line {number}")
                if len(line) > self._most:
                    raise InputError(f"{self._path}, line {number}: the line is longer than {self._most} characters")
                yield line
        except _DAMAGE as error:
            what = str(error) or type(error).__name__
            raise InputError(f"{self._path} cannot be read past line {number}: {what}") from None

    def _counted(self, lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            self._n_characters += len(line)
            if self._n_characters - self._begun > self._most:  # quoted cells go on from line to line
                where = f"{self._path}, line {self._reader.line_num + 1}"
                raise InputError(f"{where}: the row that goes on here is longer than {self._most} characters")
            yield line

    def expect(self, n_cells: int) -> None:
        """Tell how many cells records have from now on: what has others is the last that is taken."""
        self._n_cells = n_cells
        if n_cells > self.most_cells // _COLUMN:
            where, most = f"{self._path}, line {self.line + 1}", self.most_cells // _COLUMN
            raise InputError(f"{where}: there are {n_cells:,} columns; allowed are {most:,}")

    def first(self) -> list[str]:
        """The first record that is not blank, left in place; blank ones before it are taken."""
        while raw := self.take(1):
            if raw[0]:
                self.put_back(raw)
                return raw[0]
        raise InputError(f"{self._path} is empty; a table has a row of column names, or rows")

    def take(self, n: int) -> list[list[str]]:
        """The next records: n, or fewer if they are long, or none at the end."""
        raw, self._ahead = self._ahead[:n], self._ahead[n:]
        limit, cells = self._n_characters + CHUNK_TEXT, 0
        try:
            with _long_cells(self._most):
                while len(raw) < n and self._n_characters < limit and (record := next(self._reader, None)) is not None:
                    raw.append(record)
                    self._begun, cells = self._n_characters, cells + len(record)
                    if record and len(record) != (self._n_cells or len(record)):
                        break
                    if cells > self.most_cells and len(raw) > 1:
                        allowed = f"{len(raw):,} rows have {cells:,} cells; allowed at a time are {self.most_cells:,}"
                        raise InputError(f"{self._path}, line {self._reader.line_num}: {allowed}")
        except csv.Error as error:
            raise InputError(f"{self._path}, line {self._reader.line_num}: {error}") from None
        self._before, self.line = self.line, self._reader.line_num - sum(map(_n_lines, self._ahead))
        return raw

    def put_back(self, raw: list[list[str]]) -> None:
        self._ahead = raw + self._ahead
        self.line = self._before

    def chunk(self, names: list[str], raw: list[list[str]]) -> TableChunk:
        """The records just taken, as columns."""
        before = self._before

        def where(row: int) -> str:
            starts = np.cumsum([before + 1] + [_n_lines(record) for record in raw])
            full = [place for place, record in enumerate(raw) if record]
            return f"{self._path}, line {starts[full[row]] if full else before + 1}"

        rows = list(filter(None, raw))
        if set(map(len, rows)) - {len(names)}:
            row = next(i for i, record in enumerate(rows) if len(record) != len(names))
            raise InputError(f"{where(row)}: there are {len(rows[row])} cells for {len(names)} columns")
        columns = zip(*rows) if rows else [()] * len(names)
        return TableChunk({name: TextColumn(cells) for name, cells in zip(names, columns)}, len(rows), where)


@contextmanager
def _long_cells(most: int) -> Iterator[None]:
    """Cells may be as long as lines. Python's limit is one for all readers, so it is put back."""
    before = csv.field_size_limit(most)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _n_lines(record: list[str]) -> int:
    """Lines that a record takes: quoted cells may hold line ends, written in any of the three ways."""
    return 1 + sum(cell.count("\n") + cell.count("\r") - cell.count("\r\n") for cell in record)


def _find_delimiter(path, lines: list[str]) -> str:
    """Tab for .tsv; else the candidate that cuts the first lines into most cells, equally many in each."""
    if {".tsv", ".tab"} & {suffix.lower() for suffix in Path(path).suffixes}:
        return "\t"
    best, width = ",", 1
    for delimiter in ",\t;|":
        try:
            with _long_cells(_SAMPLE):
                records = list(filter(None, csv.reader(lines, delimiter=delimiter)))
        except csv.Error:
            continue
        if len(records) > 1:
            records.pop()  # it may go on beyond these lines
        widths = set(map(len, records))
        if len(widths) == 1 and max(widths) > width:
            best, width = delimiter, max(widths)
    return best
