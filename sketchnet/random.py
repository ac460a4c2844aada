"""Counter-based random numbers: every draw is a pure function of (seed, counter), and nothing is ever mutated.

Row `i` of a projection matrix is a function of `(seed, i)` alone, so slices, threads, processes and devices agree by
construction. The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).

Counter layout, version 1. The key is the 64-bit seed; the counter's four 32-bit words are

    (row & 0xffffffff, row >> 32, block, stream)

`row` is a column id of the data (so up to 2**63), `stream` says what the numbers are for, and `block` counts groups of
four words along the row: entry `j` of a dense row takes word `j % 4` of block `j // 4`. Models record LAYOUT_VERSION;
golden vectors in the tests keep it from changing unnoticed.

The arithmetic below is written once for NumPy arrays and for numba's scalars (`kernels.cpu` compiles the very same
functions), in uint64 throughout: 32-bit words ride in uint64 containers, because their products need 64 bits.
"""

from __future__ import annotations

import decimal
from decimal import Decimal

import numpy as np

LAYOUT_VERSION = 1

# Streams: the counter's last word. One number per use, never reused, so no two uses share random bits.
STREAM_NORMAL = 1  # entries of Gaussian
STREAM_SIGN = 2  # entries of Achlioptas
STREAM_SKIP = 3  # gaps between the non-zeros of Li
STREAM_BUCKET = 4  # key of Count Sketch's hash
STREAM_DIAGONAL = 5  # key of the hash behind SRHT's diagonal signs
STREAM_FREQUENCY = 6  # Hadamard rows that subsampled SRHT picks
STREAM_S_SKIP = 7  # gaps between the non-zeros of sparse SRHT's S
STREAM_S_VALUE = 8  # their normal values
STREAM_SHUFFLE = 9  # order of blocks and rows in an epoch
STREAM_SYNTHETIC = 10  # and the four after it: the parts of synthetic data
STREAM_FEATURE_DROPOUT = 16  # key of the hash that drops entries; its row is the step
STREAM_ETA = 17  # whether a batch updates the projection; its row is the step
STREAM_STEP = 18  # seed of torch's generator in a step: dropout
STREAM_VALID = 19  # rows held back for validation
STREAM_TABLE = 20  # key of the hash of column ids into a table
STREAM_RBM = 21  # seed of the Gibbs chains in a step; its row is epoch and step, its block the layer
STREAM_FIELD_FOLDS = 24  # folds in which the values of fields are counted; its row is the draw
STREAM_FIELD_ROWS = 25  # the sample of rows that trees learn from
STREAM_TREES = 26  # seed of a booster; its row is the draw
STREAM_NGRAM = 64  # key of the hash of n-grams
STREAM_INIT = 0x494E4954  # seeds of the layers of a model, and of the groups of a layer
STREAM_SPLIT = 0x53504C54  # random parts of named data sets

_MASK32 = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_MIX_1, _MIX_2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_33 = np.uint64(33)
_1 = np.uint64(1)


def philox4x32(c0, c1, c2, c3, k0, k1):
    """Ten rounds of Philox4x32 on counter words `c` under key words `k`: four words, all uint64 below 2**32."""
    for _ in range(10):
        p0 = _MULTIPLIER_0 * c0
        p1 = _MULTIPLIER_1 * c2
        c0, c1, c2, c3 = (p1 >> _32) ^ c1 ^ k0, p1 & _MASK32, (p0 >> _32) ^ c3 ^ k1, p0 & _MASK32
        k0 = (k0 + _WEYL_0) & _MASK32
        k1 = (k1 + _WEYL_1) & _MASK32
    return c0, c1, c2, c3


def hash64(i, multiplier, offset):
    """Hash 64-bit ids with a random odd `multiplier` and `offset`, then mix (the finaliser of MurmurHash3).

    One hash costs three multiplications where Philox costs twenty; Count Sketch needs one per non-zero.
    """
    x = i * multiplier + offset
    x = (x ^ (x >> _33)) * _MIX_1
    x = (x ^ (x >> _33)) * _MIX_2
    return x ^ (x >> _33)


