"""Retrieval curves on a CUDA device against the processor's."""

import numpy as np
import pytest
import torch
from scipy import sparse

from sketchnet.errors import InputError
from sketchnet.evaluation.retrieval import retrieval

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

NAMES = ("precision", "recall", "area", "mean_average_precision")


def make(n, kind, k=16, seed=0):
    """Codes of which some are equal and some are zero, and labels that fit a little."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 8, n)
    codes = 3 * rng.standard_normal((8, k))[classes] + 4 * rng.standard_normal((n, k))
    codes[::11], codes[5::13] = 0, 2 * codes[-1]
    sets = sparse.csr_array(np.eye(12, dtype=np.float32)[classes]) + sparse.random_array((n, 12), density=0.05, rng=rng)
    sets.data[:] = 1
    return codes.astype(np.float32), classes if kind == "classes" else sets


@pytest.mark.parametrize("kind", ["classes", "sets"])
@pytest.mark.parametrize("n", [2, 700, 3000])
def test_cuda_equals_cpu(n, kind):
    codes, labels = make(n, kind)
    if n == 2:
        labels = labels[[0, 0]]
    expected, ranks = retrieval(codes, labels), np.arange(1, n)
    for memory in (None, "64MiB"):
        found = retrieval(codes, labels, device="cuda", memory=memory)
        # 3000 similarities to a query have about one pair that differs by a rounding, 1e-7: such neighbours may change
        # places. So at a rank less than one query in all gains or loses a document; ten would mean something else.
        gained = n * ranks * (found.precision - expected.precision)
        assert np.abs(gained).max() < 10
        np.testing.assert_allclose(found.recall, expected.recall, atol=0.1 / n)
        np.testing.assert_allclose(found.area, expected.area, rtol=1e-6)
        np.testing.assert_allclose(found.mean_average_precision, expected.mean_average_precision, rtol=1e-6)
        assert (found.n_queries, found.n_left_out) == (expected.n_queries, expected.n_left_out)


@pytest.mark.parametrize("kind", ["classes", "sets"])
def test_ties_are_exactly_the_same(kind):
    """Similarities 0, ±1/2 and ±1, exact in any order of summing: every one is tied with many others."""
    rng = np.random.default_rng(1)
    some = np.array([[1, 0, 0, 0], [0, -1, 0, 0], [1, 1, 1, 1], [1, -1, 1, 1], [0, 0, 0, 0]], np.float32)
    codes = some[rng.integers(0, 5, 2000)]
    labels = rng.integers(0, 9, 2000)
    if kind == "sets":
        labels = sparse.random_array((2000, 9), density=0.2, rng=rng).ceil()
    expected, found = retrieval(codes, labels), retrieval(codes, labels, device="cuda")
    for name in NAMES:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)


def test_memory_stays_within_the_budget():
    codes, labels = make(6000, "classes")
    retrieval(codes[:100], labels[:100], device="cuda")  # loads what torch needs
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    retrieval(codes, labels, device="cuda", memory="64MiB")
    assert torch.cuda.max_memory_allocated() - before <= 64 * 2**20
    with pytest.raises(InputError, match="too little"):
        retrieval(codes, labels, device="cuda", memory=1000)
