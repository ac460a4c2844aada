"""Training of residual networks on images: against a plain loop with torch's own optimiser, and what chance decides."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from reproduction.images.augment import draw_moves, move
from reproduction.images.data import ImagesOnDevice
from reproduction.images.resnet import StochasticDepthResNet
from reproduction.images.run import ImageRun
from reproduction.images.training import ImageConfig, Images, train_together
from sketchnet.errors import InputError
from sketchnet.nn import init
from tests.reproduction.images.separable import separable
from tests.statistics import assert_counts, assert_mean, sample_size

SMALL = ImageConfig(depth=8, width=4, epochs=2, batch_size=16, pad=1)
TRAIN, TEST = separable(), separable(150, seed=1)


def run_of(config, train=TRAIN):
    return ImageRun(config, ImagesOnDevice(train, TEST, torch.device("cpu")))


def test_it_learns_and_reports():
    """Chance is an error of 2/3."""
    records = []
    errors = train_together([SMALL], TRAIN, TEST, report=records.append)[0]
    assert len(errors) == 2
    assert errors[-1] <= 0.05
    assert [r["test_error"] for r in records] == errors
    assert records[1]["loss"] < records[0]["loss"]


def test_the_seed_decides_everything():
    """Whatever torch's own generator was at, which is left alone; and alone or beside another network."""
    before = torch.random.get_rng_state()
    first = weights(SMALL)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.rand(5)
    again, other = weights(SMALL), weights(replace(SMALL, seed=1))
    for name, tensor in first.items():
        assert torch.equal(again[name], tensor)
    assert not torch.equal(other["head.weight"], first["head.weight"])
    configs = [SMALL, replace(SMALL, seed=1, scheme="srht")]
    alone = [train_together([config], TRAIN, TEST)[0] for config in configs]
    assert train_together(configs, TRAIN, TEST) == alone


def weights(config):
    run = run_of(config)
    run.begin(0)
    for _ in range(3):
        run.advance()
    return run._net.state_dict()


def test_steps_are_those_of_torchs_sgd():
    """An epoch once more with plain means: images normalised in float64, gates given, torch's optimiser."""
    config = replace(SMALL, l2=0.01, scheme="orthogonal", options={"gain": 1.4})
    run = run_of(config)
    net = StochasticDepthResNet(8, 3, width=4)
    net.load_state_dict(run._net.state_dict())
    state = run._numbers.get_state()
    run.begin(0)
    for _ in range(run.n_batches):
        run.advance()

    numbers = torch.Generator()
    numbers.set_state(state)
    order = torch.randperm(240, generator=numbers)
    flips, down, right = draw_moves(240, 1, generator=numbers)
    gates = net.draw_gates(numbers, 15)
    wide = TRAIN.pixels.astype(np.float64)
    wide = (wide - wide.mean((0, 2, 3), keepdims=True)) / wide.std((0, 2, 3), keepdims=True)
    optimiser = torch.optim.SGD(net.parameters(), 0.1, 0.9, weight_decay=0.01, nesterov=True)
    losses = []
    for step in range(15):
        part = slice(16 * step, 16 * step + 16)
        x = move(torch.tensor(wide[order[part]], dtype=torch.float32), flips[part], down[part], right[part], 1)
        loss = nn.functional.cross_entropy(net(x, gates[step]), torch.tensor(TRAIN.labels[order[part]]))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    for name, tensor in net.state_dict().items():
        torch.testing.assert_close(run._net.state_dict()[name], tensor, rtol=2e-3, atol=2e-4)
    run.evaluate()
    assert run.result()[1] == pytest.approx(np.mean(losses), rel=1e-3)


def test_convolutions_begin_by_the_scheme():
    run = run_of(replace(SMALL, scheme="count_sketch", options={"gamma": 0.3}, seed=5))
    net = StochasticDepthResNet(8, 3, width=4)
    init.apply_(net, "count_sketch", where=nn.Conv2d, seed=5, gamma=0.3)
    for mine, theirs in zip(run._net.modules(), net.modules()):
        if isinstance(mine, nn.Conv2d):
            assert torch.equal(mine.weight, theirs.weight)


def test_schedule():
    """At half and at three quarters of the epochs, as Huang et al. (2016) have it: after 250 and 375 of 500."""
    published = ImageConfig(epochs=500)
    rates = [published.rate_at(epoch) for epoch in (0, 249, 250, 374, 375, 499)]
    assert rates == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001, 0.001])
    config = ImageConfig(epochs=30, rate=0.2, factor=0.5)
    assert [config.rate_at(epoch) for epoch in range(30)] == [0.2] * 15 + [0.1] * 8 + [0.05] * 7
    run = run_of(replace(SMALL, epochs=4))
    for epoch in range(4):
        run.begin(epoch)
        assert float(run._rate) == pytest.approx([0.1, 0.1, 0.01, 0.001][epoch])


def test_what_an_epoch_draws():
    """Images once at most; gates by their chances of survival, independent; flips and shifts uniform."""
    n_batches = sample_size(0.25, 0.2)
    train = separable(4 * n_batches + 3)
    run = run_of(replace(SMALL, batch_size=4, survival=0.4), train)
    run.begin(0)
    order, flips, down, right, gates = (x.clone() for x in run._plan)
    assert order.shape == (n_batches, 4)
    assert len(order.unique()) == 4 * n_batches
    for block, p in enumerate([0.8, 0.6, 0.4]):
        assert_mean(gates[:, block].double(), p, p * (1 - p))
    assert_mean((gates[:, 0] * gates[:, 2]).double(), 0.32, 0.25)
    assert_counts(torch.bincount(flips.view(-1).long()).tolist(), [0.5, 0.5])
    assert_counts(torch.bincount((3 * down + right + 4).view(-1), minlength=9).tolist(), [1 / 9] * 9)
    run.begin(1)
    assert not torch.equal(run._plan[0], order)


def test_the_test_error_is_a_share():
    run = run_of(SMALL)
    run.evaluate()
    run.evaluate()
    x = run._data.normalised(run._data.test[0])
    with torch.no_grad():
        expected = float((run._net.eval()(x, run._net.survival).argmax(1) != run._data.test[1]).float().mean())
    assert run.result()[0] == pytest.approx(expected)


def test_bad_input():
    with pytest.raises(InputError, match="uint8"):
        train_together([SMALL], Images(TRAIN.pixels.astype(np.float32), TRAIN.labels), TEST)
    with pytest.raises(InputError, match="test has uint8 pixels of shape"):
        train_together([SMALL], TRAIN, separable(size=9))
    with pytest.raises(InputError, match="train has labels"):
        train_together([SMALL], Images(TRAIN.pixels, TRAIN.labels[1:]), TEST)
    with pytest.raises(InputError, match="the same epochs"):
        train_together([SMALL, replace(SMALL, epochs=3)], TRAIN, TEST)
    for wrong in ({"epochs": 0}, {"batch_size": 1}, {"rate": -1}, {"momentum": 1.0}, {"seed": -1}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            ImageConfig(**wrong)
