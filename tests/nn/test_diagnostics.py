"""Singular values against plain loops, and variance by depth where it is known."""

import numpy as np
import pytest
import torch
from torch import nn

from sketchnet.errors import InputError
from sketchnet.nn import init
from sketchnet.nn.diagnostics import isometry, orthogonality
from tests.nn.test_init import projections


@pytest.mark.parametrize(
    "layer",
    [
        nn.Linear(7, 5),
        nn.Conv2d(4, 6, 3),
        nn.Conv1d(4, 6, 3, groups=2),
        nn.ConvTranspose2d(6, 4, 3),
        nn.ConvTranspose1d(6, 4, 2, groups=2),
    ],
    ids=str,
)
def test_singular_values(layer):
    init.apply_(layer, "gaussian", seed=1)
    groups, transposed = getattr(layer, "groups", 1), "Transpose" in type(layer).__name__
    matrices = projections(layer.weight.detach(), groups, transposed)
    expected = np.array([np.linalg.svd(P, compute_uv=False) for P in matrices])
    found = orthogonality(layer)
    assert np.allclose(found.singular_values, expected, rtol=1e-6)
    assert found.scale == pytest.approx(np.sqrt(np.mean(expected**2)), rel=1e-6)
    assert found.deviation == pytest.approx(np.abs(expected / found.scale - 1).max(), rel=1e-6)
    assert found.condition == pytest.approx(expected.max() / expected.min(), rel=1e-6)
    bare = orthogonality(layer.weight, groups=groups, transposed=transposed)
    assert torch.equal(bare.singular_values, found.singular_values)


def test_which_schemes_are_isometries():
    weight = torch.empty(64, 256)
    for fill in (init.srht_, init.rom_, torch.nn.init.orthogonal_):
        assert orthogonality(fill(weight)).deviation < 1e-5
    # by the law of Marchenko and Pastur, singular values of normal weights reach from 1/2 to 3/2 of their scale
    assert orthogonality(init.gaussian_(weight, seed=0)).deviation == pytest.approx(0.5, abs=0.1)
    assert orthogonality(init.gaussian_(weight, seed=0)).scale == pytest.approx(np.sqrt(2), rel=0.01)
    none = orthogonality(torch.zeros(3, 4))
    assert (none.scale, none.deviation, none.condition) == (0, 1, np.inf)


def test_orthogonality_rejects():
    for wrong in (nn.BatchNorm2d(3), nn.ReLU(), torch.empty(3), torch.empty(0, 3), torch.ones(3, 3, dtype=torch.int32)):
        with pytest.raises(InputError):
            orthogonality(wrong)


def test_variance_by_depth():
    first, second = nn.Linear(50, 50), nn.Linear(50, 50)
    with torch.no_grad():
        first.weight.copy_(2 * torch.eye(50))
        second.weight.copy_(-3 * torch.eye(50))
    first.bias.data.fill_(1.0)
    second.bias.data.zero_()
    x = torch.randn(200, 50, generator=torch.Generator().manual_seed(0))
    found = isometry(nn.Sequential(first, nn.Identity(), second), x)
    assert [layer.name for layer in found] == ["0", "2"]
    for layer, y in zip(found, (2 * x + 1, -6 * x - 3)):
        assert layer.variance == pytest.approx(float(y.var(correction=0)), rel=1e-5)
        assert layer.mean_square == pytest.approx(float(y.square().mean()), rel=1e-5)
        assert layer.ratio == pytest.approx(float(y.square().mean() / x.square().mean()), rel=1e-5)


@pytest.mark.parametrize("scheme", ["he", "gaussian", "achlioptas", "li", "srht", "srht_sparse", "rom", "orthogonal"])
def test_activations_of_110_layers_neither_vanish_nor_explode(scheme):
    """No layer's variance leaves [1/200, 200] times the first one's; with 1.1 or 0.9 a layer it would be 10^4.5 of it.

    What a layer of n normal weights a unit makes of a squared length has a logarithm with the mean -2.5 / n and the
    variance 5 / n. For 110 layers of 512 that is -0.54 and 1.04^2, and ln 200 is 4.5 deviations away.
    """
    net = nn.Sequential(*(part for _ in range(110) for part in (nn.Linear(512, 512, bias=False), nn.ReLU())))
    options = {"srht_sparse": {"n_examples": 50_000}, "orthogonal": {"gain": np.sqrt(2)}}.get(scheme, {})
    init.apply_(net, scheme, seed=1, **options)
    x = torch.randn(32, 512, generator=torch.Generator().manual_seed(0))
    found = np.array([layer.variance for layer in isometry(net, x)])
    assert len(found) == 110
    assert found[0] == pytest.approx(2, rel=0.2)
    assert found.min() > found[0] / 200
    assert found.max() < found[0] * 200
    for layer in net[::2]:
        layer.weight.data *= 1.1**0.5
    assert isometry(net, x)[-1].variance > 200 * found[0]


def test_looking_changes_nothing():
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.Flatten(), nn.Linear(16, 2))
    net[2].eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    x = torch.randn(6, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    first, again = isometry(net, x), isometry(net, x)
    assert first == again
    assert [layer.name for layer in isometry(net, x, nn.BatchNorm2d)] == ["1"]
    assert [module.training for module in net] == [True, True, False, True, True]
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert not any(module._forward_hooks for module in net.modules())
    with pytest.raises(RuntimeError):
        isometry(net, x[:, :, :2])
    assert not any(module._forward_hooks for module in net.modules())
    assert net.training
