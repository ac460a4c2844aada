"""Parsing svmlight text: eight digits at a time, every number rounded correctly.

A number of up to 19 digits is w * 10**q with a 64-bit w. Where w < 2**53 and |q| <= 22 both factors are doubles, and
one multiplication or division rounds correctly (Clinger 1990). Elsewhere a 128-bit product does (Lemire, "Number
parsing at a gigabyte per second", 2021). What neither decides is a hard token: the kernel lists it for Python.

Text must lie in a buffer whose bytes from the end on are at least PADDING newlines: no token runs past a newline, so
nothing here checks for the end inside a line. The loads of eight bytes assume a little-endian machine.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from sketchnet.kernels.cpu.compile import kernel

# Inlined by LLVM, after typing, so that a function used twice is not typed twice.
inlined = partial(njit, forceinline=True, nogil=True, error_model="numpy")

PADDING = 32

# Fields of the record that `parse` fills. Positions are -1 where there is nothing to tell.
ROWS, ENTRIES, LABELS, MAX_ID, ZERO_AT, SEVERAL_AT, WITH_GROUP, SKIPPED, HARD, ERROR, ERROR_AT, END = range(12)

# What can be wrong with a line.
BAD_LABEL, SEVERAL, BAD_FEATURE, LARGE_ID, ZERO_ID, HIGH_ID, BAD_VALUE, LARGE_VALUE, BAD_RETURN = range(1, 10)
BAD_GROUP, LATE_GROUP, NO_GROUP, NEW_GROUP, FULL = range(10, 15)

# Whether lines must have a query id, must not, or may.
GROUPS_FREE, GROUPS_ALL, GROUPS_NONE = range(3)

_u64, _i64, _f64 = np.uint64, np.int64, np.float64
_ZEROS, _CARRY, _HIGH = _u64(0x3030303030303030), _u64(0x7676767676767676), _u64(0x8080808080808080)
_EVEN, _FIRST, _SECOND = _u64(0x000000FF000000FF), _u64(0x000F424000000064), _u64(0x0000271000000001)
_0, _1, _3, _8, _10, _16, _32, _64 = (_u64(i) for i in (0, 1, 3, 8, 10, 16, 32, 64))
_2_53, _MANTISSA = _u64(1 << 53), _u64((1 << 52) - 1)
_MAX_ID = _u64(2**63 - 1)
_TENS = np.array([float(10**i) for i in range(23)])
_POWERS = np.array([10**i for i in range(20)], np.uint64)
_QID = _u64(int.from_bytes(b"qid:", "little"))
_QMIN, _QMAX = -290, 270  # within, 19 digits can neither overflow nor become subnormal


def _leading_bits(q: int) -> int:
    """The 128 leading bits of 5**q: rounded down, except where the exact quotient is short, as the method asks."""
    if q >= 0:
        return (5**q << 128) >> (5**q).bit_length()
    power = 5**-q
    return (1 << (power.bit_length() + 127)) // power + (1 if q >= -27 else 0)


_FIVES = np.array([divmod(_leading_bits(q), 2**64) for q in range(_QMIN, _QMAX + 1)], np.uint64)


def _unary(name):
    @intrinsic
    def operation(typing_context, x):
        def codegen(context, builder, signature, args):
            return getattr(builder, name)(args[0], ir.Constant(ir.IntType(1), 0))

        return types.uint64(types.uint64), codegen

    return operation


trailing_zeros, leading_zeros = _unary("cttz"), _unary("ctlz")


@intrinsic
def high_product(typing_context, x, y):
    """The upper half of the 128-bit product."""

    def codegen(context, builder, signature, args):
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


def _loader(bits, result):
    @intrinsic
    def load(typing_context, address):
        def codegen(context, builder, signature, args):
            return builder.load(builder.inttoptr(args[0], ir.IntType(bits).as_pointer()), align=1)

        return result(types.int64), codegen

    return load


load8, byte = _loader(64, types.uint64), _loader(8, types.uint8)


@inlined()
def eight_digits(text, at):
    """(value, count) of the digits at `at`, of which the first eight count."""
    digits = load8(text + at) ^ _ZEROS
    other = ((digits + _CARRY) | digits) & _HIGH  # the lowest byte that is no digit is marked rightly
    count = trailing_zeros(other) >> _3 if other != _0 else _8
    digits = digits << ((_8 - count) << _3) if count != _0 else _0
    digits = digits * _10 + (digits >> _8)
    value = ((digits & _EVEN) * _FIRST + ((digits >> _16) & _EVEN) * _SECOND) >> _32
    return value, _i64(count)


@inlined()
def is_digit(c):
    return (c >= 48) & (c <= 57)


@inlined()
def ends_token(c):
    return (c == 32) | (c == 10) | (c == 9) | (c == 13) | (c == 35)


@inlined()
def after_blanks(text, at):
    while byte(text + at) == 32 or byte(text + at) == 9:
        at += 1
    return at


@kernel
def product_with_power(w, q):
    """The double nearest to w * 10**q, or -1 if that is not certain. For w > 0 and _QMIN <= q <= _QMAX."""
    shift = leading_zeros(w)
    w = w << shift
    row = q - _QMIN
    high, low = high_product(w, _FIVES[row, 0]), w * _FIVES[row, 0]
    if high & _u64(0x1FF) == _u64(0x1FF):
        more = high_product(w, _FIVES[row, 1])
        low += more
        high += _1 if low < more else _0
    if low == ~_0:
        return -1.0
    upper = high >> _u64(63)
    mantissa = high >> (upper + _u64(9))
    exponent = ((_i64(217706) * q) >> 16) + 63 + _i64(upper) - _i64(shift) + 1023
    if exponent <= 0 or exponent >= 2046:
        return -1.0
    if low <= _1 and q >= -4 and q <= 23 and mantissa & _3 == _1 and mantissa << (upper + _u64(9)) == high:
        mantissa = mantissa & ~_1  # exactly halfway: to even
    mantissa = (mantissa + (mantissa & _1)) >> _1
    if mantissa >= _2_53:
        mantissa = mantissa >> _1
        exponent += 1
    return _u64((mantissa & _MANTISSA) | (_u64(exponent) << _u64(52))).view(np.float64)


@inlined()
def scaled(w, q):
    """The double nearest to w * 10**q, or -1 if that is not certain."""
    if w < _2_53 and q >= -22 and q <= 22:
        return _f64(w) / _TENS[-q] if q <= 0 else _f64(w) * _TENS[q]
    if w == _0:
        return 0.0
    if q < _QMIN or q > _QMAX:
        return -1.0
    return product_with_power(w, q)


@kernel
def any_number(text, at):
    """(value, end) of a number of any length; end is -1 if it is none, value is NaN if it is hard."""
    c = byte(text + at)
    negative = c == 45
    if c == 45 or c == 43:
        at += 1
    w, q, kept, seen, dot = _0, _i64(0), 0, False, False
    exact = True
    while True:
        c = byte(text + at)
        if is_digit(c):
            seen = True
            if kept == 19:  # the digits that do not fit may all be zero
                exact = exact and c == 48
                q += 0 if dot else 1
            else:
                w = w * _10 + _u64(c - 48)
                kept += 1 if w != _0 else 0
                q -= 1 if dot else 0
        elif c == 46 and not dot:
            dot = True
        else:
            break
        at += 1
    if not seen:
        return 0.0, _i64(-1)
    if c | 32 == 101:  # e or E
        c = byte(text + at + 1)
        at += 2 if c == 45 or c == 43 else 1
        if not is_digit(byte(text + at)):
            return 0.0, _i64(-1)
        power = _i64(0)
        while is_digit(byte(text + at)):
            power = min(power * 10 + _i64(byte(text + at) - 48), _i64(1) << 55)  # stays large, cannot wrap
            at += 1
        q += -power if c == 45 else power
    value = scaled(w, q) if exact else -1.0
    if value < 0:
        return np.nan, at
    return (-value if negative else value), at


@inlined()
def number(text, at):
    """The same, quick for the common shape: some digits, perhaps a point and some more."""
    start = at
    negative = byte(text + at) == 45
    if negative:
        at += 1
    w, n = _u64(byte(text + at)) - _u64(48), _i64(1)
    if w > _u64(9) or byte(text + at + 1) != 46:  # else one digit and a point, which needs no search
        w, n = eight_digits(text, at)
    end = at + n
    m = _i64(0)
    if byte(text + end) == 46:
        end += 1
        fraction, k = eight_digits(text, end)
        w, m = w * _POWERS[k] + fraction, k
        while k == 8 and n + m <= 11:
            fraction, k = eight_digits(text, end + m)
            w, m = w * _POWERS[k] + fraction, m + k
        end += m
    if n + m > 0 and n < 8 and ends_token(byte(text + end)):
        value = scaled(w, -m)
        if value >= 0:
            return (-value if negative else value), end
    return any_number(text, start)


@kernel
def whole_number(text, at):
    """(value, end) of a whole number; end is -1 if there is no digit, -2 if it exceeds 2**63 - 1."""
    if not is_digit(byte(text + at)):
        return _0, _i64(-1)
    value = _0
    while is_digit(byte(text + at)):
        digit = _u64(byte(text + at) - 48)
        if value > (_MAX_ID - digit) // _10:
            return _0, _i64(-2)
        value = value * _10 + digit
        at += 1
    return value, at


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
def _features(text, at, indices, values, entry, base, limits, hard, n_hard, too_large):
    """Parse ids and values to the end of the line; returns (position, entries, hard tokens, error).

    `limits` has the largest column allowed, the largest seen, and the position of the first id below the base, or -1;
    if it is -2, no such id is allowed.
    """
    narrow = values.dtype.type
    max_column, high, zero_at = limits[0], limits[1], limits[2]
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
            return at, entry, n_hard, HIGH_ID
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

    `rules` are (base, largest column, whether ids may be below the base, whether a row may have other than one label,
    one of GROUPS_*, whether to skip bad lines, rows at most). Hard tokens are listed as (1 for labels or 0 for values,
    index there, position, end); the kernel returns early when `hard` is full. `too_large` has the positions of hard
    tokens that are known to overflow, ascending.
    """
    indptr, indices, values, labels, label_indptr, groups = out
    base, max_column, zero_allowed, several_allowed, group_rule, skip, max_rows = rules
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
                if k - label != 1 and not several_allowed:
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
                if error == FULL or not skip:
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
