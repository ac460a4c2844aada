"""The training loop: it learns, gives the same bits however it runs, and keeps the best epoch."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.linear_model import LogisticRegression

from sketchnet.data import open_shards
from sketchnet.data.batches import epoch_order
from sketchnet.data.gather import take_rows
from sketchnet.errors import InputError, StorageError
from sketchnet.kernels.cpu import threads
from sketchnet.storage import locked
from sketchnet.training import checkpoint
from sketchnet.training.loop import Examples, train
from sketchnet.training.steps import evaluate
from tests.data.test_shards import write
from tests.statistics import FAILURE
from tests.training.test_optimisers import Dense, assert_same_weights
from tests.training.toy import D, assert_same_network, examples, make_model, toy, trained, without_seconds

every_optimiser = pytest.mark.parametrize("optimiser", ["adamw", "sgd"])
RATES = {"adamw": {"rate": 5e-3}, "sgd": {"rate": 0.1, "sparse_rate": 1.0, "wide_rate": 1.0}}
# All that is drawn anew in every step, and all that is learnt from the data before the first.
EVERYTHING = {"scale_input": "max_abs", "dropout": 0.2, "feature_dropout": 0.2, "eta": 0.5}


def training(optimiser, **options):
    return {"optimiser": optimiser, **RATES[optimiser], **options}


# -- learning


def test_no_linear_model_learns_the_toy():
    given, valid = toy(4000), toy(1000, seed=1)
    linear = LogisticRegression(C=0.1, max_iter=300).fit(given.rows.scipy(), given.labels("binary"))
    assert linear.score(valid.rows.scipy(), valid.labels("binary")) < 0.6


@pytest.mark.parametrize(
    ("kind", "error"), [("binary", 0.13), ("multiclass", 0.13), ("multilabel", 0.06), ("regression", 0.2)]
)
@every_optimiser
def test_a_network_learns(kind, error, optimiser):
    """Wrong labels, or the share of the targets' variance that is left; guessing is wrong in half or 3/4, and by 1."""
    options = training(optimiser, epochs=5 if optimiser == "adamw" else 8, batch_size=100)
    if kind == "regression" and optimiser == "sgd":
        options["rate"] = 0.03
    model = trained(kind, 4000, 1000, options, {"feature_dropout": 0.1, "hidden": (64,)})
    valid = toy(1000, seed=1)
    outputs, labels = model.outputs(valid.rows), valid.labels(kind)
    decided = model.task.decide(outputs)
    if kind == "multilabel":
        found = np.mean(decided != labels.toarray())
    elif kind == "regression":
        found = np.mean((decided - labels) ** 2) / np.var(labels)
    else:
        found = np.mean(decided != labels)
        probabilities = model.task.probabilities(outputs)
        assert np.allclose(probabilities.sum(axis=1), 1)
        assert np.array_equal(np.asarray(model.task.classes)[probabilities.argmax(axis=1)], decided)
    assert found < error
    losses = [record["loss"] for record in model.history if "loss" in record]
    assert losses[-1] < 0.5 * losses[0]


def test_the_loop_is_a_plain_one_that_touches_fewer_weights():
    """The same steps by torch.optim.SGD on dense matrices; what the last epoch left late is up to date at the end."""
    given, task = examples("binary", 400)
    model = make_model(task, training("sgd", epochs=2, l2=0.05), normalise="none")
    twin, config = Dense(model.network), model.training
    train(model, given, None)
    optimiser = torch.optim.SGD(twin.groups(config), lr=config.rate, momentum=0.5)
    for epoch, momentum in enumerate([0.5, 0.95]):
        for group in optimiser.param_groups:
            group["momentum"], group["lr"] = momentum, config.rate * config.decay**epoch
        for rows in epoch_order(given.data, config.batch_size, seed=config.seed, epoch=epoch):
            optimiser.zero_grad()
            task.losses(twin(take_rows(given.data, rows)), task.batch(given.targets, rows)).mean().backward()
            optimiser.step()
    assert_same_weights(model.network, twin, rtol=1e-4)


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_errors_in_the_history_are_those_of_unseen_rows(kind):
    """Also after a linear model was blended in, which may have learnt from the validation rows."""
    chosen = {"rate": 5e-3, "sparse_rate": None, "wide_rate": None, "blend": True, "epochs": 3, "batch_size": 100}
    model = trained(kind, 4000, 1000, chosen, {"feature_dropout": 0.1, "hidden": (64,)})
    told = [record["valid_error"] for record in model.history if "valid_error" in record][-1]
    unseen = examples(kind, 1000, seed=2, task=model.task)[0]
    noise = stats.norm.isf(FAILURE / 2) * np.sqrt(2 * 0.25 / 1000)
    assert abs(told - evaluate(model.network, model.task, unseen)[0]) < noise


