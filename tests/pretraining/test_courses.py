"""Courses of training that begin with machines: what they leave in the layers, and wherever they were cut off.

Runs have 400 rows: 4 steps an epoch for a machine, 8 for the network; 2 epochs for each machine, 3 for the network.
"""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from sketchnet.data import CsrBatch
from sketchnet.data.csr import sparse_rows
from sketchnet.errors import InputError, Interrupted, TrainingError
from sketchnet.nn import Autoencoder, AutoencoderConfig, NetworkConfig, SketchNetwork
from sketchnet.pretraining import RBM, LayerSpec, RBMTrainingConfig, pretrain_stack
from sketchnet.pretraining.autoencoder import AutoencoderSteps, Unsupervised, build_autoencoder
from sketchnet.pretraining.course import Pretrained, machine_config, settle_norms, unfold
from sketchnet.pretraining.rows import DenseRows, SparseRows, make_rows
from sketchnet.training import Model, Task, TrainingConfig, checkpoint
from sketchnet.training.defaults import choose_device, make_configs
from sketchnet.training.examples import Examples
from sketchnet.training.loop import train
from sketchnet.training.processes import Processes
from tests.training.toy import D, assert_same_network, examples, make_model, without_seconds

PRETRAIN = {"pretrain": 2, "seed": 3}
FIXED = {"learn": False, "wide": False, "normalise": "standard", "n_components": 16, "hidden": (12, 8), "dropout": 0.2}
LEARNT = {"n_components": 16, "hidden": (12, 8), "feature_dropout": 0.2, "eta": 0.7}
CHOSEN = {"sparse_rate": None, "wide_rate": None, "blend": True}  # rates that are tried, between machines and epochs


def classifier(network=FIXED, seed=3, kind="binary", **training):
    def run(**options):
        given, task = examples(kind, 400)
        valid = examples(kind, 100, seed=1, task=task)[0]
        model = make_model(task, {**PRETRAIN, **training, "seed": seed}, **network)
        train(model, given, valid, course=Pretrained(), **options)
        return model

    return run


def documents(n, seed=0, d=40):
    return np.random.default_rng(seed).poisson(0.15, (n, d)).astype(np.float32)


def unsupervised(seed=3, network=(), **training):
    def run(**options):
        config = AutoencoderConfig(40, **{"hidden": (12, 8), "n_codes": 3, "seed": seed, **dict(network)})
        how = {"batch_size": 50, "epochs": 3, "blend": False, **PRETRAIN, "seed": seed, **training}
        model = Model(Autoencoder(config), Task("autoencoder"), TrainingConfig(**how))
        given, valid = (Examples(sparse_rows(documents(n, n)), np.zeros(n)) for n in (400, 100))
        train(model, given, valid, course=Unsupervised(), **options)
        return model

    return run


REAL = {"visible": "real", "scheme": "count_sketch", "n_components": 10, "units": "relu", "binary_codes": True}
COURSES = {
    "fixed": classifier(),
    "learnt": classifier(LEARNT, **CHOSEN),
    "counts": unsupervised(),
    "real": unsupervised(network=REAL),
}
MACHINES = {"fixed": 2, "learnt": 2, "counts": 3, "real": 3}


# -- what machines leave in the layers


def hidden_layers(model):
    return [layer for layer in model.network.layers if isinstance(layer, nn.Linear)][:-1]


def pretrained_alone(dense, data, widths, kinds, visible, rate=None):
    """The machines of a stack on dense rows, in the order in which a network reads `data`."""
    rows = DenseRows(torch.as_tensor(dense, dtype=torch.float32), 100, 3, SparseRows(data, 100, 3).order)
    layers = [LayerSpec(nn.Linear(a, b), kind) for a, b, kind in zip(widths, widths[1:], kinds)]
    return pretrain_stack(layers, visible, rows, RBMTrainingConfig(epochs=2, seed=3, rate=rate))


