"""Parsing svmlight text into the arrays of CSR rows. `numbers.py` says how the text's buffer must end."""

from __future__ import annotations

import numpy as np

from sketchnet.kernels.cpu.compile import kernel
from sketchnet.kernels.cpu.numbers import (
    after_blanks,
    any_number,
    byte,
    eight_digits,
    ends_token,
    is_digit,
    load8,
    number,
    whole_number,
)

# Fields of the record that `parse` fills. Positions are -1 where there is nothing to tell.
ROWS, ENTRIES, LABELS, MAX_ID, ZERO_AT, SEVERAL_AT, WITH_GROUP, SKIPPED, HARD, ERROR, ERROR_AT, END = range(12)

# What can be wrong with a line.
BAD_LABEL, SEVERAL, BAD_FEATURE, LARGE_ID, ZERO_ID, HIGH_ID, BAD_VALUE, LARGE_VALUE, BAD_RETURN = range(1, 10)
BAD_GROUP, LATE_GROUP, NO_GROUP, NEW_GROUP = range(10, 14)

# No fault of the line: the list of hard numbers is full; an id needs wider integers than those of `indices`.
FULL, WIDE = range(14, 16)

# Whether lines must have a query id, must not, or may.
GROUPS_FREE, GROUPS_ALL, GROUPS_NONE = range(3)

# Whether a row must have one label, may have any number, or has what nobody looks at.
LABELS_ONE, LABELS_ANY, LABELS_IGNORED = range(3)

# Whether bad lines are errors, are left out, or only those that are malformed are: not for an id beyond the columns.
SKIP_NONE, SKIP_BAD, SKIP_MALFORMED = range(3)

_u64, _i64 = np.uint64, np.int64
_QID = _u64(int.from_bytes(b"qid:", "little"))


@kernel
def count(text, start, stop):
    """(start, stop, newlines, colons, commas) of the lines that begin in [start, stop): bounds on what they hold."""
    size = text.shape[0]
    while start > 0 and start < size and text[start - 1] != 10:
        start += 1
    while stop < size and text[stop - 1] != 10:
        stop += 1
    start = min(start, stop)
    lines, colons, commas = 0, 0, 0
    at = start
    while at + 128 <= stop:  # so few that the counts fit a byte, for the widest vectors
        a, b, c = np.uint8(0), np.uint8(0), np.uint8(0)
        for x in text[at : at + 128]:
            a = np.uint8(a + np.uint8(x == 10))
            b = np.uint8(b + np.uint8(x == 58))
            c = np.uint8(c + np.uint8(x == 44))
        lines, colons, commas, at = lines + a, colons + b, commas + c, at + 128
    for x in text[at:stop]:
        lines += x == 10
        colons += x == 58
        commas += x == 44
    return start, stop, lines, colons, commas


@kernel
def _overflows(too_large, at):
    """Whether the hard token at `at` is known to be too large for its type."""
    i = np.searchsorted(too_large, at)
    return i < too_large.shape[0] and too_large[i] == at


@kernel
def _labels(text, at, labels, label, hard, n_hard, too_large):
    """Parse a list of labels; returns (position, labels, hard tokens, error)."""
    while True:
        value, end = any_number(text, at)
        if end < 0 or not (ends_token(byte(text + end)) or byte(text + end) == 44):
            return at, label, n_hard, BAD_LABEL
        if value != value:
            if n_hard == hard.shape[0]:
                return at, label, n_hard, FULL
            if _overflows(too_large, at):
                return at, label, n_hard, LARGE_VALUE
            hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = 1, label, at, end
            n_hard += 1
        labels[label] = value
        label += 1
        if byte(text + end) != 44:
            return end, label, n_hard, 0
        at = end + 1


@kernel
def _after_label(text, at):
    """The end of whatever stands in place of a label at `at`, or `at` itself if an entry or a query id stands there.

    Numbers before a colon are meant for an id, even if they are none.
    """
    if load8(text + at) & _u64(0xFFFFFFFF) == _QID:
        return at
    start, is_word = at, False
    while True:
        c = byte(text + at)
        if (ends_token(c) and c != 35) or (c == 35 and not is_word):
            return at
        if c == 58 and not is_word:
            return start
        is_word |= not (is_digit(c) or (c >= 43 and c <= 46))  # + , - .
        at += 1


@kernel
def _largest(indices):
    """The largest column for the array: of 32 bits, one less than fits, should the ids turn out to be zero-based."""
    return _i64(0x7FFFFFFE) if indices.itemsize == 4 else _i64(0x7FFFFFFFFFFFFFFF)


