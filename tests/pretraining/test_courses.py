"""Courses of training that begin with RBMs: what they leave in the layers, and what cannot be."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from sketchnet.data import CsrBatch
from sketchnet.data.csr import sparse_rows, without_repeats
from sketchnet.errors import InputError, TrainingError
from sketchnet.nn import Autoencoder, AutoencoderConfig, NetworkConfig, SketchNetwork
from sketchnet.pretraining import RBM, LayerSpec, RBMTrainingConfig, pretrain_stack
from sketchnet.pretraining.autoencoder import AutoencoderSteps, Unsupervised
from sketchnet.pretraining.course import Pretrained, settle_norms, unfold
from sketchnet.pretraining.rows import DenseRows, SparseRows, make_rows
from sketchnet.training import Model, Task, TrainingConfig, checkpoint
from sketchnet.training.examples import Examples
from sketchnet.training.loop import train
from sketchnet.training.processes import Processes
from tests.pretraining.courses import (
    COURSES,
    FIXED,
    PRETRAIN,
    REAL,
    assert_same_run,
    classifier,
    documents,
    unsupervised,
)
from tests.training.toy import D, examples, make_model

# -- what RBMs leave in the layers


def hidden_layers(model):
    return [layer for layer in model.network.layers if isinstance(layer, nn.Linear)][:-1]


def pretrained_alone(dense, data, widths, kinds, visible, rate=None):
    """The RBMs of a stack on dense rows, in the order in which a network reads `data`."""
    rows = DenseRows(torch.as_tensor(dense, dtype=torch.float32), 100, 3, SparseRows(data, 100, 3).order)
    layers = [LayerSpec(nn.Linear(a, b), kind) for a, b, kind in zip(widths, widths[1:], kinds)]
    return pretrain_stack(layers, visible, rows, RBMTrainingConfig(epochs=2, seed=3, rate=rate))


def test_hidden_layers_begin_as_the_stack_of_standardised_projected_rows():
    model = classifier(rate=0.0, pretrain_rate=0.03)()  # epochs that change nothing, after RBMs that learn a lot
    data = examples("binary", 400)[0].data
    projected = model.network.projection.operator.apply(data).astype(np.float64)
    rows = (projected - projected.mean(axis=0)) / projected.std(axis=0)
    rbms = pretrained_alone(rows, data, (16, 12, 8), ("relu", "relu"), "gaussian", rate=0.03)
    for number, (layer, rbm) in enumerate(zip(hidden_layers(model), rbms, strict=True)):
        assert (rbm.weight - RBM(replace(rbm.config, seed=3 + number)).weight).abs().max() > 1e-3
        torch.testing.assert_close(layer.weight.detach(), rbm.weight.detach(), atol=1e-5, rtol=0)
        torch.testing.assert_close(layer.bias.detach(), rbm.hidden_bias.detach(), atol=1e-5, rtol=0)
        assert layer.weight.requires_grad
    stages = [record.get("stage", "epoch") for record in model.history]
    assert stages == ["rbm"] * 4 + ["reduce", "normalise"] + ["epoch"] * 4


def test_autoencoders_begin_as_the_stack_and_go_back_by_its_transpose():
    model = unsupervised(rate=0.0)()
    rows = documents(400, 400)
    rbms = pretrained_alone(rows, sparse_rows(rows), (40, 12, 8, 3), ("binary", "binary", "gaussian"), "poisson")
    network = model.network
    middle = len(rbms) - 1  # where codes were moved in the end
    for number, (up, rbm) in enumerate(zip(network.encoder, rbms, strict=True)):
        assert torch.equal(up.weight, rbm.weight)
        assert torch.equal(up.bias, rbm.hidden_bias) == (number < middle)
    for number, (down, rbm) in enumerate(zip(network.decoder, rbms[::-1], strict=True)):
        assert torch.equal(down.weight, rbm.weight.t())
        assert torch.equal(down.bias, rbm.visible_bias) == (number > 0)
    codes = network(sparse_rows(rows))
    torch.testing.assert_close(codes.mean(dim=0), torch.zeros(3), atol=1e-5, rtol=0)
    assert model.history[-2]["stage"] == "centre"
    assert model.history[-2]["moved_by"] > 0
    # What is given back is then what the RBMs' means are, one after the other.
    x = states = torch.from_numpy(documents(7))
    for rbm in rbms:
        states = rbm.hidden_mean(states)
    for rbm in rbms[:0:-1]:
        states = rbm.visible_mean(states)
    shares = torch.softmax(network.decode(network.encode(x)), dim=1) * x.sum(dim=1, keepdim=True)
    torch.testing.assert_close(shares, rbms[0].visible_mean(states, x.sum(dim=1)))


def test_kinds_of_an_autoencoders_rbms():
    for network, kinds in (
        ({}, ["poisson binary", "binary binary", "binary gaussian"]),
        ({"binary_codes": True}, ["poisson binary", "binary binary", "binary binary"]),
        (REAL, ["gaussian relu", "relu relu", "relu binary"]),
        ({"hidden": ()}, ["poisson gaussian"]),
    ):
        found = []

        def spy(network, rbms, found=found):
            found += [f"{rbm.config.visible} {rbm.config.hidden}" for rbm in rbms]
            unfold(network, rbms)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sketchnet.pretraining.course.unfold", spy)
            unsupervised(network=network, epochs=1)()
        assert found == kinds


def test_rbms_see_rows_as_the_network_will():
    """Columns are divided by their largest values before the projection, not after pretraining."""
    data = without_repeats(examples("binary", 400)[0].data)
    data = replace(data, values=np.where(data.indices < 12, 2, 1).astype(np.float32))
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


def test_columns_that_never_vary_are_zero_for_the_rbms():
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
            for rows, (whole, seen) in found:
                np.testing.assert_array_equal(whole.numpy(), documents(400)[rows])
                assert seen is whole or torch.equal(seen, whole)
        assert sorted(np.concatenate([rows for rows, _ in steps.batches(0, 0)]).tolist()) == list(range(400))


def test_validation_rows_are_kept_beside_the_others_if_there_is_room():
    model = unsupervised(epochs=1, pretrain=0)()
    given, valid = (Examples(sparse_rows(documents(n)), np.zeros(n)) for n in (400, 100))
    losses = []
    for rows, kept in ((500, True), (499, False)):
        steps = AutoencoderSteps(model, given, 4 * rows * 40, Processes())
        losses += [steps.evaluate(valid), steps.evaluate(valid)]
        assert (steps._valid is not None) == kept
        assert steps._kept is not None
    assert len(set(losses)) == 1


@pytest.mark.parametrize("together", [3, 32])
def test_what_is_left_of_rows_is_another_in_each_epoch_and_the_same_after_a_stop(together):
    model = unsupervised(epochs=1, pretrain=0, network={"feature_dropout": 0.5})()
    given = Examples(sparse_rows(documents(400)), np.zeros(400))
    steps = AutoencoderSteps(model, given, 0, Processes())
    steps._together = together
    first, later = ([(rows, seen) for rows, (_, seen) in steps.batches(epoch, 0)] for epoch in (0, 1))
    for rows, seen in first:
        counts = documents(400)[rows]
        assert ((seen.numpy() == 0) | (seen.numpy() == 2 * counts)).all()
    total = documents(400).sum()
    assert abs(sum(float(seen.sum()) for _, seen in first) / total - 1) < 0.1
    by_row = [{int(r): seen[i] for rows, seen in epoch for i, r in enumerate(rows)} for epoch in (first, later)]
    assert any(not torch.equal(by_row[0][r], by_row[1][r]) for r in range(400))
    for skip in (1, 3, 4, 7):
        for (rows, seen), (again, (_, other)) in zip(first[skip:], steps.batches(0, skip), strict=True):
            np.testing.assert_array_equal(rows, again)
            assert torch.equal(seen, other)


# -- batch norm


def test_hidden_layers_with_batch_norm_compute_what_those_without_do():
    """Up to the scale of each unit; the outputs before the last layer, and where they are zero."""
    torch.manual_seed(1)
    settings = {"n_columns": 50, "n_outputs": 1, "n_components": 12, "learn": False, "dropout": 0.5}
    networks = [SketchNetwork(NetworkConfig(**settings, hidden=(9, 7), hidden_norm=norm)) for norm in (False, True)]
    linear = [[layer for layer in network.layers if isinstance(layer, nn.Linear)] for network in networks]
    for one, two in zip(*linear):
        one.weight.data.mul_(0.1)  # as small as the RBMs leave them
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
def test_networks_that_rbms_cannot_begin(network, message, tmp_path):
    with pytest.raises(InputError, match=message):
        classifier({**FIXED, **network})(folder=tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("make", [classifier, unsupervised])
def test_rbms_that_are_no_numbers_end_training(make, tmp_path):
    folder, messages = tmp_path / "model", []
    for _ in range(2):
        with pytest.raises(
            TrainingError, match=r"layer \d .* the rate 1e\+30 may be.*: the largest is [2-9], in"
        ) as error:
            make(pretrain_rate=1e30)(folder=folder)
        messages.append(str(error.value))
        for path in folder.glob("*.safetensors"):
            for name, tensor in checkpoint.read_tensors(path)[0].items():
                assert torch.isfinite(tensor).all(), f"{path.name}: {name}"
    assert messages[0] == messages[1]
    assert_same_run(folder, make()(folder=folder, overwrite=True), make()())


@pytest.mark.parametrize(("make", "network"), [(classifier, FIXED), (unsupervised, REAL)])
def test_losses_that_are_no_numbers_spare_the_rbms(make, network, tmp_path):
    folder, notes = tmp_path / "model", []
    for _ in range(2):
        with pytest.raises(TrainingError, match=r"rate 1e\+30 may be too high.* keeps the state before it"):
            make(rate=1e30, network=network)(folder=folder, tick=lambda done, total, note: notes.append(note))
    layers = sum("layer" in note for note in notes)
    assert layers == 8 * (2 if make is classifier else 3)  # once, not twice


def test_layers_without_rbms():
    model = classifier({**FIXED, "hidden": ()})()
    assert not [record for record in model.history if record.get("stage") == "rbm"]
    assert not [record for record in unsupervised(pretrain=0)().history if record.get("stage") == "rbm"]


def test_negative_counts_and_fractions():
    with pytest.raises(InputError, match="a count is -1"):
        _fit_rows(-1)
    with pytest.raises(InputError, match=r"a count is 0.5; counts of words are whole numbers.*visible='real'"):
        _fit_rows(0.5)


def _fit_rows(value):
    rows = documents(100)
    rows[70, 7] = value
    config = AutoencoderConfig(40, hidden=(5,), n_codes=2)
    model = Model(Autoencoder(config), Task("autoencoder"), TrainingConfig(epochs=1, pretrain=1))
    train(model, Examples(sparse_rows(rows), np.zeros(100)), None, course=Unsupervised())
