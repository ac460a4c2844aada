"""Entries of projection matrices, drawn by the counter layout of `sketchnet.random`."""

from __future__ import annotations

import numpy as np

from sketchnet import random
from sketchnet.kernels.cpu.compile import inlined, kernel
from sketchnet.kernels.cpu.threads import over_range

philox4x32 = inlined(random.philox4x32)
hash64 = inlined(random.hash64)
bucket_of = inlined(random.bucket_of)
sign_bit_of = inlined(random.sign_bit_of)

_f32, _i32, _u32, _u64 = np.float32, np.int32, np.uint32, np.uint64
_MASK24, _MASK32, _40, _32, _1 = _u64(0xFFFFFF), _u64(0xFFFFFFFF), _u64(40), _u64(32), _u64(1)
_QUADRANT = _f32(np.pi / 2 / 2**30)


@inlined
def radius(word):
    """sqrt(-2 ln u) for the uniform u of a word. The logarithm is Cephes' logf, in a form that vectorises."""
    u = np.float32(_f32(_u32(word)) * _f32(2.0**-32) + _f32(2.0**-33))
    bits = u.view(np.int32)
    exponent = _i32(_i32(bits - _i32(0x3F3504F3)) >> _i32(23))
    mantissa = np.int32(bits - _i32(exponent << _i32(23)))  # in [sqrt(1/2), sqrt(2))
    x = mantissa.view(np.float32) - _f32(1)
    x2 = x * x
    y = _f32(7.0376836292e-2)
    y = y * x + _f32(-1.1514610310e-1)
    y = y * x + _f32(1.1676998740e-1)
    y = y * x + _f32(-1.2420140846e-1)
    y = y * x + _f32(1.4249322787e-1)
    y = y * x + _f32(-1.6668057665e-1)
    y = y * x + _f32(2.0000714765e-1)
    y = y * x + _f32(-2.4999993993e-1)
    y = y * x + _f32(3.3333331174e-1)
    e = _f32(exponent)
    log = (x + (y * x * x2 + e * _f32(-2.12194440e-4) - _f32(0.5) * x2)) + e * _f32(0.693359375)
    return np.sqrt(_f32(-2) * log)


@inlined
def cosine_and_sine(word):
    """cos and sin of 2 pi word / 2**32: exact reduction to an eighth of a turn, then Cephes' cosf and sinf."""
    w = _u32(word)
    quadrant = _u32(_u32(w + _u32(1 << 29)) >> _u32(30))
    x = _f32(_i32(w - _u32(quadrant << _u32(30)))) * _QUADRANT
    x2 = x * x
    s = ((_f32(-1.9515295891e-4) * x2 + _f32(8.3321608736e-3)) * x2 + _f32(-1.6666654611e-1)) * x2 * x + x
    c = (_f32(2.443315711809948e-5) * x2 + _f32(-1.388731625493765e-3)) * x2 + _f32(4.166664568298827e-2)
    c = c * x2 * x2 - _f32(0.5) * x2 + _f32(1)
    odd = (quadrant & _u32(1)) == _u32(1)
    cosine = s if odd else c
    sine = c if odd else s
    return (-cosine if quadrant == _u32(1) or quadrant == _u32(2) else cosine), (-sine if quadrant >= _u32(2) else sine)


