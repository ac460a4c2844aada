"""The generator: published known answers, two forms that agree bit for bit, and the laws of what is built on it."""

from decimal import Decimal

import numpy as np
import pytest
from numba import njit
from scipy import stats

from sketchnet import random
from sketchnet.kernels import backend
from sketchnet.kernels.cpu.draw import philox4x32
from tests.statistics import FAILURE, assert_counts, assert_mean

# kat_vectors of Random123 1.14: philox4x32, 10 rounds: counter, key, answer.
KNOWN_ANSWERS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def as_words(text: str) -> list[np.uint64]:
    return [np.uint64(int(word, 16)) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_known_answers(counter, key, answer):
    plain = random.philox4x32(*([np.array([w]) for w in as_words(counter) + as_words(key)]))
    assert [int(w[0]) for w in plain] == as_words(answer)

    @njit
    def compiled(c0, c1, c2, c3, k0, k1):
        return philox4x32(c0, c1, c2, c3, k0, k1)

    assert list(compiled(*as_words(counter), *as_words(key))) == as_words(answer)


def test_the_counter_is_row_low_row_high_block_stream():
    seed, row, block, stream = 0x0123456789ABCDEF, 0x1122334455667788, 7, 3
    counter = [np.array([np.uint64(w)]) for w in (0x55667788, 0x11223344, block, stream)]
    key = [np.array([np.uint64(w)]) for w in (0x89ABCDEF, 0x01234567)]
    expected = [int(w[0]) for w in random.philox4x32(*counter, *key)]
    assert random.words(seed, stream, row, block)[0].tolist() == expected


def test_uniforms_are_in_range_and_uniform():
    extremes = random.uniforms(np.array([0, 2**32 - 1], np.uint32))
    assert 0 < extremes[0]
    assert extremes[1] <= 1
    u = random.uniforms(random.words(1, 99, np.arange(1000), np.arange(250)).ravel())
    assert stats.kstest(u, "uniform").pvalue > FAILURE


def test_normals_follow_their_law():
    """Kolmogorov-Smirnov and the first four moments at ten million draws."""
    z = np.empty((10_000, 1000), np.float32)
    backend().draw_normals(2, random.STREAM_NORMAL, np.arange(10_000), 0, z)
    z = z.ravel().astype(np.float64)
    assert stats.kstest(z, "norm").pvalue > FAILURE
    assert_mean(z, 0, 1)
    assert_mean(z**2, 1, 2)
    assert_mean(z**3, 0, 15)
    assert_mean(z**4, 3, 96)
    assert_mean(z[0::2] * z[1::2], 0, 1)  # the two of a Box-Muller pair
    assert_mean(z[0::4] * z[2::4], 0, 1)
    assert_mean(z[:-1000] * z[1000:], 0, 1)  # rows below each other


def test_plain_and_compiled_normals_agree_to_rounding():
    rows = np.array([0, 1, 2**31, 2**40 + 3, 2**63 - 1])
    plain, compiled = np.empty((5, 4000), np.float32), np.empty((5, 4000), np.float32)
    backend("reference").draw_normals(3, 1, rows, 8, plain)
    backend().draw_normals(3, 1, rows, 8, compiled)
    assert np.abs(plain - compiled).max() < 1e-6


K = 64


def codes(seeds, ids):
    """(bucket, sign) of each id (columns) under each seed (rows)."""
    keys = [random.hash_key(int(seed), random.STREAM_BUCKET) for seed in seeds]
    code = np.array([backend().draw_buckets(key, np.asarray(ids, np.int64), K) for key in keys])
    return np.where(code < 0, ~code, code), np.where(code < 0, -1, 1)


@pytest.mark.parametrize("ids", [np.arange(200_000), np.arange(200_000) * 2**20, 2**62 + np.arange(200_000) * 4096])
def test_hash_balances_buckets_and_signs(ids):
    bucket, sign = codes([0], ids)
    assert_counts(np.bincount(bucket[0], minlength=K), [1 / K] * K)
    assert_mean(sign[0], 0, 1)
    cells = np.bincount(2 * bucket[0] + (sign[0] > 0), minlength=2 * K)
    assert_counts(cells, [1 / (2 * K)] * (2 * K))  # and a sign does not depend on its bucket


@pytest.mark.parametrize("other", [1, 2, 4096, 2**31, 2**32, 2**40, 2**62])
def test_hash_is_pairwise_independent_over_seeds(other):
    """For two ids, buckets coincide with probability 1/K and signs are uncorrelated."""
    bucket, sign = codes(range(20_000), [17, 17 + other])
    same = bucket[:, 0] == bucket[:, 1]
    assert_mean(same.astype(float), 1 / K, 1 / K * (1 - 1 / K))
    assert_mean((sign[:, 0] * sign[:, 1]).astype(float), 0, 1)
    assert_mean((sign[:, 0] * sign[:, 1])[same].astype(float), 0, 1)
    joint = np.bincount(K // 8 * (bucket[:, 0] // 8) + bucket[:, 1] // 8, minlength=K)
    assert_counts(joint, [1 / K] * K)


@pytest.mark.parametrize(("probability", "width"), [("0.5", 7), ("0.001", 1000), ("0.01", 5000), ("1e-5", 2**21)])
def test_skips_visit_every_column_with_the_same_probability(probability, width):
    p = Decimal(probability)
    n = int(400_000 / (float(p) * width)) + 1
    indptr, code = backend().draw_skips(4, 3, np.arange(n), width, random.skip_thresholds(p, width), width * float(p))
    column = np.where(code < 0, ~code, code)
    lengths = np.diff(indptr)
    assert_mean(lengths, width * float(p), width * float(p) * (1 - float(p)))
    parts = np.bincount(column * 7 // width, minlength=7)
    edges = -(-np.arange(8) * width // 7)  # the first column of each seventh
    assert_counts(parts, np.diff(edges) / width)
    assert_mean(np.where(code < 0, -1, 1), 0, 1)
    inside = np.diff(column)[np.diff(np.repeat(np.arange(n), lengths)) == 0]
    assert (inside > 0).all()


def test_skips_with_probability_one_visit_all():
    indptr, code = backend().draw_skips(4, 3, np.arange(3), 9000, random.skip_thresholds(Decimal(1), 9000), 9000)
    assert np.diff(indptr).tolist() == [9000] * 3
    assert np.array_equal(np.where(code < 0, ~code, code).reshape(3, -1), [np.arange(9000)] * 3)
