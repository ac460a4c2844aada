"""Optimisers that touch only the batch's rows, against torch.optim on dense copies of the same networks."""

import copy
import pickle

import numpy as np
import pytest
import torch
from torch import nn

from sketchnet.data import CsrBatch
from sketchnet.nn import NetworkConfig, SketchNetwork
from sketchnet.training import TrainingConfig, checkpoint
from sketchnet.training.optimisers import _more_powers, make_optimiser
from sketchnet.training.steps import choose_updates
from tests.data.test_shards import batch
from tests.nn.test_projection_layers import dense, dense_weight, weighted_loss, where
from tests.statistics import assert_mean, sample_size

D, K = 80, 10
SCHEMES = {"count_sketch": {}, "li": {"s": 4}}


def network(scheme="count_sketch", **options):
    # Before batch norm, the gradient of the projection's bias would be rounding alone.
    config = {"n_components": K, "hidden": (7,), "seed": 5, "normalise": "none", "options": SCHEMES[scheme], **options}
    net = SketchNetwork(NetworkConfig(D, 3, scheme, **config))
    torch.nn.init.normal_(net.layers[-1].weight, std=0.3, generator=torch.Generator().manual_seed(0))
    net.train()
    return net


def rows(number):
    """Batches of changing columns: each takes its few rows from another quarter or so of the columns."""
    x = batch(12, number, d=D, labels=None)
    return CsrBatch(x.indptr, (x.indices % 25 + 11 * number) % D, x.values, D)


def all_columns(number):
    values = np.random.default_rng(number).standard_normal(4 * D).astype(np.float32)
    return CsrBatch(D * np.arange(5), np.tile(np.random.default_rng(number).permutation(D), 4), values, D)


class Dense(nn.Module):
    """The same network with dense matrices, of which those of the projection are masked."""

    def __init__(self, net):
        super().__init__()
        self.projection = nn.Parameter(dense_weight(net.projection).detach())
        self.bias = nn.Parameter(net.projection.bias.detach().clone())
        self.layers = copy.deepcopy(net.layers)
        self.mask = (self.projection.detach() != 0).float()

    def forward(self, x):
        return self.layers(dense(x) @ (self.projection * self.mask) + self.bias)

    def groups(self, config):
        rest = [p for p in self.parameters() if p is not self.projection]
        return [
            {"params": [self.projection], "weight_decay": config.l2},
            {"params": [p for p in rest if p.ndim > 1], "weight_decay": config.l2},
            {"params": [p for p in rest if p.ndim == 1], "weight_decay": 0.0},
        ]


def step(net, optimiser, x):
    optimiser.zero_grad()
    weighted_loss(net(x)).backward()
    optimiser.step()


def assert_same_weights(net, twin, rtol=1e-5):
    pairs = [
        (net.projection.weight, twin.projection[where(net.projection)]),
        (net.projection.bias, twin.bias),
        *zip(net.layers.parameters(), twin.layers.parameters()),
    ]
    for ours, theirs in pairs:
        assert (ours - theirs).abs().max() <= rtol * theirs.abs().max()


def assert_identical(a, b):
    for (name, ours), theirs in zip(a.state_dict().items(), b.state_dict().values()):
        assert torch.equal(ours, theirs), name


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("l2", [0.0, 0.02])
def test_late_momentum_equals_dense_momentum(scheme, l2):
    """Over three epochs with different rates and momentum; most columns are in few of the ten batches of an epoch."""
    config = TrainingConfig(
        optimiser="sgd", epochs=3, rate=0.01, sparse_rate=0.5, l2=l2, momentum=(0.4, 0.9), decay=0.6
    )
    net = network(scheme)
    twin = Dense(net)
    start = copy.deepcopy(net.state_dict())
    optimiser = make_optimiser(net, config)
    theirs = torch.optim.SGD(twin.groups(config), lr=config.rate, momentum=0.4)
    for epoch, momentum in enumerate([0.4, 0.4 + 0.5 * 2 / 3, 0.9]):
        for group, factor in zip(theirs.param_groups, (0.5, 1, 1)):
            group["momentum"], group["lr"] = momentum, config.rate * config.decay**epoch * factor
        for number in range(10 * epoch, 10 * epoch + 10):
            optimiser.schedule(epoch, number / 30)
            step(net, optimiser, rows(number))
            step(twin, theirs, rows(number))
    optimiser.settle()
    assert_same_weights(net, twin)
    moved = (net.projection.weight - start["projection.weight"]).abs()
    assert moved.min() > 0  # all have moved, and by more than rounding
    assert moved.mean() > 0.01