# -- the same bits


@every_optimiser
@pytest.mark.parametrize("scheme", ["count_sketch", "li"])
def test_a_seed_fixes_all_weights_whatever_the_threads(optimiser, scheme, monkeypatch):
    monkeypatch.setattr(threads, "_SMALL", 1)  # kernels split whatever they can

    def run(seed=0):
        torch.manual_seed(np.random.default_rng().integers(100))  # what was drawn before does not matter
        return trained(training=training(optimiser, epochs=2, seed=seed), network={"scheme": scheme, **EVERYTHING})

    monkeypatch.setenv("SKETCHNET_THREADS", "1")
    first = run()
    assert_same_network(run(), first)
    monkeypatch.setenv("SKETCHNET_THREADS", "2")
    second = run()
    assert_same_network(second, first)
    assert without_seconds(second.history) == without_seconds(first.history)
    with pytest.raises(AssertionError):
        assert_same_network(run(seed=1), first)


@every_optimiser
@pytest.mark.parametrize(("scheme", "options"), [("count_sketch", {}), ("li", {"s": 30})])
def test_a_projection_that_never_updates_is_a_fixed_one(optimiser, scheme, options):
    given, task = examples("binary", 300)
    values = np.random.default_rng(0).standard_normal(len(given.data.values)).astype(np.float32)
    given = dataclasses.replace(given, data=dataclasses.replace(given.data, values=values))
    common = {"scheme": scheme, "options": options, "wide": False, "normalise": "batch", "dropout": 0.1}
    settings = training(optimiser, epochs=2, l2=0.01)
    learnable, fixed = (make_model(task, settings, eta=0.0, learn=learn, **common) for learn in (True, False))
    for model in (learnable, fixed):
        train(model, given, None)
    ours, theirs = learnable.network.state_dict(), fixed.network.state_dict()
    assert set(ours) - set(theirs) == {"projection.weight", "projection.bias"}
    for name, tensor in theirs.items():
        assert torch.equal(ours[name], tensor), name
    assert np.array_equal(learnable.outputs(given.data), fixed.outputs(given.data))


@pytest.mark.parametrize("normalise", ["batch", "standard", "max_abs", "none"])
@pytest.mark.parametrize(
    ("others", "kept"),
    [
        ({"wide": False}, True),
        ({"wide": False, "scheme": "gaussian", "scale_input": "max_abs", "dropout": 0.1}, True),
        ({"wide": True}, False),  # needs the rows themselves
        ({"wide": False, "feature_dropout": 0.3}, False),
    ],
    ids=["plain", "scaled", "wide", "dropped"],
)
def test_projected_rows_that_are_kept_give_the_same_weights_as_those_made_anew(normalise, others, kept):
    stages = []
    models = [
        trained(
            network={"learn": False, "normalise": normalise, **others},
            memory=memory,
            report=lambda record: stages.append(record.get("stage")),
        )
        for memory in ("1GiB", 1)
    ]
    assert_same_network(*models)
    assert stages.count("project") == (2 if normalise in ("standard", "max_abs") else 1 if kept else 0)
    assert models[0].network.wide is None or models[0].network.wide.weight.any()


