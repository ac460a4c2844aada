"""Sparse rows at chosen frequencies of the Walsh-Hadamard transform."""

import numpy as np
import pytest
import torch

from sketchnet import random
from sketchnet.kernels import backend
from tests.kernels.gpu.tensors import DEVICE, KERNELS, assert_close, make_rows, there


@pytest.mark.parametrize(("size", "ids"), [(2**13, np.int32), (2**32, np.int64), (2**63, np.int64)])
def test_hadamard_rows(size, ids):
    """Frequencies in half the bits and in all, a few of them for each column, other columns left alone."""
    rng, k, columns = np.random.default_rng(0), 40, slice(2, 42)
    rows, key = make_rows([4, 0, 5], min(size, 2**62), ids, begin=3), random.hash_key(3, 5)
    f_ptr = np.cumsum([0, *rng.integers(0, 3, k)])
    f_at = rng.integers(0, size, f_ptr[-1], np.uint64)
    weights = rng.standard_normal(f_ptr[-1]).astype(np.float32)
    exact = np.full((3, k + 5), np.nan)
    backend("reference").hadamard_sparse(*rows, key, size, 10, False, f_ptr, f_at, weights, 0.5, exact, columns)
    forms = [f_at.view(np.int64)] + ([f_at.astype(np.uint32).view(np.int32)] if size <= 2**32 else [])
    for frequencies in forms:
        out = torch.full((3, k + 5), torch.nan, device=DEVICE)
        KERNELS.hadamard_sparse(*there(*rows), key, *there(f_ptr, frequencies, weights), 0.5, out, columns)
        assert_close(out, exact)
