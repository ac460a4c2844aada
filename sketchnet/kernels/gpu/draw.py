"""Entries of projection matrices, drawn by the counter layout of `sketchnet.random`, as parts of kernels.

Each is the twin of a function there: the same bits for words, hashes and gaps, the same normals to rounding.
"""

from __future__ import annotations

from math import log, pi

import triton
import triton.language as tl
from triton.language.extra import libdevice

_MULTIPLIER_0, _MULTIPLIER_1 = tl.constexpr(0xD2511F53), tl.constexpr(0xCD9E8D57)
_WEYL_0, _WEYL_1 = tl.constexpr(0x9E3779B9), tl.constexpr(0xBB67AE85)
_MIX_1, _MIX_2 = tl.constexpr(0xFF51AFD7ED558CCD), tl.constexpr(0xC4CEB9FE1A85EC53)
_HALF_TURN = tl.constexpr(pi / 2**32)
_TWO_LN_2 = tl.constexpr(-2 * log(2))


@triton.jit
def wide_product(a, b: tl.constexpr):
    """High and low half of a 64-bit product: one instruction, where two 32-bit ones would do the work twice."""
    product = a.to(tl.uint64) * b
    return (product >> 32).to(tl.uint32), product.to(tl.uint32)


@triton.jit
def philox4x32(c0, c1, c2, c3, k0, k1):
    """Ten rounds of Philox4x32 on uint32 words. Parts of the counter that are narrower tensors stay so while they can,
    so that the first rounds are mostly shared."""
    for _ in tl.static_range(10):
        high_0, low_0 = wide_product(c0, _MULTIPLIER_0)
        high_1, low_1 = wide_product(c2, _MULTIPLIER_1)
        c0, c1, c2, c3 = high_1 ^ c1 ^ k0, low_1, high_0 ^ c3 ^ k1, low_0
        k0 = k0 + _WEYL_0
        k1 = k1 + _WEYL_1
    return c0, c1, c2, c3


@triton.jit
def words(row, block, stream, k0, k1):
    """The four words of a block of a row; `row` is uint64, the rest uint32."""
    return philox4x32(row.to(tl.uint32), (row >> 32).to(tl.uint32), block, stream, k0, k1)


@triton.jit
def hash64(i, multiplier, offset):
    x = i * multiplier + offset
    x = (x ^ (x >> 33)) * _MIX_1
    x = (x ^ (x >> 33)) * _MIX_2
    return x ^ (x >> 33)


@triton.jit
def bucket_of(h, k):
    """Bucket in [0, k) from the high half of a hash, as int32: kernels take k below 2**31."""
    return (((h >> 32) * k.to(tl.uint64)) >> 32).to(tl.int32)


@triton.jit
def flipped(value, odd):
    """-value where the lowest bit of `odd` is set, by its sign bit."""
    return (value.to(tl.uint32, bitcast=True) ^ (odd.to(tl.uint32) << 31)).to(tl.float32, bitcast=True)


@triton.jit
def normal_pair(word_0, word_1):
    """Box and Muller's transform: the radius from the first word, the angle from the second.

    The GPU's own logarithm errs by 2e-7 whatever its size, so near one a series takes its place. Sine and cosine are
    polynomials over half a turn; on the other half they are the negative. All in all, 1e-6 of the radius at most.
    """
    u = word_0.to(tl.float32) * 2.0**-32 + 2.0**-33
    t = u - 1.0
    near = t * (-2.0 + t * (1.0 + t * (-2.0 / 3 + t * (0.5 + t * -0.4))))
    radius = tl.sqrt(tl.where(u > 0.9375, near, libdevice.fast_log2f(u) * _TWO_LN_2))
    radius = flipped(radius, (word_1 + 0x40000000) >> 31)
    x = (word_1 << 1).to(tl.int32, bitcast=True).to(tl.float32) * _HALF_TURN
    y = x * x
    sine = 0.9999999957 + y * (-0.1666665795 + y * (0.00833305017 + y * (-1.980901741e-4 + y * 2.605107634e-6)))
    cosine = 0.999999953 + y * (-0.4999990478 + y * (0.04166357316 + y * (-0.001385362954 + y * 2.315241666e-5)))
    return radius * cosine, radius * (sine * x)


@triton.jit
def sign_of(word, value, below_plus, last_minus):
    """value * (+1, -1 or 0): +1 for words below `below_plus`, -1 for the others up to `last_minus`."""
    return tl.where(word < below_plus, value, tl.where(word <= last_minus, -value, 0.0))


@triton.jit
def digit_of(word, thresholds, base):
    """Number of thresholds that do not exceed `word`, by bisection; they are ascending uint64 stored as int64."""
    n, low = base, base * 0
    if tl.load(thresholds + base - 1).to(tl.uint64, bitcast=True) <= word:
        low = base
    else:
        while n > 1:
            half = n >> 1
            if tl.load(thresholds + low + half - 1).to(tl.uint64, bitcast=True) <= word:
                low += half
            n -= half
    return low
