"""Every compiled kernel against the plain reference, with tolerances that follow from rounding."""

import inspect
from decimal import Decimal

import numpy as np
import pytest

from sketchnet import random
from sketchnet.errors import InputError
from sketchnet.kernels import backend
from tests.statistics import assert_mean, sample_size

CPU, REFERENCE = backend("cpu"), backend("reference")


def random_csr(rng, n, d, dtype=np.float32, index=np.int32):
    """Rows of very different lengths, some empty, ids unsorted and repeated; offsets that do not begin at zero."""
    lengths = rng.integers(0, 30, n) * rng.integers(0, 2, n)
    indptr = (5 + np.concatenate([[0], np.cumsum(lengths)])).astype(index)
    indices = rng.integers(0, d, lengths.sum()).astype(index)
    return indptr, indices, rng.standard_normal(lengths.sum()).astype(dtype)


def assert_close(kernel, exact, dtype):
    """Within a few roundings of sums of a few dozen terms of size one."""
    assert kernel.dtype == dtype
    assert np.abs(kernel - exact).max() <= 100 * np.finfo(dtype).eps


def public_functions(module):
    return {name for name, value in vars(module).items() if callable(value) and not name.startswith("_")}


def test_backends_have_the_same_functions():
    assert len(public_functions(REFERENCE)) > 40
    assert public_functions(backend("cpu")) == public_functions(REFERENCE)
    for function in public_functions(REFERENCE):
        ours, theirs = (inspect.signature(getattr(module, function)) for module in (backend("cpu"), REFERENCE))
        assert list(ours.parameters) == list(theirs.parameters), function
    with pytest.raises(InputError, match="'tpu'; there are reference, cpu"):
        backend("tpu")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_products(dtype, index):
    rng = np.random.default_rng(0)
    csr = random_csr(rng, 300, 50, dtype, index)
    panel = rng.standard_normal((50, 36)).astype(np.float32)
    p = CPU.draw_skips(1, 3, np.arange(50), 33, random.skip_thresholds(Decimal("0.2"), 33), 6.6)
    key = random.hash_key(1, 4)
    for product in (
        lambda kernels, out: kernels.multiply_panel(*csr, panel, 0.7, out, slice(0, 33)),
        lambda kernels, out: kernels.multiply_sparse(*csr, *p, 0.7, out),
        lambda kernels, out: kernels.count_sketch(*csr, key, out),
    ):
        out, exact = np.full((300, 33), np.nan, dtype), np.full((300, 33), np.nan)
        product(CPU, out)
        product(REFERENCE, exact)
        assert_close(out, exact, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 2, 4, 8, 64, 2048])
def test_fast_transform(dtype, size):
    x = np.random.default_rng(0).standard_normal((5, size)).astype(dtype)
    exact = x.astype(np.float64)
    REFERENCE.fwht(exact)
    CPU.fwht(x)
    assert np.abs(x - exact).max() <= 20 * np.finfo(dtype).eps * np.sqrt(size) * 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("per_column", [1, 5])
@pytest.mark.parametrize("parity_limit", [0, 10, 1000])  # all rows, some, none by the fast transform
@pytest.mark.parametrize("few", [False, True])  # whether the transform leaves its lowest levels to the frequencies
def test_hadamard_rows(dtype, per_column, parity_limit, few):
    rng = np.random.default_rng(0)
    size, d, n_columns = 1024, 1000, 40
    csr = random_csr(rng, 40, d, dtype)
    picks = (
        np.arange(n_columns + 1) * per_column,
        rng.integers(0, size, n_columns * per_column).astype(np.uint32),
        rng.standard_normal(n_columns * per_column).astype(np.float32),
    )
    key, columns = random.hash_key(3, 5), slice(2, 2 + n_columns)
    out, exact = np.zeros((40, n_columns + 3), dtype), np.zeros((40, n_columns + 3))
    CPU.hadamard_sparse(*csr, key, size, parity_limit, few, *picks, 0.5, out, columns)
    REFERENCE.hadamard_sparse(*csr, key, size, parity_limit, few, *picks, 0.5, exact, columns)
    assert_close(out, exact, dtype)
    dense = rng.standard_normal((7, d)).astype(dtype)
    CPU.hadamard_dense(dense, key, size, few, *picks, 1 / 64, out[:7], columns)
    REFERENCE.hadamard_dense(dense, key, size, few, *picks, 1 / 64, exact[:7], columns)
    assert_close(out[:7], exact[:7], dtype)


