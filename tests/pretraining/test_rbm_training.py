"""Training: it raises the exact likelihood, its RBM is sampled from by its law, and it goes on where it was."""

import numpy as np
import pytest
import torch

from sketchnet import random
from sketchnet.data.csr import sparse_rows
from sketchnet.errors import InputError, Interrupted, TrainingError
from sketchnet.pretraining import RBM, RBMConfig, RBMTrainingConfig, make_rows, rbm_training, train_rbm
from sketchnet.pretraining.rbm_training import default_rate
from tests.pretraining.enumeration import contrastive_divergence, joint, mean_log_likelihood
from tests.statistics import assert_counts

PATTERNS = torch.tensor([[1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 1, 0, 1]]).float()


def train(data, visible="binary", hidden="binary", n_hidden=4, **settings):
    rbm = RBM(RBMConfig(data.shape[1], n_hidden, visible, hidden))
    settings = {"batch_size": 20, **settings}
    config = RBMTrainingConfig(**settings)
    return train_rbm(rbm, make_rows(data, config.batch_size, config.seed), config)


# -- likelihoods. What the data's own law reaches is a bound; the columns' means alone are the start.


def test_binary_training_raises_the_likelihood():
    data = PATTERNS.repeat(50, 1)
    best = -(0.5 * np.log(2) + 0.5 * np.log(4))  # of the three patterns
    start = mean_log_likelihood(train(data, epochs=1, rate=0.0), data)
    end = mean_log_likelihood(train(data, epochs=150), data)
    assert start == pytest.approx(_independent(data), abs=0.02)  # biases were set by the data
    assert end > start + 1.5
    assert best - 0.4 < end < best


def _independent(data):
    p = data.double().mean(0)
    return float((p * p.log() + (1 - p) * (1 - p).log()).sum())


def test_gaussian_training_raises_the_likelihood(monkeypatch):
    """Two clusters of unit variance, three deviations apart: the RBM is a mixture of normals, and can be exact."""
    generator = torch.Generator().manual_seed(0)
    side = torch.randint(0, 2, (1000, 1), generator=generator).float() * 2 - 1
    data = side * torch.tensor([[1.5, -1.5]]) + torch.randn(1000, 2, generator=generator)
    monkeypatch.setattr(rbm_training, "_NOISY", ("gaussian",))  # by its law the chain is exact
    start = mean_log_likelihood(train(data, "gaussian", epochs=1, rate=0.0), data)
    trained = train(data, "gaussian", n_hidden=2, epochs=60, rate=0.01, batch_size=100)
    end = mean_log_likelihood(trained, data)
    normal = -(np.log(2 * np.pi) + 1 + 0.5 * np.log(np.linalg.det(np.cov(data.numpy().T))))
    assert end > start + 1.0
    assert end > normal + 0.05  # better than the best single normal


def test_poisson_training_raises_the_likelihood():
    """Documents of three words, out of two topics that share no words."""
    words = torch.tensor([[0, 0, 1], [1, 1, 0], [2, 3, 3], [2, 2, 3], [0, 1, 1], [3, 3, 3]])
    data = torch.nn.functional.one_hot(words, 4).sum(1).float().repeat(30, 1)
    start = mean_log_likelihood(train(data, "poisson", epochs=1, rate=0.0), data, 3)
    end = mean_log_likelihood(train(data, "poisson", epochs=100), data, 3)
    assert start == pytest.approx(3 * np.log(1 / 4), abs=0.15)
    assert end > start + 1.0  # knowing the topic is worth 2 log 2 = 1.39
    assert end < start + 1.6


@pytest.mark.parametrize(("visible", "hidden"), [("gaussian", "relu"), ("relu", "relu"), ("binary", "gaussian")])
def test_other_rbms_learn_to_reconstruct(visible, hidden):
    generator = torch.Generator().manual_seed(1)
    data = torch.randn(500, 3, generator=generator) @ torch.randn(3, 12, generator=generator)
    data = {"gaussian": data, "relu": data.relu(), "binary": (data > 0).float()}[visible]
    history = train(data, visible, hidden, n_hidden=8, epochs=40, rate=0.01).history
    assert history[-1]["reconstruction"] < 0.5 * history[0]["reconstruction"]