def test_scales_are_those_of_the_training_rows():
    """Of columns: their largest absolute values, 1 where they have none. Of projected rows: their moments."""
    given, task = examples("binary", 300)
    values = 0.1 * np.random.default_rng(0).standard_normal(len(given.data.values)).astype(np.float32)
    given = dataclasses.replace(given, data=dataclasses.replace(given.data, values=values))
    largest = np.zeros(D, np.float32)
    np.maximum.at(largest, given.data.indices, np.abs(values))
    model = make_model(task, scale_input="max_abs", learn=False, normalise="standard", n_components=5000, wide=False)
    train(model, given, None)
    network = model.network
    assert np.array_equal(network.input_scale.numpy(), np.where(largest == 0, 1, largest))
    projected = network.project(given.data).double()
    normal = (projected - network.shift) * network.scale
    varies = projected.std(dim=0) > 0
    assert 0 < varies.sum() < 5000
    assert normal.mean(dim=0).abs().max() < 1e-5
    assert (normal[:, varies].std(dim=0, correction=0) - 1).abs().max() < 1e-5
    assert (normal[:, ~varies] == 0).all()  # buckets that never vary say nothing


@every_optimiser
@pytest.mark.parametrize("hashed_columns", [None, 2000])
def test_from_disk_as_from_memory(optimiser, hashed_columns, tmp_path):
    given, task = examples("multilabel", 400)
    cuts = [0, 70, 71, 300, 400]
    shards = open_shards(write(tmp_path / "x", [given.data.rows(slice(a, b)) for a, b in zip(cuts, cuts[1:])]))
    assert shards.n_columns == D
    models = []
    for data in (given.data, shards):
        model = make_model(task, training(optimiser), hashed_columns=hashed_columns, **EVERYTHING)
        train(model, Examples(data, given.targets), Examples(data, given.targets))
        models.append(model)
    assert_same_network(*models)
    assert without_seconds(models[0].history) == without_seconds(models[1].history)


# -- when to stop, and what remains


def noise(optimiser="sgd", **options):
    """Labels that cannot be learnt: validation errors go up and down."""
    rng = np.random.default_rng(4)
    _, task = examples("binary", 400)
    model = make_model(task, training(optimiser, **options))
    given, valid = (Examples(toy(n, seed).rows, rng.integers(0, 2, n)) for n, seed in ((400, 0), (100, 1)))
    return model, given, valid


def errors(model):
    return [(record["valid_error"], record["valid_loss"]) for record in model.history if "valid_error" in record]


@pytest.mark.parametrize("with_folder", [False, True])
@every_optimiser
def test_the_network_of_the_best_epoch_remains(with_folder, optimiser, tmp_path):
    model, given, valid = noise(optimiser, epochs=7)
    train(model, given, valid, folder=tmp_path / "model" if with_folder else None)
    best = int(np.argmin([error for error, _ in errors(model)]))
    assert len(errors(model)) == 7
    assert best < 6  # or nothing would have to be put back
    assert model.history[-1]["best_epoch"] == 1 + min(range(7), key=lambda epoch: errors(model)[epoch])
    assert evaluate(model.network, model.task, valid) == min(errors(model))
    assert not model.network.training
    assert all(parameter.requires_grad for parameter in model.network.parameters())


def test_patience():
    model, given, valid = noise(epochs=50, patience=3)
    train(model, given, valid)
    ran, best = len(errors(model)), model.history[-1]["best_epoch"]
    assert ran == best + 3 < 50
    assert evaluate(model.network, model.task, valid) == min(errors(model))


@pytest.mark.parametrize("with_folder", [False, True])
def test_no_time_is_time_for_one_epoch(with_folder, tmp_path):
    model = trained(
        training={"epochs": 50, "seconds": 0.0}, folder=tmp_path / "model" if with_folder else None, n_valid=0
    )
    assert [record["epoch"] for record in model.history if "epoch" in record] == [1]
    assert model.history[-1]["best_epoch"] == 1


def test_without_validation_rows_the_last_epoch_counts(tmp_path):
    for folder in (None, tmp_path / "model"):
        model = trained(n_valid=0, training={"epochs": 4, "patience": 1}, folder=folder)
        assert model.history[-1]["best_epoch"] == 4
        epochs = [record for record in model.history if "epoch" in record]
        assert [list(record) for record in epochs] == [["epoch", "loss", "seconds"]] * 4