def test_parity_of_wide_ids():
    ids = np.array([2**40 + 5, 2**62 + 2**33 + 1, 7])
    csr = np.arange(4), ids, np.ones(3)
    picks = np.arange(6), np.array([1, 2**40, 2**62, 2**62 + 1, 2**33], np.uint64), np.ones(5, np.float32)
    out, exact = np.empty((3, 5)), np.empty((3, 5))
    CPU.hadamard_sparse(*csr, random.hash_key(0, 5), 2**63, 10, False, *picks, 1.0, out, slice(0, 5))
    REFERENCE.hadamard_sparse(*csr, random.hash_key(0, 5), 2**63, 10, False, *picks, 1.0, exact, slice(0, 5))
    assert np.array_equal(out, exact)


@pytest.mark.parametrize("d", [60, 10_000])  # by a table, by sorting
def test_compact_columns(d):
    ids = np.random.default_rng(0).integers(0, d, 500).astype(np.int32)
    columns, local = CPU.compact_columns(ids, d)
    assert np.array_equal(columns, np.unique(ids))
    assert np.array_equal(columns[local], ids)


@pytest.mark.parametrize("width", [1, 7, 4096, 5000, 2**25, 2**61, 2**63])
def test_draws(width):
    """Discrete draws are exactly the reference's, at every width; with enough rows that gaps beyond 64 bits occur."""
    rows = np.concatenate([np.arange(300), [2**31, 2**40 + 1, 2**63 - 1]])
    thresholds = random.skip_thresholds(Decimal(3) / Decimal(max(width, 4)), width)
    for ours, theirs in zip(
        CPU.draw_skips(9, 3, rows, width, thresholds, 0.1), REFERENCE.draw_skips(9, 3, rows, width, thresholds, 0.1)
    ):
        assert np.array_equal(ours, theirs)
    key = random.hash_key(9, 4)
    k = min(width, 2**31)
    assert np.array_equal(CPU.draw_buckets(key, rows, k), REFERENCE.draw_buckets(key, rows, k))
    for s in (1, 3):
        ours, theirs = np.empty((len(rows), 12), np.float32), np.empty((len(rows), 12), np.float32)
        CPU.draw_signs(9, 2, rows, 8, s, ours)
        REFERENCE.draw_signs(9, 2, rows, 8, s, theirs)
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 100_001, 600_001])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_states(n, dtype, monkeypatch):
    key = random.hash_key(4, random.STREAM_RBM)
    expected = np.random.default_rng(n).random(n, dtype)
    states = backend().draw_states(key, expected)
    assert states.dtype == dtype
    np.testing.assert_array_equal(states, backend("reference").draw_states(key, expected))
    monkeypatch.setenv("SKETCHNET_THREADS", "1")
    np.testing.assert_array_equal(states, backend().draw_states(key, expected))


@pytest.mark.parametrize("p", [0.01, 0.5, 0.9])
def test_law_of_states(p):
    """1 with probability p, whatever the neighbour, the peer of the same hash and another key's state are."""
    half = sample_size(p * (1 - p), 0.005)
    states, others = (
        backend().draw_states(random.hash_key(seed, random.STREAM_RBM), np.full(2 * half, p)) for seed in (0, 1)
    )
    assert_mean(states, p, p * (1 - p))
    for products in (states[1:] * states[:-1], states[:half] * states[half:], states * others):
        assert_mean(products, p**2, p**2 * (1 - p**2))


def test_certain_states():
    for certain in (np.float32(0), np.float32(1), np.float64(0), np.float64(1)):
        assert (backend().draw_states(random.hash_key(5, random.STREAM_RBM), np.full(10**6, certain)) == certain).all()


def test_gather_rows():
    rng = np.random.default_rng(0)
    csr = random_csr(rng, 300, 50)
    rows = rng.integers(0, 300, 500)
    for ours, theirs in zip(CPU.gather_rows(*csr, rows), REFERENCE.gather_rows(*csr, rows)):
        assert np.array_equal(ours, theirs)


def test_first_bad():
    ids, values = np.arange(200_000), np.ones(200_000, np.float32)
    assert CPU.first_bad_id(ids, 200_000) == -1
    assert CPU.first_non_finite(values) == -1
    assert CPU.first_bad_id(np.where(ids % 70_001 == 70_000, -1, ids), 200_000) == 70_000
    assert CPU.first_bad_id(ids, 150_000) == 150_000
    for bad in (np.nan, np.inf, -np.inf):
        values[[123_457, 190_000]] = bad
        assert CPU.first_non_finite(values) == 123_457