def test_gibbs_samples_of_a_trained_rbm_follow_its_law():
    rbm = train(PATTERNS[:, :4].repeat(50, 1), n_hidden=3, epochs=40)
    twin = RBM(rbm.config).double()
    twin.load_state_dict({name: tensor.double() for name, tensor in rbm.state_dict().items()})
    law, n = joint(twin).sum(1).numpy(), 20_000
    generator = torch.Generator().manual_seed(5)
    v = torch.rand(n, 4, generator=generator).round()
    for _ in range(300):
        v = rbm.sample_visible(rbm.sample_hidden(v, generator), generator)
    found = torch.bincount(v.long() @ (2 ** torch.arange(4).flip(0)), minlength=16).numpy()
    often = law * n >= 20  # the others are counted together, as a chi-square test wants
    assert_counts([*found[often], found[~often].sum()], [*law[often], law[~often].sum()])
    assert law.max() > 3 / 16  # it has learnt something


# -- settings


def test_momentum_l2_and_rate_are_those_of_the_definition(monkeypatch):
    """A few steps, written plainly from the chains that the same generators make."""
    data = PATTERNS.repeat(5, 1)
    for name, value in {"_MOMENTUM": (0.2, 0.7), "_SLOW_EPOCHS": 1, "_L2": 0.1}.items():
        monkeypatch.setattr(rbm_training, name, value)
    config = RBMTrainingConfig(epochs=3, batch_size=7, rate=0.3, seed=3)
    found = train_rbm(RBM(RBMConfig(5, 4)), make_rows(data, 7, 3), config)
    plain = RBM(RBMConfig(5, 4))
    p = (data.sum(0) + 0.5) / (len(data) + 1)
    plain.visible_bias.copy_(torch.log(p / (1 - p)))
    velocity = {name: torch.zeros_like(tensor) for name, tensor in plain.state_dict().items()}
    for epoch, (momentum, rate) in enumerate([(0.2, 0.3), (0.7, 0.3), (0.7, 0.3)]):
        for step, batch in enumerate(make_rows(data, 7, 3).batches(epoch)):
            word = random.words(3, random.STREAM_RBM, epoch << 32 | step, 0).view(np.uint64)[0, 0] >> np.uint64(1)
            gradient, _ = contrastive_divergence(plain, batch, 1, torch.Generator().manual_seed(int(word)))
            gradient["weight"] -= 0.1 * plain.weight
            for name, tensor in plain.state_dict().items():
                velocity[name] = momentum * velocity[name] + rate * gradient[name]
                tensor += velocity[name]
    for name, tensor in plain.state_dict().items():
        assert torch.allclose(found.state_dict()[name], tensor, atol=1e-6), name


def test_biases_from_data():
    data = torch.tensor([[3.0, 0, 1], [0, 0, 4]])
    bias = train(data, "poisson", epochs=1, rate=0.0).visible_bias
    assert torch.allclose(bias, torch.log(torch.tensor([3.5, 0.5, 5.5]) / 9.5))
    assert torch.allclose(train(data, "gaussian", epochs=1, rate=0.0).visible_bias, data.mean(0))


def test_history_and_the_gap_of_free_energies():
    data, records, ticks = PATTERNS.repeat(10, 1), [], []
    rbm = RBM(RBMConfig(5, 3))
    rows, other = make_rows(data, 8), make_rows(1 - data[:10], 8)
    train_rbm(
        rbm, rows, RBMTrainingConfig(epochs=4), valid=other, report=records.append, tick=lambda *a: ticks.append(a)
    )
    assert records == rbm.history
    assert [record["epoch"] for record in records] == [1, 2, 3, 4]
    assert {(record["stage"], record["layer"]) for record in records} == {("rbm", 0)}
    chosen = np.concatenate(list(rows.order(0)))[:10]
    gap = rbm.free_energy(1 - data[:10]).mean() - rbm.free_energy(data[chosen]).mean()
    assert records[-1]["free_energy_gap"] == pytest.approx(float(gap), rel=1e-5)
    assert [tick[:2] for tick in ticks] == [(i + 1, 20) for i in range(20)]
    assert "free_energy_gap" not in train(data, "gaussian", "relu", epochs=1).history[0]


