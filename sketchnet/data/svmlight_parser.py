"""Parses blocks of svmlight text into rows, and says where what is wrong."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from sketchnet.checks import check_choice, check_integer
from sketchnet.data.compression import Block
from sketchnet.data.svmlight_rows import TOO_LARGE, Rows
from sketchnet.errors import BeyondColumns, Contradiction, InputError, Setting
from sketchnet.kernels.cpu import svmlight as kernels
from sketchnet.kernels.cpu.threads import over_range

_MAX_ID = 2**63 - 1
_FOREVER = 2**62
_NONE = np.empty(0, np.int64)
_MARK = np.frombuffer(b"\xef\xbb\xbf", np.uint8)  # of UTF-8; some programs put it in front of any text
_MULTI, _FROM_0 = Setting("labels", "multi"), Setting("base", 0)
_NO_LABEL = f"the line has no label, but others have one; {_MULTI} allows rows without any"
_SUMS = [kernels.ROWS, kernels.ENTRIES, kernels.LABELS, kernels.WITH_GROUP, kernels.SKIPPED]
_ENDS = [kernels.ERROR, kernels.ERROR_AT, kernels.END]
_SKIP = {"raise": kernels.SKIP_NONE, "skip": kernels.SKIP_BAD, "skip_malformed": kernels.SKIP_MALFORMED}


class Parser:
    """Parses blocks of one file or of several, keeping what must be the same in all of them.

    `path` and `line` say where a block begins; where the line is not known it is None, and `start` is the byte.
    """

    def __init__(self, n_columns: int | None, base: int | str, labels: str, on_error: str):
        check_choice("base", base, ("auto", 0, 1))
        check_choice("labels", labels, ("auto", "single", "multi", "ignore"))
        check_choice("on_error", on_error, tuple(_SKIP))
        if n_columns is not None:
            check_integer("n_columns", n_columns, 0, 2**63)
        self.base, self.labels, self.n_columns, self.skip = base, labels, n_columns, _SKIP[on_error]
        self.guess_base, self.guess_labels, self.decided = base == "auto", labels == "auto", False
        self.line: int | None = 1
        self.path, self.start, self.skipped = "", 0, 0
        self.zero_seen = self.one_seen = self.several_seen = self.wide = False
        # Where the first row without a label stands; only looked for where labels are guessed.
        self.none_at: str | None = None
        self.groups = kernels.GROUPS_FREE

    def begin(self, path, start: int = 0, line: int | None = 1) -> None:
        """Say where the next block begins."""
        self.path, self.start, self.line = path, start, line

    @property
    def so_far(self) -> dict | None:
        """What the rows so far decided, for a parser that goes on; None before any."""
        if not self.decided:
            return None
        unlabelled = None if self.one_seen or self.several_seen else self.none_at
        return {"base": self.base, "labels": self.labels, "unlabelled": unlabelled, "groups": self.groups}

    def go_on(self, so_far: dict, same_file: bool) -> None:
        """Take what another parser's rows decided. Whether lines have query ids is up to each file."""
        self.base = so_far["base"] if self.guess_base else self.base
        if self.guess_labels:
            self.labels, self.none_at = so_far["labels"], so_far["unlabelled"]
            self.one_seen = self.labels == "single"
            self.several_seen = self.labels == "multi" and self.none_at is None
        self.groups = so_far["groups"] if same_file else kernels.GROUPS_FREE
        self.decided = True

    @property
    def first_id(self) -> int:
        return 0 if self.base == 0 or (self.base == "auto" and self.zero_seen) else 1

    @property
    def ids_allowed(self) -> str:
        return f"{self.first_id} to {self.first_id + (self.n_columns or 0) - 1}"

    def settle(self, rows: Rows) -> bool:
        """Decide what was "auto" by the rows so far. False if the rows must be read again with base 0."""
        if rows.n_rows == 0 and not self.decided:
            return True  # lines without rows decide nothing
        if self.base == "auto":
            if self.zero_seen:
                if self.n_columns is not None and rows.max_id + 1 >= self.n_columns:
                    return False  # as one-based, the largest id was allowed; with base 0 it is an error with a place
                rows.shift()
            self.base = 0 if self.zero_seen else 1
        if self.none_at is not None and self.one_seen and not self.several_seen:
            # More likely a slip than a set of none: it would change what is learnt from all the other rows.
            raise Contradiction(f"{self.none_at}: {_NO_LABEL}", None, _MULTI)
        if self.labels == "auto" and (self.several_seen or self.none_at is not None):
            self.labels = "multi"
        elif self.labels == "auto":
            self.labels = "single"
        self.decided = True
        return True

    def parse(self, block: Block, rows: Rows, further: float | None = 0.0) -> None:
        """Append the block's rows. About so many blocks follow `further` into the same rows, None if unknown."""
        text = block.buffer[: block.size]
        if self.wide:
            rows.widen()
        pieces = over_range(lambda a, b: kernels.count(text, a, b), len(text), len(text))
        pieces = np.array([piece for piece in pieces if piece[0] < piece[1]], np.int64).reshape(-1, 5)
        spans, lines, colons, commas = pieces[:, :2], pieces[:, 2], pieces[:, 3], pieces[:, 4]
        # Every row has a newline, every entry a colon, every further label a comma.
        bounds = np.stack([lines, colons, lines + commas], axis=1)
        out = rows.reserve(bounds.sum(axis=0), further)
        places = rows.end + np.cumsum(bounds, axis=0) - bounds
        if self.groups == kernels.GROUPS_FREE and len(spans):
            first = self._piece(block, (0, block.size), out, places[0], n_rows=1)
            if first[kernels.ROWS]:
                self.groups = kernels.GROUPS_ALL if first[kernels.WITH_GROUP] else kernels.GROUPS_NONE

        def run(a: int, b: int) -> list:
            return [self._piece(block, spans[i], out, places[i]) for i in range(a, b)]

        records = [record for part in over_range(run, len(spans), len(text)) for record in part]
        if any(record[kernels.ERROR] == kernels.WIDE for record in records):
            self.wide = True
            return self.parse(block, rows, further)
        for record in records:
            self.zero_seen |= bool(record[kernels.ZERO_AT] >= 0)
            self._check(block, record)
        self.skipped += sum(int(record[kernels.SKIPPED]) for record in records)
        before = rows.n_rows
        for place, record in zip(places, records):
            rows.close_gap(place, record[: kernels.MAX_ID])
            rows.max_id = max(rows.max_id, int(record[kernels.MAX_ID]))
        if self.guess_labels:
            others = [int(record[kernels.SEVERAL_AT]) for record in records if record[kernels.SEVERAL_AT] >= 0]
            if others:
                self._note_labels(block, min(others), rows.label_counts(before))
            else:
                self.one_seen |= rows.n_rows > before
        self.start = block.end
        if self.line is not None:
            self.line += int(lines.sum())

    def _note_labels(self, block: Block, at: int, counts: np.ndarray) -> None:
        """Remember how many labels rows have. The first with other than one stands at `at`."""
        self.one_seen |= bool((counts == 1).any())
        self.several_seen |= bool((counts > 1).any())
        if self.none_at is None and counts[counts != 1][0] == 0:  # behind one with several, it would be no error
            self.none_at = self._place(block, at)

    def _piece(self, block: Block, span, out, place, n_rows: int = _FOREVER) -> np.ndarray:
        """Parse a span of the block, asking Python for the numbers that the kernel finds hard."""
        max_column = _MAX_ID if self.n_columns is None else self.n_columns - 1
        labels = {"single": kernels.LABELS_ONE, "ignore": kernels.LABELS_IGNORED}.get(self.labels, kernels.LABELS_ANY)
        labels = kernels.LABELS_ANY if self.guess_labels else labels
        rules = (0 if self.base == 0 else 1, max_column, self.guess_base, labels, self.groups, self.skip)
        address = block.buffer.ctypes.data
        at, stop = (int(x) for x in span)
        total, record, hard = np.full(12, -1, np.int64), np.empty(12, np.int64), np.empty((256, 4), np.int64)
        total[_SUMS] = 0
        while True:
            row, entry, label = (int(x) for x in place + total[:3])
            rest = (*rules, n_rows - int(total[kernels.ROWS]))
            kernels.parse(address, at, stop, out, row, entry, label, rest, hard, _NONE, record)
            if record[kernels.ERROR] == kernels.FULL:  # one line has more hard numbers than the list
                hard = np.empty((4 * len(hard), 4), np.int64)
                continue
            too_large = _convert(block.buffer, hard[: record[kernels.HARD]], out)
            if len(too_large):
                end = int(record[kernels.END])
                kernels.parse(address, at, end, out, row, entry, label, rest, hard, too_large, record)
                _convert(block.buffer, hard[: record[kernels.HARD]], out)
            total[_SUMS] += record[_SUMS]
            total[kernels.MAX_ID] = max(total[kernels.MAX_ID], record[kernels.MAX_ID])
            for field in (kernels.ZERO_AT, kernels.SEVERAL_AT):
                total[field] = record[field] if total[field] < 0 else total[field]
            total[_ENDS] = record[_ENDS]
            at = int(record[kernels.END])
            if record[kernels.ERROR] or at >= stop or total[kernels.ROWS] >= n_rows:
                return total

    def _check(self, block: Block, record: np.ndarray) -> None:
        """Raise for the first thing wrong in a piece."""
        wrong = []
        if record[kernels.ERROR]:
            wrong.append((int(record[kernels.ERROR_AT]), int(record[kernels.ERROR])))
        if self.decided and self.base == 1 and record[kernels.ZERO_AT] >= 0:
            wrong.append((int(record[kernels.ZERO_AT]), kernels.ZERO_ID))
        if self.decided and self.labels == "single" and record[kernels.SEVERAL_AT] >= 0:
            wrong.append((int(record[kernels.SEVERAL_AT]), kernels.SEVERAL))
        if wrong:
            at, error = min(wrong)
            at, message = _describe(block.buffer, at, error, self)
            message = f"{self._place(block, at)}: {message}"
            digits = re.match(rb"[0-9]+", block.buffer[at : at + 1000].tobytes())
            if error == kernels.HIGH_ID and digits:
                raise BeyondColumns(message, int(digits[0]) + 1 - self.first_id)
            if error == kernels.ZERO_ID and self.guess_base:
                raise Contradiction(message, {"base": 0}, _FROM_0)
            if error == kernels.SEVERAL and self.guess_labels:  # one without any may be among others with several
                raise Contradiction(message, None if message.endswith(_NO_LABEL) else {"labels": "multi"}, _MULTI)
            raise InputError(message, _MULTI, _FROM_0)

    def _place(self, block: Block, at: int) -> str:
        """File, line and column of a byte of the block."""
        if self.line is None:
            return f"{self.path}: byte {self.start + at}"
        before = block.buffer[:at].tobytes()
        return f"{self.path}:{self.line + before.count(10)}:{at - before.rfind(10)}"