def test_every_record_is_reported_and_every_step_told(tmp_path):
    records, steps = [], []
    model = trained(
        training={"epochs": 2},
        report=records.append,
        tick=lambda *where: steps.append(where),
        folder=tmp_path / "model",
    )
    assert records == model.history[:-1]
    assert [(done, total) for done, total, _ in steps] == [(step, 16) for step in range(1, 17)]
    assert all(note.startswith(f"epoch {1 + number // 8}, loss ") for number, (_, _, note) in enumerate(steps))
    lines = (tmp_path / "model" / checkpoint.HISTORY).read_text().splitlines()
    assert [json.loads(line) for line in lines] == model.history


def test_weights_of_examples():
    """Rows of weight zero are as good as absent from a validation, and do not move the weights in training."""
    given, task = examples("binary", 300)
    model = make_model(task, normalise="none")
    half = np.arange(300) < 150
    part = Examples(given.data.rows(slice(0, 150)), given.targets[:150])
    weighted = evaluate(model.network, task, dataclasses.replace(given, weights=2.0 * half))
    assert weighted == pytest.approx(evaluate(model.network, task, part))
    mixed = np.where(half, given.targets, 1 - given.targets)
    models = []
    for targets in (given.targets, mixed):
        models.append(make_model(task, normalise="none"))
        train(models[-1], Examples(given.data, targets, weights=half.astype(float)), None)
    assert_same_network(*models)


# -- one at a time, and what cannot be trained on


def test_a_finished_run_is_loaded_and_another_model_is_refused(tmp_path):
    folder, steps = tmp_path / "a" / "model", []
    first = trained(folder=folder)
    again = trained(folder=folder, tick=lambda *where: steps.append(where))
    assert steps == []
    assert_same_network(again, first)
    assert again.history == first.history
    assert np.array_equal(again.outputs(toy(50).rows), first.outputs(toy(50).rows))
    for other in ({"training": {"rate": 0.5}}, {"network": {"hidden": (5,)}}, {"kind": "multiclass"}):
        before = {path: path.read_bytes() for path in folder.iterdir()}
        with pytest.raises(InputError, match="another model"):
            trained(**other, folder=folder)
        assert {path: path.read_bytes() for path in folder.iterdir()} == before
    other = trained(training={"rate": 0.5}, folder=folder, overwrite=True)
    assert_same_network(other, trained(training={"rate": 0.5}))
    (folder / checkpoint.CONFIG).unlink()
    with pytest.raises(InputError, match="parts of a model but no config.json"):
        trained(folder=folder)


def test_two_processes_do_not_share_a_folder(tmp_path):
    folder = tmp_path / "model"
    with locked(folder), pytest.raises(StorageError, match="another process is writing"):
        trained(folder=folder)
    assert not (folder / checkpoint.CONFIG).exists()
    trained(folder=folder)


def test_ids_beyond_the_columns_are_errors():
    """In a process of its own: a kernel that writes where such an id leads would end it."""
    code = """
import numpy as np
from sketchnet.data import CsrBatch
from sketchnet.errors import InputError
from sketchnet.training.loop import Examples, train
from tests.statistics import FAILURE
from tests.training.test_optimisers import Dense, assert_same_weights
from tests.training.toy import D, examples, make_model

rows = CsrBatch(np.array([0, 1, 2]), np.array([5, 10**12]), np.ones(2, np.float32), D)
for scale in ("none", "max_abs"):
    try:
        train(make_model(examples("binary", 50)[1], scale_input=scale), Examples(rows, np.array([0, 1])), None)
    except InputError as error:
        print(scale, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr}"
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["none", "max_abs"]
    assert all("has column id 1000000000000; allowed are 0 to 9999" in line for line in lines)


def test_values_that_are_no_numbers_are_errors():
    given, task = examples("binary", 100)
    values = given.data.values.copy()
    values[123] = np.nan
    bad = Examples(dataclasses.replace(given.data, values=values), given.targets)
    for network in ({}, {"scale_input": "max_abs"}, {"learn": False, "wide": False, "normalise": "standard"}):
        with pytest.raises(InputError, match="NaN or infinity: nan"):
            train(make_model(task, **network), bad, None)