@pytest.mark.parametrize("make", [torch.clone, lambda data: sparse_rows(data.numpy())], ids=["dense", "sparse"])
def test_the_gap_is_near_zero_for_rows_like_those_trained_on_in_any_order(make):
    """Stored pattern by pattern, rows are chosen by a seed: shares of the two differ by few of 200 rows."""
    data = PATTERNS[:2].repeat_interleave(200, dim=0)
    rbm, rows, valid = RBM(RBMConfig(5, 3)), make_rows(make(data), 8), make_rows(make(data[::2]), 8)
    train_rbm(rbm, rows, RBMTrainingConfig(epochs=2), valid=valid)
    one, other = rbm.free_energy(PATTERNS[:2]).tolist()
    assert abs(one - other) > 0.5  # or any rows would do
    assert abs(rbm.history[-1]["free_energy_gap"]) < 0.1 * abs(one - other)


@pytest.mark.parametrize("visible", ["poisson", "binary"])
def test_sparse_rows_train_as_dense_ones(visible, monkeypatch):
    """In the rows' order of the sparse reader, which groups them differently: so one batch an epoch holds all."""
    rng = np.random.default_rng(0)
    dense = (rng.random((60, 400)) < 0.01).astype(np.float32)
    sparse, other = RBM(RBMConfig(400, 6, visible)), RBM(RBMConfig(400, 6, visible))
    monkeypatch.setattr(rbm_training, "_NOISY", ())  # draws are by place, and the places differ
    config = RBMTrainingConfig(epochs=1, batch_size=60)
    a = train_rbm(sparse, make_rows(sparse_rows(dense), 60), config)
    order = next(iter(make_rows(sparse_rows(dense), 60).order(0)))
    b = train_rbm(other, _InOrder(torch.from_numpy(dense[order])), config)
    assert torch.allclose(a.weight, b.weight, atol=1e-6)
    assert torch.allclose(a.visible_bias, b.visible_bias, atol=1e-5)
    assert a.history[0]["reconstruction"] == pytest.approx(b.history[0]["reconstruction"], rel=1e-5)


class _InOrder:
    """Rows in one batch, as they are."""

    def __init__(self, rows):
        self.rows, self.n_batches, (self.n_rows, self.n_columns) = rows, 1, rows.shape

    def batches(self, epoch, skip=0):
        return iter([self.rows][skip:])

    def in_order(self):
        return iter([self.rows])


def test_default_rates_are_smaller_for_units_without_bounds():
    kinds = ("binary", "binary"), ("binary", "relu"), ("gaussian", "relu")
    rates = [default_rate(*kind, 100) for kind in kinds]
    assert rates[0] > rates[1] > rates[2]
    assert default_rate("gaussian", "relu", 2000) < rates[-1]


# -- going on, stopping, failing


def reach(data, visible, hidden, state=None):
    """(RBM, what was saved)."""
    rbm, saved = RBM(RBMConfig(data.shape[1], 6, visible, hidden)), []
    config = RBMTrainingConfig(epochs=8, batch_size=30)  # past the fifth, where momentum changes
    train_rbm(rbm, make_rows(data, 30), config, save=lambda *state: saved.append(state), state=state)
    return rbm, saved


@pytest.mark.parametrize(("visible", "hidden"), [("binary", "binary"), ("gaussian", "relu"), ("poisson", "gaussian")])
def test_going_on_after_any_epoch_ends_with_the_same_bits(visible, hidden):
    data = torch.randint(0, 2, (100, 11), generator=torch.Generator().manual_seed(2)).float()
    whole, saved = reach(data, visible, hidden)
    assert [notes["epoch"] for _, notes in saved] == [1, 2, 3, 4, 5, 6, 7, 8]
    for state in saved:
        again, _ = reach(data, visible, hidden, state=state)
        assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in whole.state_dict().items())
        lasting = [{k: v for k, v in record.items() if k != "seconds"} for record in again.history]
        assert lasting == [{k: v for k, v in record.items() if k != "seconds"} for record in whole.history]