def test_hidden_layers_begin_as_the_stack_of_standardised_projected_rows():
    model = classifier(rate=0.0, pretrain_rate=0.03)()  # epochs that change nothing, after machines that learn a lot
    data = examples("binary", 400)[0].data
    projected = model.network.projection.operator.apply(data).astype(np.float64)
    rows = (projected - projected.mean(axis=0)) / projected.std(axis=0)
    machines = pretrained_alone(rows, data, (16, 12, 8), ("relu", "relu"), "gaussian", rate=0.03)
    for number, (layer, machine) in enumerate(zip(hidden_layers(model), machines, strict=True)):
        assert (machine.weight - RBM(replace(machine.config, seed=3 + number)).weight).abs().max() > 1e-3
        torch.testing.assert_close(layer.weight.detach(), machine.weight.detach(), atol=1e-5, rtol=0)
        torch.testing.assert_close(layer.bias.detach(), machine.hidden_bias.detach(), atol=1e-5, rtol=0)
        assert layer.weight.requires_grad
    stages = [record.get("stage", "epoch") for record in model.history]
    assert stages == ["rbm"] * 4 + ["rates"] + ["project"] + ["epoch"] * 4


def test_autoencoders_begin_as_the_stack_and_go_back_by_its_transpose():
    model = unsupervised(rate=0.0)()
    rows = documents(400, 400)
    machines = pretrained_alone(rows, sparse_rows(rows), (40, 12, 8, 3), ("binary", "binary", "gaussian"), "poisson")
    network = model.network
    for up, machine in zip(network.encoder, machines, strict=True):
        assert torch.equal(up.weight, machine.weight)
        assert torch.equal(up.bias, machine.hidden_bias)
    for down, machine in zip(network.decoder, machines[::-1], strict=True):
        assert torch.equal(down.weight, machine.weight.t())
        assert torch.equal(down.bias, machine.visible_bias)
    # What is given back is then what the machines' means are, one after the other.
    x = states = torch.from_numpy(documents(7))
    for machine in machines:
        states = machine.hidden_mean(states)
    for machine in machines[:0:-1]:
        states = machine.visible_mean(states)
    shares = torch.softmax(network.decode(network.encode(x)), dim=1) * x.sum(dim=1, keepdim=True)
    torch.testing.assert_close(shares, machines[0].visible_mean(states, x.sum(dim=1)))


def test_kinds_of_an_autoencoders_machines():
    for network, kinds in (
        ({}, ["poisson binary", "binary binary", "binary gaussian"]),
        ({"binary_codes": True}, ["poisson binary", "binary binary", "binary binary"]),
        (REAL, ["gaussian relu", "relu relu", "relu binary"]),
        ({"hidden": ()}, ["poisson gaussian"]),
    ):
        found = []

        def spy(network, machines, found=found):
            found += [f"{machine.config.visible} {machine.config.hidden}" for machine in machines]
            unfold(network, machines)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sketchnet.pretraining.course.unfold", spy)
            unsupervised(network=network, epochs=1)()
        assert found == kinds


def test_machines_see_rows_as_the_network_will():
    """Columns are divided by their largest values before the projection, not after pretraining."""
    data = examples("binary", 400)[0].data
    scaled = data.values * (1 + data.indices % 3).astype(np.float32)
    targets = examples("binary", 400)[0].targets
    task = Task("binary", ("no", "yes"))
    found = []
    for values, scale in ((scaled, "max_abs"), (data.values / np.where(data.indices < 12, 2, 1), "none")):
        batch = CsrBatch(data.indptr, data.indices, values.astype(np.float32), D)
        training = {**PRETRAIN, "epochs": 1, "rate": 0.0, "pretrain_rate": 0.03}
        model = make_model(task, training, **FIXED, scale_input=scale, seed=3)
        train(model, Examples(batch, targets), None, course=Pretrained())
        found.append([layer.weight.detach() for layer in hidden_layers(model)])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=0)


def test_columns_that_never_vary_are_zero_for_the_machines():
    """All rows have the first columns in common, and some of 64 buckets get nothing else; others get nothing at all."""
    rng = np.random.default_rng(0)
    x = np.zeros((400, 30), np.float32)
    x[:, :8] = 0.1
    x[:, 8:] = rng.random((400, 22)) < 0.2
    model = make_model(Task("binary", (0, 1)), PRETRAIN, **{**FIXED, "n_components": 64, "scheme": "count_sketch"})
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sketchnet.pretraining.course._pretrain", lambda *a: (seen.append(a[3][0](sparse_rows(x))), None))
        train(model, Examples(sparse_rows(x), rng.integers(0, 2, 400)), None, course=Pretrained())
    projected = model.network.project(sparse_rows(x)).numpy()
    constant = np.ptp(projected, axis=0) == 0
    assert 0 < (projected[0, constant] != 0).sum() < constant.sum() < 64
    assert not seen[0][:, constant].any()
    np.testing.assert_allclose(seen[0][:, ~constant].std(dim=0, correction=0).numpy(), 1, atol=1e-4)


