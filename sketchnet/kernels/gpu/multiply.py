"""Products of CSR rows with projection matrices that are drawn or hashed for each non-zero and never stored.

A program takes a row, or a tile of its columns: it goes through the row's non-zeros in stored order, draws for each the
entries that it meets, and writes its sums once, without atomics. So results do not depend on slices or on chance.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from sketchnet.kernels.gpu.draw import bucket_of, digit_of, flipped, hash64, normal_pair, sign_of, words
from sketchnet.kernels.gpu.launch import shape_of, tile_of

_ROWS_EACH, _PROGRAMS = 2, 1 << 14  # rows that a program of Count Sketch takes, if that leaves so many programs
_SHORT = 32  # rows up to this length scatter their sums, instead of comparing each non-zero with each column


@triton.jit
def row_and_tile(indptr, tiles):
    """(row, tile, first, last) of this program: neighbours share a row, which they find in the cache."""
    program = tl.program_id(0)
    row = (program // tiles).to(tl.int64)
    base = tl.load(indptr)
    return row, program % tiles, tl.load(indptr + row) - base, tl.load(indptr + row + 1) - base


@triton.jit(do_not_specialize=["stream", "tiles", "width", "stride"])
def _dense(
    indptr, indices, values, k0: tl.uint32, k1: tl.uint32, stream, below_plus: tl.uint32, last_minus: tl.uint32,
    scale: tl.float32, out, tiles, width, stride,
    NORMAL: tl.constexpr, GROUPS: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    row, tile, first, last = row_and_tile(indptr, tiles)
    k0, k1, stream = k0.to(tl.uint32), k1.to(tl.uint32), stream.to(tl.uint32)
    below_plus, last_minus = below_plus.to(tl.uint32), last_minus.to(tl.uint32)
    block = (tile * GROUPS + tl.arange(0, GROUPS)).to(tl.uint32)
    sum_0 = tl.zeros((GROUPS,), tl.float32)
    sum_1, sum_2, sum_3 = sum_0, sum_0, sum_0
    for t in range(first, last):
        value = tl.load(values + t)
        w0, w1, w2, w3 = words(tl.load(indices + t).to(tl.uint64), block, stream, k0, k1)
        if NORMAL:
            z0, z1 = normal_pair(w0, w1)
            z2, z3 = normal_pair(w2, w3)
            sum_0 += value * z0
            sum_1 += value * z1
            sum_2 += value * z2
            sum_3 += value * z3
        else:
            sum_0 += sign_of(w0, value, below_plus, last_minus)
            sum_1 += sign_of(w1, value, below_plus, last_minus)
            sum_2 += sign_of(w2, value, below_plus, last_minus)
            sum_3 += sign_of(w3, value, below_plus, last_minus)
    sums = tl.interleave(tl.interleave(sum_0, sum_2), tl.interleave(sum_1, sum_3)) * scale
    column = tile * (4 * GROUPS) + tl.arange(0, 4 * GROUPS)
    tl.store(out + row * (stride * ALIGN) + column, sums.to(out.dtype.element_ty), mask=column < width * ALIGN)


@triton.jit(do_not_specialize=["stream", "base", "tiles", "width", "stride"])
def _skips(
    indptr, indices, values, k0: tl.uint32, k1: tl.uint32, stream, thresholds, base, scale: tl.float32,
    out, tiles, width, stride,
    LEVELS: tl.constexpr, TILE: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    row, tile, first, last = row_and_tile(indptr, tiles)
    column = tile * TILE + tl.arange(0, TILE)
    end = (tile + 1).to(tl.int64) * TILE
    if end > width * ALIGN:
        end = (width * ALIGN).to(tl.int64)
    k0, k1, stream = k0.to(tl.uint32), k1.to(tl.uint32), stream.to(tl.uint32)
    sums = tl.zeros((TILE,), tl.float32)
    for t in range(first, last):
        value = tl.load(values + t)
        i = tl.load(indices + t).to(tl.uint64)
        at, draw, spare = tl.full((), 0, tl.int64), tl.full((), 0, tl.uint32), tl.full((), 0, tl.uint64)
        while at < end:
            gap, sign, beyond = tl.full((), 0, tl.int64), tl.full((), 0, tl.uint64), False
            for level in tl.static_range(LEVELS):  # digits of the gap, the highest first
                word = spare
                if draw & 1 == 0:
                    w0, w1, w2, w3 = words(i, draw >> 1, stream, k0, k1)
                    word = w0.to(tl.uint64) | (w1.to(tl.uint64) << 32)
                    spare = w2.to(tl.uint64) | (w3.to(tl.uint64) << 32)
                draw += 1
                digit = digit_of(word >> 1, thresholds + level * base, base)
                if level == 0:
                    sign, beyond = word & 1, digit == base
                gap = gap * base + digit
            at = tl.where(beyond, end, tl.minimum(at + gap, end))
            sums = tl.where(column == at.to(tl.int32), sums + flipped(value, sign), sums)
            at += 1
    sums *= scale
    tl.store(out + row * (stride * ALIGN) + column, sums.to(out.dtype.element_ty), mask=column < width * ALIGN)


@triton.jit
def _hashed(indices, values, t, multiplier, offset, k):
    """Bucket and signed value of entry t."""
    h = hash64(tl.load(indices + t).to(tl.uint64), multiplier, offset)
    return bucket_of(h, k), flipped(tl.load(values + t), h & 1)


@triton.jit(do_not_specialize=["multiplier", "offset", "n", "each", "width", "stride"])
def _count_sketch(
    indptr, indices, values, multiplier: tl.uint64, offset: tl.uint64, out, n, each, width, stride,
    TILE: tl.constexpr, SHORT: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    multiplier, offset = multiplier.to(tl.uint64), offset.to(tl.uint64)
    k = width * ALIGN
    base = tl.load(indptr)
    begin = tl.program_id(0).to(tl.int64) * each
    for row in range(begin, tl.minimum(begin + each, n)):
        first, last = tl.load(indptr + row) - base, tl.load(indptr + row + 1) - base
        target = out + row * (stride * ALIGN)
        if last - first <= SHORT and last > first:
            for start in range(0, k, TILE):
                column = start + tl.arange(0, TILE)
                tl.store(target + column, tl.zeros((TILE,), out.dtype.element_ty), mask=column < k)
            # A lane for each entry adds up what falls into its bucket. Lanes of one bucket find the same sum, so that
            # it does not matter whose is written.
            mine = first + tl.arange(0, SHORT)
            my_bucket, _my_value = _hashed(indices, values, tl.minimum(mine, last - 1), multiplier, offset, k)
            sums = tl.zeros((SHORT,), tl.float32)
            for t in range(first, last):
                bucket, value = _hashed(indices, values, t, multiplier, offset, k)
                sums = tl.where(my_bucket == bucket, sums + value, sums)
            tl.debug_barrier()  # the zeros come first
            tl.store(target + my_bucket, sums.to(out.dtype.element_ty), mask=mine < last)
        else:
            for start in range(0, k, TILE):
                column = start + tl.arange(0, TILE)
                sums = tl.zeros((TILE,), tl.float32)
                for t in range(first, last):
                    bucket, value = _hashed(indices, values, t, multiplier, offset, k)
                    sums = tl.where(column == bucket, sums + value, sums)
                tl.store(target + column, sums.to(out.dtype.element_ty), mask=column < k)


def multiply_normals(indptr, indices, values, seed: int, stream: int, scale: float, out: torch.Tensor) -> None:
    """out = scale * (csr @ P), entry (i, j) of P being the standard normal that `draw_normals` gives."""
    _dense_rows((indptr, indices, values), seed, (stream, 0, 0, scale), out, NORMAL=True)


def multiply_signs(indptr, indices, values, seed: int, stream: int, s: int, scale: float, out: torch.Tensor) -> None:
    """out = scale * (csr @ P), P being the signs and zeros that `draw_signs` gives."""
    how = stream, 2**32 // (2 * s), 2**32 // s - 1, scale
    _dense_rows((indptr, indices, values), seed, how, out, NORMAL=False)


def _dense_rows(csr, seed: int, how: tuple, out: torch.Tensor, NORMAL: bool) -> None:
    groups = -(-out.shape[1] // 4)
    tile, (width, stride, align) = tile_of(groups, 256), shape_of(out)
    tiles, key = -(-groups // tile), (seed & 0xFFFFFFFF, seed >> 32)
    if len(out):
        _dense[(len(out) * tiles,)](*(*csr, *key, *how, out, tiles, width, stride, NORMAL, tile, align), num_warps=1)


def multiply_skips(
    indptr, indices, values, seed: int, stream: int, thresholds: torch.Tensor, scale: float, out: torch.Tensor
) -> None:
    """out = scale * (csr @ P), P being the sparse signs that `draw_skips` gives.

    `thresholds` are those of `random.skip_thresholds` for the width of `out`, as int64 of the same bits.
    """
    levels, base = thresholds.shape
    tile, (width, stride, align) = tile_of(out.shape[1], 1024), shape_of(out)
    tiles, how = -(-out.shape[1] // tile), (seed & 0xFFFFFFFF, seed >> 32, stream, thresholds, base, scale)
    if len(out):
        _skips[(len(out) * tiles,)](
            *(indptr, indices, values, *how, out, tiles, width, stride, levels, tile, align), num_warps=1
        )


def count_sketch(indptr, indices, values, key, out: torch.Tensor) -> None:
    """out = csr @ P for Count Sketch's P, hashed on the fly; `key` is that of `random.hash_key`."""
    (n, k), (width, stride, align) = out.shape, shape_of(out)
    each = min(_ROWS_EACH, max(1, n // _PROGRAMS))
    if n:
        csr, key, shape = (indptr, indices, values), (int(key[0]), int(key[1])), (n, each, width, stride)
        _count_sketch[(-(-n // each),)](*csr, *key, out, *shape, tile_of(k, 1024), _SHORT, align, num_warps=1)