@kernel
def _features(text, at, indices, values, entry, base, limits, hard, n_hard, too_large):
    """Parse ids and values to the end of the line; returns (position, entries, hard tokens, error).

    `limits` has the largest column allowed, the largest seen, and the position of the first id below the base, or -1;
    if it is -2, no such id is allowed.
    """
    narrow = values.dtype.type
    max_column, high, zero_at = min(limits[0], _largest(indices)), limits[1], limits[2]
    while True:
        c = byte(text + at)
        while c == 32 or c == 9:
            at += 1
            c = byte(text + at)
        if c == 10 or c == 35:
            break
        if c == 13:
            if byte(text + at + 1) == 10:
                break
            return at, entry, n_hard, BAD_RETURN
        column, n = eight_digits(text, at)
        end = at + n
        if n == 8:
            column, end = whole_number(text, at)
        if n == 0 or end < 0 or byte(text + end) != 58:
            late = load8(text + at) & _u64(0xFFFFFFFF) == _QID
            return at, entry, n_hard, LARGE_ID if end == -2 else (LATE_GROUP if late else BAD_FEATURE)
        value, stop = number(text, end + 1)
        if stop < 0 or not ends_token(byte(text + stop)):
            return end + 1, entry, n_hard, BAD_VALUE
        stored = narrow(value)
        if stored - stored != 0:  # infinite in this precision, or hard
            if n_hard == hard.shape[0]:
                return end + 1, entry, n_hard, FULL
            if value == value or _overflows(too_large, end + 1):
                return end + 1, entry, n_hard, LARGE_VALUE
            hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = 0, entry, end + 1, stop
            n_hard += 1
        found = _i64(column) - base
        if found < 0:
            if zero_at == -2:
                return at, entry, n_hard, ZERO_ID
            zero_at = at if zero_at < 0 else zero_at
        if found > max_column:
            return at, entry, n_hard, HIGH_ID if found > limits[0] else WIDE
        high = max(high, found)
        indices[entry] = found
        values[entry] = stored
        entry += 1
        at = stop
    limits[1], limits[2] = high, zero_at
    return at, entry, n_hard, 0


@kernel
def _group(text, at):
    """(query id, end) of a field "qid:n"; end is -1 if it is malformed."""
    c = byte(text + at + 4)
    value, end = whole_number(text, at + 5 if c == 43 or c == 45 else at + 4)
    if end < 0 or not ends_token(byte(text + end)):
        return _i64(0), _i64(-1)
    return (-_i64(value) if c == 45 else _i64(value)), end


@kernel
def parse(text, start, stop, out, row, entry, label, rules, hard, too_large, record):
    """Parse the lines in [start, stop), text being their address, into the arrays `out` from the given places on.

    `rules` are (base, largest column, whether ids may be below the base, one of LABELS_*, one of GROUPS_*, one of
    SKIP_*, rows at most). Hard tokens are listed as (1 for labels or 0 for values,
    index there, position, end); the kernel returns early when `hard` is full. `too_large` has the positions of hard
    tokens that are known to overflow, ascending.
    """
    indptr, indices, values, labels, label_indptr, groups = out
    base, max_column, zero_allowed, label_rule, group_rule, skip_rule, max_rows = rules
    row0, entry0, label0, n_hard, skipped, with_group, several_at = row, entry, label, 0, 0, 0, _i64(-1)
    limits = np.array([max_column, -1, -1 if zero_allowed else -2])
    max_seen, zero_at = limits[1], limits[2]
    error, error_at, at = 0, _i64(-1), _i64(start)
    while at < stop and row - row0 < max_rows:
        line = at
        at = after_blanks(text, at)
        c, first = byte(text + at), at
        if not (c == 10 or c == 35 or (c == 13 and byte(text + at + 1) == 10)):
            e, k, h, group, has_group, error = entry, label, n_hard, _i64(0), False, 0
            if label_rule == LABELS_IGNORED:
                at = _after_label(text, first)
            else:
                while not ends_token(byte(text + at)) and byte(text + at) != 58:
                    at += 1
                if byte(text + at) == 58:
                    at = first  # the first field is no label but a feature
                else:
                    at, k, h, error = _labels(text, first, labels, k, hard, h, too_large)
            if error == 0:
                here = after_blanks(text, at)
                if load8(text + here) & _u64(0xFFFFFFFF) == _QID:
                    group, at = _group(text, here)
                    has_group = True
                    if at < 0:
                        at, error = here, BAD_GROUP
            if error == 0:
                at, e, h, error = _features(text, at, indices, values, e, base, limits, hard, h, too_large)
            if error == 0:
                if k - label != 1 and label_rule == LABELS_ONE:
                    error, at = SEVERAL, first
                elif group_rule == GROUPS_ALL and not has_group:
                    error, at = NO_GROUP, first
                elif group_rule == GROUPS_NONE and has_group:
                    error, at = NEW_GROUP, first
            if error == FULL and n_hard > 0:  # the caller empties the list and goes on from this line
                error, at = 0, line
                break
            if error != 0:
                error_at = at
                if error >= FULL or skip_rule == SKIP_NONE or (skip_rule == SKIP_MALFORMED and error == HIGH_ID):
                    break
                skipped, error = skipped + 1, 0
                limits[1], limits[2] = max_seen, zero_at
            else:
                if k - label != 1 and several_at < 0:
                    several_at = first
                entry, label, n_hard, max_seen, zero_at = e, k, h, limits[1], limits[2]
                indptr[row + 1], label_indptr[row + 1], groups[row] = entry, label, group
                with_group += has_group
                row += 1
        while byte(text + at) != 10:
            at += 1
        at += 1
    record[ROWS], record[ENTRIES], record[LABELS] = row - row0, entry - entry0, label - label0
    record[MAX_ID], record[ZERO_AT], record[SEVERAL_AT] = max_seen, zero_at, several_at
    record[WITH_GROUP], record[SKIPPED], record[HARD] = with_group, skipped, n_hard
    record[ERROR], record[ERROR_AT], record[END] = error, error_at, at