@pytest.mark.parametrize("course", COURSES)
def test_memory_changes_nothing_but_rounding(course):
    """Rows are kept, or computed anew for every batch."""
    kept, anew = COURSES[course](), COURSES[course](memory="1KB")
    for name, tensor in kept.network.state_dict().items():
        torch.testing.assert_close(anew.network.state_dict()[name], tensor, atol=2e-3, rtol=2e-3, msg=name)


def test_rows_are_kept_within_the_budget_only():
    model = unsupervised(epochs=1, pretrain=0)()
    for budget, kept in ((4 * 400 * 40, True), (4 * 400 * 40 - 1, False)):
        given = Examples(sparse_rows(documents(400)), np.zeros(400))
        steps = AutoencoderSteps(model, given, budget, Processes())
        assert (steps._kept is not None) == kept
        for skip in (0, 5):
            found = list(steps.batches(2, skip))
            assert len(found) == 8 - skip
            for rows, batch in found:
                np.testing.assert_array_equal(batch.numpy(), documents(400)[rows])
        assert sorted(np.concatenate([rows for rows, _ in steps.batches(0, 0)]).tolist()) == list(range(400))


# -- runs that are cut off


class Crash(Exception):
    pass


class Cut:
    """At event number `at` (steps and records), a signal, or a crash."""

    def __init__(self, at, crash=False):
        self.at, self.crash, self.seen = at, crash, 0

    def tick(self, *_):
        self.seen += 1
        if self.seen == self.at:
            if self.crash:
                raise Crash
            os.kill(os.getpid(), signal.SIGTERM)


def assert_same_run(folder, model, whole):
    assert_same_network(model, whole)
    assert without_seconds(model.history) == without_seconds(whole.history)
    assert without_seconds(checkpoint.read_history(folder)) == without_seconds(whole.history)
    names = sorted(path.name for path in folder.iterdir())
    assert names == [checkpoint.CONFIG, checkpoint.HISTORY, checkpoint.WEIGHTS]


@pytest.fixture(scope="module")
def wholes():
    """Uninterrupted runs, and how many events they have."""
    found = {}
    for name, course in COURSES.items():
        count = Cut(0)
        found[name] = course(tick=count.tick, report=count.tick), count.seen
    return found


@pytest.mark.parametrize("course", COURSES)
def test_cut_off_anywhere_and_continued_equals_uninterrupted(course, wholes, tmp_path):
    """In the first machine, at the end of its first epoch, in the last machine, at its end (where the next thing is a
    trial of rates, or a step of the network), and in the network's epochs.
    """
    whole, events = wholes[course]
    machines = 10 * MACHINES[course] + (course == "real")  # steps and records of 2 epochs each; moments come first
    places = [2, 5, machines - 3, machines - 1, machines, machines + 1, machines + 4, events - 15, events - 3]
    for place, crash in [*((place, place % 2 == 0) for place in places), (machines, machines % 2 == 1)]:
        folder, cut = tmp_path / f"{place}{'crash' if crash else 'signal'}", Cut(place, crash)
        with pytest.raises(Crash if crash else Interrupted):
            COURSES[course](folder=folder, tick=cut.tick, report=cut.tick)
        if place == machines and crash:
            assert not (folder / checkpoint.CHECKPOINT).exists()
            assert (folder / checkpoint.PRETRAINING).exists()
        again = Cut(0)
        assert_same_run(folder, COURSES[course](folder=folder, tick=again.tick), whole)
        if place > machines + 10:
            assert again.seen < 24  # nothing was pretrained again, and not all epochs were