def test_the_comparison_with_dense_momentum_can_fail():
    """Leaving the waiting rows alone, as a lazy optimiser would, is seen."""
    config = TrainingConfig(optimiser="sgd", epochs=1, rate=0.01)
    net = network()
    twin = Dense(net)
    optimiser = make_optimiser(net, config)
    net.projection.late = None
    theirs = torch.optim.SGD(twin.groups(config), lr=config.rate, momentum=0.5)
    for number in range(10):
        optimiser.schedule(0, number / 10)
        step(net, optimiser, rows(number))
        step(twin, theirs, rows(number))
    with pytest.raises(AssertionError):
        assert_same_weights(net, twin)


def test_momentum_after_more_steps_than_single_precision_can_count():
    """Rows keep the step that they are at as a number of float32, which cannot tell 2**24 from 2**24 + 1."""
    nets = [network(), network()]
    for net, begun in zip(nets, (0, 2**24 - 5)):
        optimiser = make_optimiser(net, TrainingConfig(optimiser="sgd", epochs=1, rate=0.01, l2=0.02))
        optimiser.schedule(0, 0.0)
        for name, matrix in optimiser._matrices.items():
            optimiser._now[name], optimiser._table(name)[:, -1] = begun, begun
            powers = np.zeros((begun + 256, 4))  # none but the first are ever asked for
            powers[:256] = _more_powers(np.eye(2).reshape(1, 4), matrix, 0)
            optimiser._powers[name] = powers
        for number in range(20):
            optimiser.schedule(0, number / 20)
            step(net, optimiser, rows(number))
        optimiser.settle()
    for ours, theirs in zip(*(net.parameters() for net in nets)):
        assert (ours - theirs).abs().max() <= 1e-6 * theirs.abs().max()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_lazy_adam_equals_adam_where_every_batch_has_every_column(scheme, l2):
    config = TrainingConfig(epochs=1, rate=0.01, sparse_rate=0.03, l2=l2)
    net = network(scheme)
    twin = Dense(net)
    optimiser, theirs = make_optimiser(net, config), torch.optim.AdamW(twin.groups(config))
    theirs.param_groups[0]["betas"] = (0.9, 0.99)  # the table's
    for number in range(30):
        fraction = number / 30
        factor = fraction / 0.05 if fraction < 0.05 else (1 + np.cos(np.pi * (fraction - 0.05) / 0.95)) / 2
        for group, rate in zip(theirs.param_groups, (0.03, 0.01, 0.01)):
            group["lr"] = rate * factor
        optimiser.schedule(0, fraction)
        step(net, optimiser, all_columns(number))
        step(twin, theirs, all_columns(number))
    assert_same_weights(net, twin)


def test_lazy_adam_leaves_the_other_rows_alone():
    net = network()
    optimiser = make_optimiser(net, TrainingConfig(epochs=1, l2=0.1))
    for number in range(6):
        optimiser.schedule(0, 0.3)
        before = {name: tensor.clone() for name, tensor in {**net.state_dict(), **optimiser.state()}.items()}
        step(net, optimiser, rows(number))
        used = np.zeros(D, bool)
        used[rows(number).indices] = True
        assert not used.all()
        after = {**net.state_dict(), **optimiser.state()}
        for name in ("projection.weight", "sparse.projection"):
            changed = (after[name] != before[name]).reshape(D, -1).any(dim=1).numpy()
            assert np.array_equal(changed, used), name


def test_the_rate_of_columns_for_those_who_set_none():
    net = network()
    optimiser = make_optimiser(net, TrainingConfig(epochs=1))
    before = net.projection.weight.detach().clone()
    optimiser.schedule(0, None)
    step(net, optimiser, all_columns(0))
    assert (net.projection.weight.detach() - before).abs().max() == pytest.approx(0.1, rel=1e-3)  # a first step of Adam
    assert TrainingConfig(optimiser="sgd").row_rate == 1.0
    assert TrainingConfig(sparse_rate=0.02).row_rate == TrainingConfig(optimiser="sgd", sparse_rate=0.02).row_rate