def unmarked(block: Block, line: int | None) -> Block:
    """The block without a byte order mark, if it begins with a file's line 1, or with an empty line before that."""
    if line is None:
        return block
    ahead = 1 - line  # 1 for standard input, which comes with an empty line in front
    size = len(_MARK)
    if ahead < 0 or not np.array_equal(block.buffer[ahead : ahead + size], _MARK):
        return block
    block.buffer[size : size + ahead] = block.buffer[:ahead].copy()
    return replace(block, buffer=block.buffer[size:], size=block.size - size)


def _convert(buffer: np.ndarray, hard: np.ndarray, out) -> np.ndarray:
    """Put the hard numbers into their places; returns the positions of those too large for their type."""
    too_large = []
    for is_label, index, start, end in hard.tolist():
        array, value = (out[3] if is_label else out[2]), float(buffer[start:end].tobytes())
        if abs(value) < TOO_LARGE[array.dtype]:
            array[index] = value
        else:
            too_large.append(start)
    return np.array(too_large, np.int64)


def _describe(buffer: np.ndarray, at: int, error: int, parser: Parser) -> tuple[int, str]:
    """Where to point, and what to say."""
    field = re.split(rb"[ \t\r\n#]", buffer[at : at + 1000].tobytes(), maxsplit=1)[0]
    stray = re.search(rb"[^!-~]", field)
    if stray:
        return at + stray.start(), f"byte 0x{stray[0][0]:02x} is not allowed outside comments"
    part = field.split(b":")[0].split(b",")[0] if error != kernels.BAD_VALUE else field
    given = repr(part[:40].decode("ascii") + ("..." if len(part) > 40 else ""))
    if error == kernels.BAD_FEATURE and b":" not in field:
        return at, f"{given} has no colon; allowed is id:value"
    if error == kernels.SEVERAL and b":" in field and parser.guess_labels:
        return at, _NO_LABEL
    return at, {
        kernels.BAD_LABEL: f"label {given} is not a finite decimal number",
        kernels.SEVERAL: f"the line has no label or several; allowed is one; {_MULTI} allows any number",
        kernels.BAD_FEATURE: f"id {given} is not a whole number from 0 to 2**63 - 1",
        kernels.LARGE_ID: f"id {given} is too large; allowed are 0 to 2**63 - 1",
        kernels.ZERO_ID: f"id 0 in a file whose ids begin at 1; if they begin at 0, give {_FROM_0}",
        kernels.HIGH_ID: f"id {given} is too large; allowed are {parser.ids_allowed}",
        kernels.BAD_VALUE: f"value {given} is not a finite decimal number",
        kernels.LARGE_VALUE: f"number {given} is too large for its type",
        kernels.BAD_RETURN: "carriage return inside a line; lines end in a newline",
        kernels.BAD_GROUP: f"{field[:40].decode('ascii')!r} is no query id; allowed is qid: and a whole number",
        kernels.LATE_GROUP: "the query id must stand once, right after the label",
        kernels.NO_GROUP: "the line has no query id, but the first row has one",
        kernels.NEW_GROUP: "the line has a query id, but the first row has none",
    }[error]
