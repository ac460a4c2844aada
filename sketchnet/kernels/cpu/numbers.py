"""Decimal numbers in text: eight digits at a time, rounded correctly.

A number of up to 19 digits is w * 10**q with a 64-bit w. Where w < 2**53 and |q| <= 22 both factors are doubles, and
one multiplication or division rounds correctly (Clinger 1990). Elsewhere a 128-bit product does (Lemire, "Number
parsing at a gigabyte per second", 2021). What neither decides is a hard token, left to Python.

Text must lie in a buffer whose bytes from the end on are at least PADDING newlines: no token runs past a newline, so
nothing here checks for the end inside a line. The loads of eight bytes assume a little-endian machine.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from sketchnet.kernels.cpu.compile import high_product, kernel

# Inlined by LLVM, after typing, so that a function used twice is not typed twice.
inlined = partial(njit, forceinline=True, nogil=True, error_model="numpy")

PADDING = 32

_u64, _i64, _f64 = np.uint64, np.int64, np.float64
_ZEROS, _CARRY, _HIGH = _u64(0x3030303030303030), _u64(0x7676767676767676), _u64(0x8080808080808080)
_EVEN, _FIRST, _SECOND = _u64(0x000000FF000000FF), _u64(0x000F424000000064), _u64(0x0000271000000001)
_0, _1, _3, _8, _10, _16, _32, _64 = (_u64(i) for i in (0, 1, 3, 8, 10, 16, 32, 64))
_2_53, _MANTISSA = _u64(1 << 53), _u64((1 << 52) - 1)
_MAX_ID = _u64(2**63 - 1)
_TENS = np.array([float(10**i) for i in range(23)])
_POWERS = np.array([10**i for i in range(20)], np.uint64)
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


def _loader(bits, result):
    @intrinsic
    def load(typing_context, address):
        def codegen(context, builder, signature, args):
            return builder.load(builder.inttoptr(args[0], ir.IntType(bits).as_pointer()), align=1)

        return result(types.int64), codegen

    return load


load8, byte = _loader(64, types.uint64), _loader(8, types.uint8)


@inlined
def eight_digits(text, at):
    """(value, count) of the digits at `at`, of which the first eight count."""
    digits = load8(text + at) ^ _ZEROS
    other = ((digits + _CARRY) | digits) & _HIGH  # the lowest byte that is no digit is marked rightly
    count = trailing_zeros(other) >> _3 if other != _0 else _8
    digits = digits << ((_8 - count) << _3) if count != _0 else _0
    digits = digits * _10 + (digits >> _8)
    value = ((digits & _EVEN) * _FIRST + ((digits >> _16) & _EVEN) * _SECOND) >> _32
    return value, _i64(count)


@inlined
def is_digit(c):
    return (c >= 48) & (c <= 57)


@inlined
def ends_token(c):
    return (c == 32) | (c == 10) | (c == 9) | (c == 13) | (c == 35)


@inlined
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


@inlined
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


@inlined
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
