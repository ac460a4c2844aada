"""Kernels of selection against their plain twins."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchnet.kernels import backend
from sketchnet.kernels.cpu import class_sums, threads

CPU, REFERENCE = backend("cpu"), backend("reference")


def random_rows(seed, n=60, d=40, n_classes=3, dtype=np.float32, index=np.int32):
    """Ascending ids, some rows and columns empty, values that repeat; offsets that do not begin at zero."""
    rng = np.random.default_rng(seed)
    chosen = rng.random((n, d)) < rng.random((n, 1)) * (rng.random(d) < 0.8)
    indptr = (7 + np.concatenate([[0], chosen.sum(axis=1).cumsum()])).astype(index)
    values = (rng.integers(-3, 4, chosen.sum()) / 2).astype(dtype)
    return indptr, np.nonzero(chosen)[1].astype(index), values, rng.integers(0, n_classes, n).astype(np.int32)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    d=st.integers(1, 150),
    n_classes=st.integers(2, 5),
    moments=st.sampled_from([1, 2]),
    number=st.sampled_from([1, 3]),
    piece=st.sampled_from([1 << 22, 200]),
)
def test_sums_by_class(seed, d, n_classes, moments, number, piece):
    rows = random_rows(seed, d=d, n_classes=n_classes, dtype=[np.float32, np.float64, np.int8][seed % 3])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "_SMALL", 1)
        patch.setattr(class_sums, "_PIECE", piece)
        patch.setenv("SKETCHNET_THREADS", str(number))
        for first, width in ((0, d), (d // 3, max(1, d // 2))):
            sums, expected = np.ones((2, n_classes, width, moments))
            flags = CPU.add_by_class(*rows, first, sums)
            assert flags == REFERENCE.add_by_class(*rows, first, expected)
            np.testing.assert_allclose(sums, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_depend_neither_on_threads_nor_on_pieces(dtype, monkeypatch):
    indptr, indices, values, classes = random_rows(2, n=2000, d=100, dtype=dtype)
    values = np.random.default_rng(0).standard_normal(len(values)).astype(dtype)
    monkeypatch.setattr(threads, "_SMALL", 1)
    results = []
    for number, piece in (("1", 1 << 22), ("2", 1 << 22), ("5", 1 << 22), ("2", 300)):
        monkeypatch.setenv("SKETCHNET_THREADS", number)
        monkeypatch.setattr(class_sums, "_PIECE", piece)
        sums = np.zeros((3, 100, 2))
        CPU.add_by_class(indptr, indices, values, classes, 0, sums)
        results.append(sums)
    assert all(np.array_equal(results[0], sums) for sums in results)


@pytest.mark.parametrize("kernels", [CPU, REFERENCE])
@pytest.mark.parametrize("number", ["1", "2"])
def test_bad_rows_are_told_and_not_added(kernels, number, monkeypatch):
    monkeypatch.setattr(threads, "_SMALL", 1)
    monkeypatch.setenv("SKETCHNET_THREADS", number)
    indptr, indices, values = np.array([0, 2, 4]), np.array([0, 5, 1, 3]), np.array([1.0, 2.0, 3.0, 4.0])
    classes, sums = np.array([0, 1], np.int32), np.zeros((2, 4, 1))
    assert kernels.add_by_class(indptr, indices, values, classes, 0, sums) == (True, False, False)
    assert sums.sum() == 8  # without the column outside
    for ids in itertools.product(range(-1, 5), repeat=3):  # any order, within the columns and outside
        sums = np.zeros((2, 4, 1))
        flags = kernels.add_by_class(np.array([0, 3]), np.array(ids), np.ones(3), classes[:1], 0, sums)
        assert flags[1] == (not ids[0] < ids[1] < ids[2])
        if flags[1]:
            assert not sums.any()
        else:
            assert flags[0] == (ids[0] < 0 or ids[2] > 3)
    for x in (np.nan, np.inf, -np.inf):
        sums = np.zeros((2, 6, 1))
        assert kernels.add_by_class(indptr, indices, np.array([1, x, 1, 1]), classes, 0, sums)[2]
        assert not sums.any()


@pytest.mark.parametrize("seed", range(5))
def test_statistics(seed):
    rng = np.random.default_rng(seed)
    sums, counts = rng.random((4, 50, 2)) * [1, 9], rng.integers(1, 30, 4)
    sums[:, ::7] = 0
    for name, given_ in (("chi_square", sums[:, :, :1]), ("f_ratio", sums)):
        out, expected = np.empty(50), np.empty(50)
        getattr(CPU, name)(np.ascontiguousarray(given_), counts, out)
        getattr(REFERENCE, name)(given_, counts, expected)
        np.testing.assert_allclose(out, expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, bool])
@pytest.mark.parametrize("number", ["1", "3"])
def test_grouping_and_gain(dtype, number, monkeypatch):
    monkeypatch.setattr(threads, "_SMALL", 1)
    monkeypatch.setenv("SKETCHNET_THREADS", number)
    for seed in range(5):
        indptr, indices, values, classes = random_rows(seed, dtype=dtype)
        assert CPU.ordered(indptr, indices)
        assert REFERENCE.ordered(indptr, indices)
        assert not CPU.ordered(indptr, indices[::-1].copy())
        lengths, expected = np.zeros(40, np.int64), np.zeros(40, np.int64)
        CPU.count_columns(indices, lengths)
        REFERENCE.count_columns(indices, expected)
        assert np.array_equal(lengths, expected)
        offsets = np.concatenate([[0], lengths[10:30].cumsum()])
        grouped = []
        for kernels in (CPU, REFERENCE):
            out = np.zeros(offsets[-1], dtype), np.zeros(offsets[-1], np.int32)
            kernels.group_by_column(indptr, indices, values, classes, 10, offsets[:-1].copy(), *out)
            grouped.append(out)
        assert np.array_equal(grouped[0], grouped[1])
        counts, gain, plain = np.bincount(classes), np.empty(20), np.empty(20)
        CPU.column_gain(offsets, *grouped[0], counts, gain)
        REFERENCE.column_gain(offsets, *grouped[0], counts, plain)
        np.testing.assert_allclose(gain, plain, atol=1e-14)


def test_minus_zero_is_zero():
    offsets, classes, counts = np.array([0, 4]), np.array([0, 0, 1, 1], np.int32), np.array([3, 3])
    gains = []
    for values in ([0.0, 1, 0.0, 2], [-0.0, 1, 0.0, 2]):
        out = np.empty(1)
        CPU.column_gain(offsets, np.array(values), classes, counts, out)
        gains.append(out[0])
    assert gains[0] == gains[1] > 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("number", ["1", "3"])
def test_transposed_product(dtype, number, monkeypatch):
    monkeypatch.setattr(threads, "_SMALL", 1)
    monkeypatch.setenv("SKETCHNET_THREADS", number)
    indptr, indices, values, _ = random_rows(3, dtype=dtype)
    rows = np.random.default_rng(0).standard_normal((60, 13)).astype(dtype)
    out, expected = np.ones((40, 13), dtype), np.ones((40, 13), dtype)
    CPU.add_transposed(indptr, indices, values, rows, out)
    REFERENCE.add_transposed(indptr, indices, values, rows, expected)
    np.testing.assert_allclose(out, expected, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=1e-5)
