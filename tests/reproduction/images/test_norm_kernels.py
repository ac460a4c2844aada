"""Batch normalisation of images, a residual block's sum and the rectifier in one."""

import numpy as np
import pytest
import torch
from torch.nn.functional import batch_norm

from tests.kernels.gpu.tensors import DEVICE  # isort: skip - which skips where there is no Triton

from reproduction.images import norm_kernels as kernels  # isort: skip


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("channels", [8, 256])
def test_norm_relu(channels, added, gated, monkeypatch):
    """Against torch's in float64; two programs take several tiles in turn where channels are many."""
    monkeypatch.setattr(kernels, "_PROGRAMS", 2)
    rng = np.random.default_rng(channels)
    normal = lambda *shape: torch.from_numpy(rng.standard_normal(shape).astype(np.float32))  # noqa: E731
    x, shortcut, gradient = (image.to(memory_format=torch.channels_last) for image in normal(3, 3, channels, 5, 5))
    weight, bias = normal(2, channels)
    leaves = [tensor.double().requires_grad_() for tensor in (x, weight, bias, shortcut)]
    exact = torch.zeros(channels).double(), torch.ones(channels).double()
    expected = batch_norm(leaves[0], *exact, *leaves[1:3], training=True, momentum=0.1, eps=1e-5)
    expected = torch.relu((0.5 if gated else 1) * expected + (leaves[3] if added else 0))
    expected.backward(gradient.double())
    x, shortcut, gradient, weight, bias = (t.to(DEVICE) for t in (x, shortcut, gradient, weight, bias))
    running = torch.zeros(channels, device=DEVICE), torch.ones(channels, device=DEVICE)
    gate = torch.tensor([0.5], device=DEVICE) if gated else None
    out, saved = kernels.norm_relu(x, weight, bias, *running, gate, shortcut if added else None, 0.1, 1e-5)
    gradients = kernels.norm_relu_backward(gradient, x, out, saved, weight, gate, added)
    pairs = [(out, expected.detach()), *zip(running, exact)]
    pairs += zip(gradients[: 4 if added else 3], (leaf.grad for leaf in leaves))
    for tensor, truth in pairs:
        assert float((tensor.cpu() - truth).norm()) <= 1e-4 * float(truth.norm())
    assert added or gradients[3] is None


def test_channels_that_it_takes():
    assert [n for n in (1, 64, 96, 1024, 2048) if kernels.takes_channels(n)] == [1, 64, 1024]
