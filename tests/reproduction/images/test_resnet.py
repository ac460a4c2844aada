"""The residual network's shape, gates and expectation at test time; augmentation against a plain loop."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from reproduction.images.augment import draw_moves, move
from reproduction.images.resnet import StochasticDepthResNet, norm_and_relu
from sketchnet.errors import InputError
from sketchnet.nn import init
from tests.statistics import assert_counts, assert_mean, sample_size


def images(n=4, channels=3, size=16, seed=0):
    return torch.randn(n, channels, size, size, generator=torch.Generator().manual_seed(seed))


def small(depth=8, **options):
    torch.manual_seed(0)
    return StochasticDepthResNet(depth, **options)


# He et al. 2016, table 6: 0.27 M and 1.7 M
@pytest.mark.parametrize(("depth", "millions", "blocks"), [(20, 0.27, 9), (110, 1.7, 54), (152, 2.4, 75)])
def test_size(depth, millions, blocks):
    net = StochasticDepthResNet(depth)
    assert sum(p.numel() for p in net.parameters()) == pytest.approx(millions * 1e6, rel=0.03)
    assert len(net.blocks) == blocks
    weighted = [m for m in net.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(weighted) == depth
    # survival falls in a straight line from nearly 1 to 0.5
    assert torch.allclose(net.survival, 1 - torch.arange(1, blocks + 1) / blocks * 0.5)


def test_shapes():
    net = small(20, n_classes=7, in_channels=1).eval()
    seen = []
    for block in net.blocks:
        block.register_forward_hook(lambda module, given, out: seen.append(tuple(out.shape[1:])))
    assert net(images(channels=1, size=32), net.survival).shape == (4, 7)
    assert seen == [(16, 32, 32)] * 3 + [(32, 16, 16)] * 3 + [(64, 8, 8)] * 3


def plain(net, x, factors, training):
    """The network once more, written out."""

    def norm(layer, y):
        mean, var = layer.running_mean, layer.running_var
        if training:
            mean, var = y.mean((0, 2, 3)), y.var((0, 2, 3), correction=0)
        y = (y - mean[:, None, None]) / (var[:, None, None] + layer.eps).sqrt()
        return y * layer.weight[:, None, None] + layer.bias[:, None, None]

    x = norm(net.stem[1], functional.conv2d(x, net.stem[0].weight, padding=1)).relu()
    for block, factor in zip(net.blocks, factors):
        stride = 2 if block.second.in_channels > x.shape[1] else 1
        y = norm(block.first_norm, functional.conv2d(x, block.first.weight, stride=stride, padding=1)).relu()
        y = norm(block.second_norm, functional.conv2d(y, block.second.weight, padding=1))
        kept = torch.zeros_like(y)
        kept[:, : x.shape[1]] = x[:, :, ::stride, ::stride]
        x = (kept + factor * y).relu()
    return net.head(x.mean((2, 3)))


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_gates_multiply_residuals(training):
    net, x = small(14).train(training), images()
    for gates in ([1.0, 0, 1, 0, 0, 1], [0.0] * 6, [0.5, 1, 0.25, 1, 2, 1]):
        close(net(x, torch.tensor(gates)), plain(net, x, gates, training))
        for layer in net.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.reset_running_stats()
    with pytest.raises(InputError, match="must be"):
        net(x, torch.ones(5))


def test_at_test_time_residuals_count_as_often_as_they_survive():
    net, x = small(14, survival=0.4).eval(), images()
    survival = [1 - 0.6 * step / 6 for step in range(1, 7)]
    close(net(x, net.survival), plain(net, x, survival, training=False))
    whole = small(14, survival=1.0).eval()
    close(whole(x, whole.survival), plain(whole, x, [1] * 6, training=False))
    # the first block comes after a rectifier that all inputs pass, so its output before the next one is the expectation
    block, h = net.blocks[0], images(channels=16).relu()
    residual = block.second_norm(block.second(norm_and_relu(block.first_norm, block.first(h))))
    by_gate = [block.shortcut(h) + gate * residual for gate in (0, 1)]
    expected = (1 - survival[0]) * by_gate[0] + survival[0] * by_gate[1]
    close(block(h, net.survival[0], norm_and_relu), expected.relu())


def test_blocks_survive_as_often_as_they_should():
    net = small(20)
    n = sample_size(0.25, 0.05)
    generator = torch.Generator().manual_seed(0)
    gates = net.draw_gates(generator, n).double().numpy()
    assert set(np.unique(gates)) == {0, 1}
    for block, p in enumerate(net.survival.tolist()):
        assert_mean(gates[:, block], p, p * (1 - p))
    assert_mean(gates[:, 7] * gates[:, 8], float(net.survival[7] * net.survival[8]), 0.25)  # independent


def test_it_learns():
    net, x = small(8), images(32, size=8)
    y = (x.mean((1, 2, 3)) > 0).long()
    optimiser = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for gates in net.draw_gates(torch.Generator().manual_seed(0), 40):
        optimiser.zero_grad()
        functional.cross_entropy(net(x, gates), y).backward()
        optimiser.step()
    assert float((net.eval()(x, net.survival).argmax(1) == y).float().mean()) > 0.9


def test_weights_come_from_torchs_generator_and_by_any_scheme():
    assert torch.equal(small().stem[0].weight, small().stem[0].weight)
    net = small(20)
    assert float(net.blocks[4].second.weight.detach().std()) == pytest.approx(np.sqrt(2 / 288), rel=0.05)
    done = init.apply_(net, "srht", where=nn.Conv2d, seed=1)
    assert len(done) == 19
    assert torch.isfinite(net.eval()(images(), net.survival)).all()


@pytest.mark.parametrize("wrong", [{"depth": 21}, {"depth": 2}, {"survival": 0.0}, {"survival": 1.5}])
def test_settings_are_checked(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        StochasticDepthResNet(**wrong)


# -- augmentation


def test_moves_against_a_plain_loop():
    x, pad = images(40, 2, 7)[:, :, :, :5], 2
    flips, down, right = draw_moves(40, pad, generator=torch.Generator().manual_seed(3))
    expected = torch.zeros_like(x)
    for n in range(40):
        for row in range(7):
            for column in range(5):
                to_row, to_column = row + int(down[n]), (4 - column if flips[n] else column) + int(right[n])
                if 0 <= to_row < 7 and 0 <= to_column < 5:
                    expected[n, :, to_row, to_column] = x[n, :, row, column]
    found = move(x, flips, down, right, pad)
    assert torch.equal(found, expected)
    assert found.is_contiguous()


def test_moves_are_uniform():
    flips, down, right = draw_moves(20_000, 4, generator=torch.Generator().manual_seed(0))
    assert_counts(torch.bincount(flips.long()).tolist(), [0.5, 0.5])
    assert_counts(torch.bincount(9 * (down + 4) + right + 4, minlength=81).tolist(), [1 / 81] * 81)
    assert down.min() == -4
    assert right.max() == 4
    flips, down, right = draw_moves(4, 0, generator=torch.Generator().manual_seed(0))
    assert torch.equal(move(images(), flips, down, right, 0).sort(dim=3).values, images().sort(dim=3).values)