def bucket_of(h, k):
    """Bucket in [0, k) from the high half of a hash: floor(high * k / 2**32), for k up to 2**31."""
    return ((h >> _32) * k) >> _32


def sign_bit_of(h):
    """The hash's lowest bit: 1 means a sign of -1. `bucket_of` never looks at it."""
    return h & _1


def shuffled(n: int, seed: int, stream: int, row: int = 0) -> np.ndarray:
    """A random order of range(n), the same on every machine and with every version of NumPy.

    Sorts 64-bit keys; equal ones (for n = 10**6, one run in 40 million) keep their order.
    """
    keys = words(seed, stream, row, np.arange(-(-n // 2)))[0].view(np.uint64)[:n]
    return np.argsort(keys, kind="stable")


def split_seed(seed: int) -> tuple[np.uint64, np.uint64]:
    """The two Philox key words of a 64-bit seed."""
    return np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)


def words(seed: int, stream: int, rows, blocks) -> np.ndarray:
    """Philox output as uint32, shape (len(rows), 4 * len(blocks)): the plain form of every draw."""
    k0, k1 = split_seed(seed)
    rows = np.atleast_1d(np.asarray(rows, np.uint64))[:, None]
    blocks = np.atleast_1d(np.asarray(blocks, np.uint64))[None, :]
    rows, blocks = np.broadcast_arrays(rows, blocks)
    streams = np.full(rows.shape, stream, np.uint64)
    out = philox4x32(rows & _MASK32, rows >> _32, blocks, streams, k0, k1)
    return np.stack(out, axis=-1).astype(np.uint32).reshape(rows.shape[0], -1)


def hash_key(seed: int, stream: int, row: int = 0) -> tuple[np.uint64, np.uint64]:
    """Odd multiplier and offset of the hash that `seed` picks for `stream`, and within it for `row`."""
    w = words(seed, stream, row, 0)[0].astype(np.uint64)
    return (w[0] | w[1] << _32) | _1, w[2] | w[3] << _32


def uniforms(w: np.ndarray) -> np.ndarray:
    """Words to float32 in (0, 1]: (w + 1/2) / 2**32, rounded. The product is exact, so contraction cannot change it."""
    return w.astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)


def normals(w: np.ndarray) -> np.ndarray:
    """Words to standard normals (float32), pair by pair along the last axis, by Box and Muller's transform.

    The radius comes from the first word of a pair, the angle from the second. |z| never exceeds 6.77.
    """
    radius = np.sqrt(-2.0 * np.log(uniforms(w[..., 0::2]).astype(np.float64)))
    angle = w[..., 1::2] * (2.0 * np.pi / 2.0**32)
    z = np.empty(w.shape, np.float32)
    z[..., 0::2] = radius * np.cos(angle)
    z[..., 1::2] = radius * np.sin(angle)
    return z


def skip_thresholds(probability: Decimal, width: int) -> np.ndarray:
    """Tables that turn 63-bit words into gaps between the non-zeros of a row of `width` independent entries.

    Visiting only the non-zeros takes geometric gaps: P(gap >= g) = (1 - p)**g. A logarithm would give them, but its
    last bit differs between machines, and with it the matrix. Written in base B, the digits of a geometric variable are
    independent, digit l with P(v) proportional to (1 - p)**(v * B**l); so a few tables of cumulative probabilities,
    scaled by 2**63, turn words into digits by comparisons of integers alone. The digit is the number of thresholds that
    do not exceed the word; a highest digit of B means a gap beyond the row. Row 0 of the result is the highest digit.
    """
    bits = max(width - 1, 1).bit_length()
    levels = -(-bits // 12)
    base = width if levels == 1 else 2 ** -(-bits // levels)
    thresholds = np.empty((levels, base), np.uint64)
    with decimal.localcontext(prec=60):
        ratio = 1 - probability
        for level in reversed(range(levels)):
            power, whole = Decimal(1), 1 - ratio**base if level > 0 else Decimal(1)
            for v in range(base):
                power *= ratio
                thresholds[level, v] = int((1 - power) / whole * 2**63)
            ratio = ratio**base
    return thresholds