@kernel
def _normals(k0, k1, stream, rows, first, out, start, stop):
    block = _u64(first) // _u64(4)
    for r in range(start, stop):
        lo, hi = _u64(rows[r]) & _MASK32, _u64(rows[r]) >> _32
        row = out[r]
        for b in range(out.shape[1] // 4):
            w0, w1, w2, w3 = philox4x32(lo, hi, block + _u64(b), stream, k0, k1)
            r0, r1 = radius(w0), radius(w2)
            c0, s0 = cosine_and_sine(w1)
            c1, s1 = cosine_and_sine(w3)
            row[4 * b] = r0 * c0
            row[4 * b + 1] = r0 * s0
            row[4 * b + 2] = r1 * c1
            row[4 * b + 3] = r1 * s1


@inlined
def sign_of(word, below_plus, below_minus):
    return _f32(1) if word < below_plus else (_f32(-1) if word < below_minus else _f32(0))


@kernel
def _signs(k0, k1, stream, rows, first, below_plus, below_minus, out, start, stop):
    block = _u64(first) // _u64(4)
    for r in range(start, stop):
        lo, hi = _u64(rows[r]) & _MASK32, _u64(rows[r]) >> _32
        row = out[r]
        for b in range(out.shape[1] // 4):
            w0, w1, w2, w3 = philox4x32(lo, hi, block + _u64(b), stream, k0, k1)
            row[4 * b] = sign_of(w0, below_plus, below_minus)
            row[4 * b + 1] = sign_of(w1, below_plus, below_minus)
            row[4 * b + 2] = sign_of(w2, below_plus, below_minus)
            row[4 * b + 3] = sign_of(w3, below_plus, below_minus)


@inlined
def digit(word, thresholds, level):
    """Number of thresholds of a level that do not exceed `word`, by a search without unpredictable branches."""
    n = thresholds.shape[1]
    if word >= thresholds[level, n - 1]:
        return n
    low = 0
    while n > 1:
        half = n >> 1
        low = low + half if thresholds[level, low + half - 1] <= word else low
        n -= half
    return low


@kernel
def _skips(k0, k1, stream, rows, width, thresholds, indptr, codes, start, stop):
    """Fills indptr[r + 1] with the number of non-zeros of row r; returns their codes."""
    levels, base = thresholds.shape
    most = _u64(width) // _u64(base)
    n = 0
    for r in range(start, stop):
        lo, hi = _u64(rows[r]) & _MASK32, _u64(rows[r]) >> _32
        column, draw, before = _u64(0), _u64(0), n
        w = (_u64(0), _u64(0), _u64(0), _u64(0))
        while column < _u64(width):
            gap, sign, beyond = _u64(0), _u64(0), False
            for level in range(levels):  # digits of the gap, the highest first
                if draw & _1 == _u64(0):
                    w = philox4x32(lo, hi, draw >> _1, stream, k0, k1)
                    word = w[0] | (w[1] << _32)
                else:
                    word = w[2] | (w[3] << _32)
                draw += _1
                if level == 0:
                    sign = word & _1
                this = digit(word >> _1, thresholds, level)
                beyond = beyond or this == base or gap > most  # beyond the row, and soon beyond 64 bits
                gap = gap * _u64(base) + _u64(this)
            if beyond or gap >= _u64(width) - column:
                break
            column += gap
            if n == codes.shape[0]:
                longer = np.empty(2 * n + 64, codes.dtype)
                longer[:n] = codes
                codes = longer
            codes[n] = ~np.int64(column) if sign == _1 else np.int64(column)
            n += 1
            column += _1
        indptr[r + 1] = n - before
    return codes[:n]


@kernel
def _buckets(multiplier, offset, rows, k, codes, start, stop):
    for r in range(start, stop):
        h = hash64(_u64(rows[r]), multiplier, offset)
        bucket = np.int64(bucket_of(h, k))
        codes[r] = ~bucket if sign_bit_of(h) == _1 else bucket


@kernel
def _states(multiplier, offset, place, first, second, out_first, out_second):
    number = first.dtype.type
    for i in range(len(second)):
        h = hash64(place + _u64(i), multiplier, offset)
        out_first[i] = number(_i32(h >> _40)) * number(2.0**-24) < first[i]
        out_second[i] = number(_i32(h & _MASK24)) * number(2.0**-24) < second[i]
    for i in range(len(second), len(first)):
        h = hash64(place + _u64(i), multiplier, offset)
        out_first[i] = number(_i32(h >> _40)) * number(2.0**-24) < first[i]


def draw_normals(seed: int, stream: int, rows: np.ndarray, first: int, out: np.ndarray) -> None:
    """out[r, j] = standard normal of entry (rows[r], first + j); `first` and the width are multiples of four."""
    k0, k1 = random.split_seed(seed)
    over_range(lambda a, b: _normals(k0, k1, _u64(stream), rows, first, out, a, b), len(rows), 4 * out.size)


def draw_signs(seed: int, stream: int, rows: np.ndarray, first: int, s: int, out: np.ndarray) -> None:
    """out[r, j] = +1, -1 or 0 with probabilities 1/2s, 1/2s, 1 - 1/s; `first` and the width are multiples of four."""
    k0, k1 = random.split_seed(seed)
    plus, minus = _u64(2**32 // (2 * s)), _u64(2**32 // s)
    over_range(lambda a, b: _signs(k0, k1, _u64(stream), rows, first, plus, minus, out, a, b), len(rows), out.size)


def draw_skips(seed: int, stream: int, rows: np.ndarray, width: int, thresholds: np.ndarray, per_row: float):
    """Rows of independent signs, as CSR (indptr, codes); a code is the column, or ~column where the sign is -1.

    `thresholds` come from `random.skip_thresholds`; `per_row` non-zeros are expected.
    """
    k0, k1 = random.split_seed(seed)
    indptr = np.zeros(len(rows) + 1, np.int64)

    def piece(start, stop):
        expected = (stop - start) * per_row
        empty = np.empty(int(expected + 6 * expected**0.5) + 64, _code_dtype(width))
        return _skips(k0, k1, _u64(stream), rows, _u64(width), thresholds, indptr, empty, start, stop)

    pieces = over_range(piece, len(rows), 100 * len(rows))
    np.cumsum(indptr, out=indptr)
    return indptr, np.concatenate(pieces) if pieces else np.empty(0, _code_dtype(width))


def draw_buckets(key, rows: np.ndarray, k: int) -> np.ndarray:
    """Count Sketch's code of each row id: its bucket, or ~bucket where the sign is -1."""
    codes = np.empty(len(rows), _code_dtype(k))
    over_range(lambda a, b: _buckets(*key, rows, _u64(k), codes, a, b), len(rows), len(rows))
    return codes


def draw_states(key, expected: np.ndarray) -> np.ndarray:
    """1 with probability expected[i], else 0. One hash serves an entry of the first half and its peer in the second:
    like this the loop vectorises.
    """
    half, out = (len(expected) + 1) // 2, np.empty_like(expected)
    halves = expected[:half], expected[half:], out[:half], out[half:]
    over_range(lambda a, b: _states(*key, _u64(a), *(side[a:b] for side in halves)), half, half)
    return out


def _code_dtype(width: int):
    return np.int32 if width <= 2**31 else np.int64
