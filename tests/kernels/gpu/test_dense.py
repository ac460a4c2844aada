"""Dense rows: batch normalisation in training, moments of columns, normalising by them."""

from importlib import import_module

import numpy as np
import pytest
import torch
from torch.nn.functional import batch_norm

from sketchnet.kernels import backend
from tests.kernels.gpu.tensors import DEVICE, KERNELS, assert_close, there


def random_numbers(*shape):
    return torch.from_numpy(np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32))


@pytest.mark.parametrize(("n", "k"), [(2, 1), (30, 13), (1500, 9)])  # fewer rows than a program takes at a time, more
def test_batch_norm(n, k):
    """Against torch's in float64, of columns whose means are far from zero."""
    x, gradient, weight, bias = random_numbers(n, k) * 2 + 30, random_numbers(1, n, k)[0], *random_numbers(2, k)
    leaves = [tensor.double().requires_grad_() for tensor in (x, weight, bias)]
    exact = torch.zeros(k).double(), torch.ones(k).double()
    expected = batch_norm(leaves[0], *exact, *leaves[1:], training=True, momentum=0.1, eps=1e-5)
    expected.backward(gradient.double())
    x, gradient, weight, bias = (tensor.to(DEVICE) for tensor in (x, gradient, weight, bias))
    running = torch.zeros(k, device=DEVICE), torch.ones(k, device=DEVICE)
    out, saved = KERNELS.batch_norm(x, weight, bias, *running, 0.1, 1e-5, torch.float32)
    gradients = KERNELS.batch_norm_backward(gradient, x, weight, saved)
    pairs = [(out, expected.detach()), *zip(running, exact), *zip(gradients, (leaf.grad for leaf in leaves))]
    for tensor, truth in pairs:
        assert float((tensor.cpu() - truth).norm()) <= 1e-4 * float(truth.norm()) + 1e-4


def test_moments_and_normalising(monkeypatch):
    """In pieces of a few rows; with columns for two programs."""
    monkeypatch.setattr(import_module("sketchnet.kernels.gpu.moments"), "_AT_ONCE", 7000)
    rows = random_numbers(5, 3000).numpy() + 100
    mean, squares, largest = KERNELS.moments(*there(rows))
    _, exact, peaks = backend("reference").column_sums(rows, rows.mean(axis=0, dtype=np.float64))
    assert_close(mean, rows.mean(axis=0, dtype=np.float64), 1e-12)
    assert_close(squares, exact, 1e-9)
    assert_close(largest, peaks, 0)
    shift, scale = mean.float(), 1 / (1 + squares.float())
    out = torch.full((5, 3000), torch.nan, device=DEVICE)
    KERNELS.normalise(*there(rows), shift, scale, out)
    assert_close(out, (rows - shift.cpu().numpy()) * scale.cpu().numpy(), 1e-6)