@pytest.mark.parametrize("course", ["fixed", "counts"])
def test_cut_off_again_and_again(course, wholes, tmp_path):
    folder, steps = tmp_path / "model", MACHINES[course] * 8 + 24
    for _ in range(steps // 6):
        with pytest.raises(Interrupted):
            COURSES[course](folder=folder, tick=Cut(6).tick)
    rest = Cut(0)
    assert_same_run(folder, COURSES[course](folder=folder, tick=rest.tick), wholes[course][0])
    assert rest.seen == steps % 6


@pytest.mark.parametrize("course", ["fixed", "counts"])
def test_finished_runs_are_loaded_and_others_overwritten(course, wholes, tmp_path):
    folder, count = tmp_path / "model", Cut(0)
    COURSES[course](folder=folder)
    assert_same_run(folder, COURSES[course](folder=folder, tick=count.tick), wholes[course][0])
    assert count.seen == 0
    make = {"fixed": classifier, "counts": unsupervised}[course]
    with pytest.raises(InputError, match="has another model, with another (network|training)"):
        make(seed=4)(folder=folder)
    with pytest.raises(Interrupted):  # machines of this one are left behind
        make(seed=5)(folder=folder, overwrite=True, tick=Cut(9).tick)
    assert (folder / checkpoint.PRETRAINING).exists()
    assert_same_run(folder, make(seed=4)(folder=folder, overwrite=True), make(seed=4)())


# -- batch norm


def test_hidden_layers_with_batch_norm_compute_what_those_without_do():
    """Up to the scale of each unit; the outputs before the last layer, and where they are zero."""
    torch.manual_seed(1)
    settings = {"n_columns": 50, "n_outputs": 1, "n_components": 12, "learn": False, "wide": False, "dropout": 0.5}
    networks = [SketchNetwork(NetworkConfig(**settings, hidden=(9, 7), hidden_norm=norm)) for norm in (False, True)]
    linear = [[layer for layer in network.layers if isinstance(layer, nn.Linear)] for network in networks]
    for one, two in zip(*linear):
        one.weight.data.mul_(0.1)  # as small as the machines leave them
        one.bias.data.normal_(std=0.1)
        two.load_state_dict(one.state_dict())
    rows = make_rows(torch.randn(2000, 12))
    settle_norms(networks[1], rows)
    plain, settled = (network.eval().layers[1:-1](rows.rows) for network in networks)
    assert torch.equal(plain > 0, settled > 0)
    for one, two in zip(plain.T, settled.T):
        torch.testing.assert_close(two, one * (two.sum() / one.sum().clamp(min=1e-9)), rtol=1e-3, atol=1e-4)
    lengths = [layer.weight.norm(dim=1) for layer in linear[1][:-1]]
    torch.testing.assert_close(torch.cat(lengths), torch.full((16,), 2**0.5), rtol=1e-4, atol=0)


# -- what cannot be


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ({"normalise": "max_abs"}, "pretrain=True is not possible with normalise='max_abs'"),
        ({"normalise": "none"}, "normalise='none': Gaussian units need columns of unit variance"),
    ],
)
def test_networks_that_machines_cannot_begin(network, message, tmp_path):
    with pytest.raises(InputError, match=message):
        classifier({**FIXED, **network})(folder=tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("make", [classifier, unsupervised])
def test_machines_that_are_no_numbers_end_training(make, tmp_path):
    folder, messages = tmp_path / "model", []
    for _ in range(2):
        with pytest.raises(TrainingError, match=r"layer \d is no longer finite .* the rate 1e\+30 may be") as error:
            make(pretrain_rate=1e30)(folder=folder)
        messages.append(str(error.value))
        for path in folder.glob("*.safetensors"):
            for name, tensor in checkpoint.read_tensors(path)[0].items():
                assert torch.isfinite(tensor).all(), f"{path.name}: {name}"
    assert messages[0] == messages[1]
    assert_same_run(folder, make()(folder=folder, overwrite=True), make()())


@pytest.mark.parametrize(("make", "network"), [(classifier, FIXED), (unsupervised, REAL)])
def test_losses_that_are_no_numbers_spare_the_machines(make, network, tmp_path):
    folder, notes = tmp_path / "model", []
    for _ in range(2):
        with pytest.raises(TrainingError, match=r"rate 1e\+30 may be too high.* keeps the state before it"):
            make(rate=1e30, network=network)(folder=folder, tick=lambda done, total, note: notes.append(note))
    layers = sum("layer" in note for note in notes)
    assert layers == 8 * (2 if make is classifier else 3)  # once, not twice


def test_layers_without_machines():
    model = classifier({**FIXED, "hidden": ()})()
    assert not [record for record in model.history if record.get("stage") == "rbm"]
    assert not [record for record in unsupervised(pretrain=0)().history if record.get("stage") == "rbm"]


def test_negative_counts_and_fractions():
    with pytest.raises(InputError, match="a count is -1"):
        _fit_rows(-1)
    with pytest.raises(InputError, match="counts: whole numbers from 0, but a row has 0.5"):
        _fit_rows(0.5)


def _fit_rows(value):
    rows = documents(100)
    rows[70, 7] = value
    config = AutoencoderConfig(40, hidden=(5,), n_codes=2)
    model = Model(Autoencoder(config), Task("autoencoder"), TrainingConfig(epochs=1, pretrain=1, blend=False))
    train(model, Examples(sparse_rows(rows), np.zeros(100)), None, course=Unsupervised())


# -- settings


def test_settings_of_pretraining():
    assert TrainingConfig().pretrain == TrainingConfig(pretrain=False).pretrain == 0
    assert TrainingConfig(pretrain=7, pretrain_rate=1).to_dict()["pretrain_rate"] == 1.0
    assert machine_config(TrainingConfig(pretrain=7, seed=2)) == RBMTrainingConfig(epochs=7, seed=2)
    assert machine_config(TrainingConfig(pretrain=7, pretrain_rate=0.3)).rate == 0.3
    for name, value in (("pretrain", -1), ("pretrain", True), ("pretrain", 0.5), ("pretrain_rate", -1.0)):
        with pytest.raises(InputError, match=f"{name}={value} is not possible"):
            TrainingConfig(**{name: value})


@pytest.mark.parametrize(
    ("rows", "given", "epochs"), [(1000, True, 100), (10_000, True, 40), (10**9, True, 2), (1000, 3, 3), (1000, 0, 0)]
)
def test_epochs_of_machines_for_those_who_set_none(rows, given, epochs):
    task = Task("binary", (0, 1))
    network, training = make_configs(task, rows, 1000, 10 * rows, {"pretrain": given}, 0)
    assert training.pretrain == epochs
    assert network.hidden_norm
    data = replace(sparse_rows(documents(10)), indptr=np.zeros(2, np.int64))
    model = build_autoencoder(_Many(data, rows), {"pretrain": given}, 0)
    assert model.training.pretrain == epochs


class _Many:
    """Rows of which there are said to be more."""

    def __init__(self, data, n_rows):
        self.n_rows, self.n_columns, self.rows = n_rows, data.n_columns, lambda span: data


def test_settings_of_autoencoders_for_those_who_set_none():
    counts, fractions = sparse_rows(documents(200)), sparse_rows(documents(200) / 2)
    config = build_autoencoder(counts, {"hidden": (5,), "units": "auto"}, 7).network.config
    assert (config.visible, config.units, config.seed, config.n_columns) == ("counts", "binary", 7, 40)
    config = build_autoencoder(fractions, {"hidden": (5,)}, 0).network.config
    assert (config.visible, config.units) == ("real", "relu")
    assert build_autoencoder(sparse_rows(-documents(200)), {"hidden": (5,)}, 0).network.config.visible == "real"
    config = build_autoencoder(counts, {"hidden": (5,), "scheme": "count_sketch"}, 0).network.config
    assert (config.visible, config.n_visible) == ("real", 2000)
    training = build_autoencoder(counts, {"epochs": "auto", "batch_size": 10}, 0).training
    assert (training.epochs, training.patience, training.batch_size, training.pretrain) == (50, 16, 10, 500)
    assert not training.blend
    assert build_autoencoder(_Many(counts, 10**6), {}, 0).training.epochs == 5
    for settings, message in (
        ({"batch_size": "x"}, "batch_size='x' is not possible"),
        ({"epochs": 2.5}, "epochs=2.5 is not possible"),
        ({"dropout": 0.5}, "an autoencoder has no setting dropout"),
    ):
        with pytest.raises(InputError, match=message):
            build_autoencoder(counts, settings, 0)


def test_autoencoders_take_a_card_for_fewer_rows(monkeypatch):
    model = build_autoencoder(sparse_rows(documents(10)), {"hidden": (5,)}, 0)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto", model, 1999).type == "cpu"
    assert choose_device("auto", model, 2000).type == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto", model, 10**6).type == "cpu"