@pytest.mark.parametrize("optimiser", ["sgd", "adamw"])
@pytest.mark.parametrize("saved_at", [0, 1, 4, 10, 13])  # of epochs of ten steps
def test_a_saved_state_goes_on_to_the_same_bits(optimiser, saved_at, tmp_path):
    config = TrainingConfig(optimiser=optimiser, epochs=2, l2=0.01)

    def run(net, optimiser, steps):
        for number in steps:
            optimiser.schedule(number // 10, number / 20)
            step(net, optimiser, rows(number))
            if number % 10 == 9:
                optimiser.settle()

    whole = network("li")
    run(whole, make_optimiser(whole, config), range(20))
    first = network("li")
    saved = make_optimiser(first, config)
    run(first, saved, range(saved_at))
    checkpoint.write_tensors(tmp_path / "network", first.state_dict())
    checkpoint.write_tensors(tmp_path / "optimiser", saved.state())
    second = network("li")
    second.load_state_dict(checkpoint.read_tensors(tmp_path / "network")[0])
    loaded = make_optimiser(second, config)
    loaded.load_state(checkpoint.read_tensors(tmp_path / "optimiser")[0])
    run(second, loaded, range(saved_at, 20))
    assert_identical(second, whole)


@pytest.mark.parametrize("optimiser", ["sgd", "adamw"])
def test_a_batch_without_entries_is_a_step_like_any_other(optimiser):
    net = network()
    ours = make_optimiser(net, TrainingConfig(optimiser=optimiser, epochs=1))
    nothing = CsrBatch(np.zeros(5, np.int64), np.empty(0, np.int64), np.empty(0, np.float32), D)
    moved = []
    for number, x in enumerate([rows(0), nothing, rows(1), nothing]):
        before = net.projection.weight.detach().clone()
        ours.schedule(0, (number + 1) / 5)
        step(net, ours, x)
        ours.settle()
        moved.append(not torch.equal(net.projection.weight, before))
    assert moved == [True, optimiser == "sgd", True, optimiser == "sgd"]  # momentum goes on, lazy moments wait


@pytest.mark.parametrize("optimiser", ["sgd", "adamw"])
def test_a_step_that_eta_leaves_out_changes_neither_weights_nor_bias_of_the_projection(optimiser):
    net = network(eta=0.5)
    ours = make_optimiser(net, TrainingConfig(optimiser=optimiser, epochs=1, l2=0.1))
    seen = set()
    for number in range(20):
        ours.schedule(0, 0.3)
        choose_updates(net, 3, number)
        chosen = net.projection.weight.requires_grad
        seen.add(chosen)
        net.projection(rows(number))  # late rows are brought up to date when they are read
        before = copy.deepcopy(net.state_dict())
        step(net, ours, rows(number))
        assert (net.projection.weight.grad is not None) == chosen
        assert (net.projection.bias.grad is not None) == chosen
        for name, tensor in net.state_dict().items():
            if name.startswith("projection"):
                assert torch.equal(tensor, before[name]) != chosen
        assert not torch.equal(net.layers[-1].weight, before[f"layers.{len(net.layers) - 1}.weight"])
    assert seen == {False, True}


def updates(eta, n, seed):
    """Whether each of n steps updates the projection, as 0 and 1."""
    net = network(eta=eta)
    chosen = np.empty(n)
    for number in range(n):
        choose_updates(net, seed, number)
        assert net.projection.weight.requires_grad == net.projection.bias.requires_grad
        chosen[number] = net.projection.weight.requires_grad
    return chosen


def check_number_of_updates(eta, stated):
    n = sample_size(stated * (1 - stated), 0.1)
    chosen = updates(eta, n, seed=1)
    assert_mean(chosen, stated, stated * (1 - stated))
    assert_mean(chosen[1:] * chosen[:-1], stated**2, stated**2 * (1 - stated**2))
    return chosen


def test_eta_is_the_probability_of_an_update():
    chosen = check_number_of_updates(0.3, 0.3)
    assert not np.array_equal(chosen, updates(0.3, len(chosen), seed=2))
    with pytest.raises(AssertionError, match="is not 0.3"):
        check_number_of_updates(0.4, 0.3)
    assert updates(0.0, 1000, seed=1).sum() == 0
    assert updates(1.0, 1000, seed=1).sum() == 1000


@pytest.mark.parametrize("optimiser", ["adamw", "sgd"])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "pickle"])
def test_a_copy_goes_on_alone(optimiser, copied):
    """Weights and what stands behind them in the tables stay together, and apart from the original's."""
    net = network()
    ours = make_optimiser(net, TrainingConfig(optimiser=optimiser, epochs=1, rate=0.01))
    for number in range(5):
        ours.schedule(0, number / 10)
        step(net, ours, rows(number))
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    twin, theirs = copied((net, ours))
    for number in range(5, 10):
        theirs.schedule(0, number / 10)
        step(twin, theirs, rows(number))
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
    for number in range(5, 10):
        ours.schedule(0, number / 10)
        step(net, ours, rows(number))
    ours.close()
    theirs.close()
    assert_identical(net, twin)
    assert (net.projection.weight - before["projection.weight"]).abs().max() > 1e-3