@pytest.mark.parametrize("stop_after", [1, 4, 7, 16])  # the fourth step ends an epoch, the sixteenth the last
@pytest.mark.parametrize("sparse", [False, True])
def test_stopped_in_a_step_it_goes_on_to_the_same_bits(stop_after, sparse):
    data = torch.randint(0, 2, (100, 11), generator=torch.Generator().manual_seed(2)).float()
    rows = make_rows(sparse_rows(data.numpy()) if sparse else data, 30)
    config = RBMTrainingConfig(epochs=4, batch_size=30)
    whole = train_rbm(RBM(RBMConfig(11, 6)), rows, config)
    saved, steps = [], [0]

    def asked_to_stop():
        steps[0] += 1
        return steps[0] == stop_after

    with pytest.raises(Interrupted, match="to go on"):
        train_rbm(RBM(RBMConfig(11, 6)), rows, config, asked_to_stop=asked_to_stop, save=lambda *s: saved.append(s))
    again = train_rbm(RBM(RBMConfig(11, 6)), rows, config, state=saved[-1])
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in whole.state_dict().items())
    assert again.history[0]["reconstruction"] == whole.history[0]["reconstruction"]


def test_seeds_matter():
    data = PATTERNS.repeat(10, 1)
    assert torch.equal(train(data, epochs=2).weight, train(data, epochs=2).weight)
    assert not torch.equal(train(data, epochs=2).weight, train(data, epochs=2, seed=1).weight)


def test_weights_that_grow_without_bound_are_an_error():
    data = 100 * torch.randn(100, 8, generator=torch.Generator().manual_seed(0))
    with pytest.raises(TrainingError, match="layer 1 is no longer finite in epoch 1.*the rate 10 may be too high"):
        train(data, "gaussian", "gaussian", rate=10.0)


def test_a_default_rate_gives_way_if_weights_grow_without_bound():
    """Where a rate was given, it counts: that is an error, above. Going on from a checkpoint keeps the calmer rate."""
    data, kept = 25 * torch.randn(400, 8, generator=torch.Generator().manual_seed(0)), []
    told = []

    def go(state=None):
        rbm = RBM(RBMConfig(8, 4, "gaussian", "gaussian"))
        config = RBMTrainingConfig(batch_size=20, epochs=6)
        rows = make_rows(data, 20, 0)
        return train_rbm(rbm, rows, config, save=lambda *found: kept.append(found), state=state, report=told.append)

    whole = go()
    assert [notes["epoch"] for _, notes in kept][-6:] == [1, 2, 3, 4, 5, 6]
    tries = kept[-1][1]["tries"]
    assert 1 <= tries < 4
    restarts, first = whole.history[:tries], default_rate("gaussian", "gaussian", 8)
    assert [(record["stage"], record["layer"]) for record in restarts] == [("rbm_restart", 0)] * tries
    assert [record["rate"] for record in restarts] == [first * 0.25 ** (number + 1) for number in range(tries)]
    assert all(1 <= record["epoch"] <= 6 for record in restarts)
    assert [(record["stage"], record["epoch"]) for record in whole.history[tries:]] == [("rbm", e) for e in range(1, 7)]
    assert [record for record in told if record["stage"] == "rbm_restart"] == restarts
    with pytest.raises(TrainingError):
        train(data, "gaussian", "gaussian", rate=default_rate("gaussian", "gaussian", 8))
    resumed = go(state=kept[-3])
    assert resumed.history[:tries] == restarts
    assert torch.equal(whole.weight, resumed.weight)
    assert torch.equal(whole.visible_bias, resumed.visible_bias)


def test_bad_rows():
    with pytest.raises(InputError, match="binary units take values from 0 to 1, but a row has 3"):
        train(3 * PATTERNS)
    with pytest.raises(
        InputError, match="poisson units take counts: whole numbers from 0 to 2\\*\\*31, but a row has -1"
    ):
        train(-PATTERNS, "poisson")
    with pytest.raises(InputError, match="a row has nan"):
        train(PATTERNS * float("nan"), "gaussian")
    with pytest.raises(InputError, match="no rows to learn from"):
        make_rows(np.empty((0, 4)))
    with pytest.raises(InputError, match="5 columns, but there are 3 visible units"):
        train_rbm(RBM(RBMConfig(3, 2)), make_rows(PATTERNS), RBMTrainingConfig())
    with pytest.raises(InputError, match="two, rows and columns"):
        make_rows(np.ones(4))


def test_bad_settings():
    for settings, message in [
        ({"epochs": 0}, "epochs=0"),
        ({"rate": -1.0}, "rate=-1"),
        ({"steps": 0}, "steps=0"),
    ]:
        with pytest.raises(InputError, match=message):
            RBMTrainingConfig(**settings)
