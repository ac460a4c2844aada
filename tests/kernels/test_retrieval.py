"""Ranking kernels against the plain reference: keys to the bit, sums to rounding."""

import numpy as np
import pytest

from sketchnet.kernels import backend
from sketchnet.kernels.cpu import threads

CPU, REFERENCE = backend("cpu"), backend("reference")


def ranked(n=300, k=8, n_queries=40, seed=0):
    rng = np.random.default_rng(seed)
    panels = rng.standard_normal((-(-n // 64), k, 64)).astype(np.float32).round(1)  # with equal products
    panels[:, :, ::9] = 0
    own = rng.permutation(n)[:n_queries]
    queries = panels[own // 64, :, own % 64]
    keys = np.empty((n_queries, n), np.uint64)
    REFERENCE.similarity_keys(panels, queries, own, keys)
    return panels, queries, own, keys


@pytest.mark.parametrize("number", ["1", "3"])
@pytest.mark.parametrize("k", [4, 8, 36])
def test_keys_and_their_order(k, number, monkeypatch):
    monkeypatch.setattr(threads, "_SMALL", 1)
    monkeypatch.setenv("SKETCHNET_THREADS", number)
    panels, queries, own, expected = ranked(k=k)
    keys = np.zeros_like(expected)
    CPU.similarity_keys(panels, queries, own, keys)
    assert np.array_equal(keys, expected)
    products = queries.astype(np.float64) @ panels.transpose(0, 2, 1).reshape(-1, k)[:300].T
    for q, row in enumerate(np.sort(keys, axis=1)):
        order = (row & np.uint64(2**32 - 1)).astype(int)[:-1]
        assert sorted(order) == sorted(set(range(300)) - {own[q]})
        assert (np.diff(products[q, order]) < 1e-5).all()
    without = np.full(len(own), -1)
    CPU.similarity_keys(panels, queries, without, keys)
    REFERENCE.similarity_keys(panels, queries, without, expected)
    assert np.array_equal(keys, expected)
    for first in (1, 10, 299, 300):
        part = keys.copy()
        CPU.sort_rows(part, first)
        assert np.array_equal(part[:, :first], np.sort(keys, axis=1)[:, :first])


@pytest.mark.parametrize("number", ["1", "3"])
def test_gains(number, monkeypatch):
    monkeypatch.setattr(threads, "_SMALL", 1)
    monkeypatch.setenv("SKETCHNET_THREADS", number)
    *_, own, keys = ranked()
    keys.sort(axis=1)
    rng = np.random.default_rng(1)
    classes = rng.integers(0, 6, 300)
    member = rng.random((300, 9)) < 0.3
    member[own, 0] = member[:, 0] = True  # every query has something to find
    labels, indptr = np.nonzero(member)[1], np.concatenate([[0], member.sum(axis=1).cumsum()])
    documents, starts = np.nonzero(member.T)[1], np.concatenate([[0], member.sum(axis=0).cumsum()])
    for name, arguments in (("class_gains", [classes]), ("set_gains", [indptr, labels, starts, documents])):
        expected, scores = np.empty((len(own), 299)), np.empty(len(own))
        getattr(REFERENCE, name)(keys, *arguments, own, expected, scores)
        for in_place in (False, True):
            block, average = keys.copy(), np.empty(len(own))
            gains = block.view(np.float64)[:, :299] if in_place else np.empty_like(expected)
            getattr(CPU, name)(block, *arguments, own, gains, average)
            np.testing.assert_allclose(gains, expected, rtol=1e-12)
            np.testing.assert_allclose(average, scores, rtol=1e-12)
            sums, plain = np.ones((2, 299)), np.ones((2, 299))
            CPU.add_gains(gains, sums)
            REFERENCE.add_gains(gains, plain)
            assert np.array_equal(sums, plain)
