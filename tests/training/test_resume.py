"""Training that is cut off, by an error, a signal or a loss that is no number, and continued.

Runs have 8 steps an epoch and 4 epochs.
"""

import json
import os
import signal
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch

from sketchnet.errors import InputError, Interrupted, TrainingError
from sketchnet.training import checkpoint
from sketchnet.training.loop import train
from sketchnet.training.model import load_model
from tests.training.toy import (
    EVERYTHING,
    assert_same_network,
    every_optimiser,
    examples,
    make_model,
    trained,
    training,
    without_seconds,
)

CUT = {"n": 400, "n_valid": 100, "network": EVERYTHING}
KEPT = {**CUT, "network": {"learn": False, "normalise": "standard", "dropout": 0.2}}


class Crash(Exception):
    pass


def crash_at(step):
    def tick(done, total, note):
        assert total == 32
        if done == step:
            raise Crash

    return tick


def signal_at(step, number):
    def tick(done, total, note):
        if done == step:
            os.kill(os.getpid(), number)

    return tick


def assert_same_run(folder, model, whole):
    assert_same_network(model, whole)
    assert without_seconds(model.history) == without_seconds(whole.history)
    assert without_seconds(checkpoint.read_history(folder)) == without_seconds(whole.history)
    saved, _ = checkpoint.read_tensors(folder / checkpoint.WEIGHTS)
    for name, tensor in whole.network.state_dict().items():
        assert torch.equal(saved[name], tensor), name
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name]
    assert sorted(path.name for path in folder.iterdir()) == [
        checkpoint.CONFIG, checkpoint.HISTORY, checkpoint.WEIGHTS,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [
        training("adamw"),
        training("sgd"),
        training("adamw", frozen_epochs=2),
        training("sgd", frozen_epochs=2),
    ],
    ids=["adamw", "sgd", "adamw, frozen", "sgd, frozen"],
)
def test_crashed_at_any_step_and_continued_equals_uninterrupted(settings, tmp_path):
    settings, folder = {**settings, "epochs": 4}, tmp_path / "model"
    whole = trained(**CUT, training=settings)
    for step in sorted({1, 8, 16, 32, *np.random.default_rng(0).integers(2, 32, 5).tolist()}):
        with pytest.raises(Crash):
            trained(**CUT, training=settings, folder=folder, tick=crash_at(step))
    continued = trained(**CUT, training=settings, folder=folder)
    assert_same_run(folder, continued, whole)


def test_a_run_of_a_version_with_fewer_settings_goes_on(tmp_path):
    folder = tmp_path / "model"
    with pytest.raises(Crash):
        trained(**CUT, training={"epochs": 4}, folder=folder, tick=crash_at(20))
    config = json.loads((folder / checkpoint.CONFIG).read_text())
    del config["training"]["frozen_epochs"]
    (folder / checkpoint.CONFIG).write_text(json.dumps(config))
    with pytest.raises(InputError, match="another model, with another training"):
        trained(**CUT, training={"epochs": 4, "frozen_epochs": 1}, folder=folder)
    continued = trained(**CUT, training={"epochs": 4}, folder=folder)
    assert_same_run(folder, continued, trained(**CUT, training={"epochs": 4}))
    assert load_model(folder).training == continued.training


@every_optimiser
def test_a_checkpoint_has_the_weights_of_columns_once(optimiser, tmp_path):
    """They stand in the optimiser's rows; checkpoints of earlier versions have them a second time."""
    settings, folder = training(optimiser, epochs=4), tmp_path / "model"
    whole = trained(**CUT, training=settings)
    with pytest.raises(Crash):
        trained(**CUT, training=settings, folder=folder, tick=crash_at(20))
    tensors, notes = checkpoint.read_tensors(folder / checkpoint.CHECKPOINT)
    assert "network.projection.weight" not in tensors
    tensors["network.projection.weight"] = tensors["optimiser.sparse.projection"][:, 0].contiguous()
    checkpoint.write_tensors(folder / checkpoint.CHECKPOINT, tensors, notes)
    assert_same_run(folder, trained(**CUT, training=settings, folder=folder), whole)


def test_a_run_that_goes_on_does_not_keep_what_it_has_read(tmp_path, monkeypatch):
    folder, read, alive, plain = tmp_path / "model", [], [], checkpoint.read_tensors
    with pytest.raises(Crash):
        trained(**CUT, training={"epochs": 4}, folder=folder, tick=crash_at(12))

    def watched(*args):
        tensors, notes = plain(*args)
        read.extend(weakref.ref(tensor) for name, tensor in tensors.items() if "sparse." in name)
        return tensors, notes

    monkeypatch.setattr(checkpoint, "read_tensors", watched)
    trained(**CUT, training={"epochs": 4}, folder=folder, tick=lambda *_: alive.extend(ref() for ref in read))
    assert len(read) == 1
    assert len(alive) >= 1
    assert not any(tensor is not None for tensor in alive)


@every_optimiser
@pytest.mark.parametrize(("number", "run"), [(signal.SIGTERM, CUT), (signal.SIGINT, KEPT)], ids=["TERM", "INT"])
def test_stopped_by_a_signal_and_continued_equals_uninterrupted(optimiser, number, run, tmp_path):
    """In the midst of an epoch, after its last step and before its first."""
    whole = trained(**run, training=training(optimiser, epochs=4))
    folder, handler = tmp_path / "model", signal.getsignal(number)
    for step in (3, 4, 8, 9, 21, 32):
        with pytest.raises(Interrupted, match="run the same command again"):
            trained(**run, training=training(optimiser, epochs=4), folder=folder, tick=signal_at(step, number))
        assert signal.getsignal(number) is handler
        assert (folder / checkpoint.CHECKPOINT).exists()
    done = []
    continued = trained(
        **run, training=training(optimiser, epochs=4), folder=folder, tick=lambda *where: done.append(where)
    )
    assert done == []  # all steps had been made, but not the last evaluation
    assert_same_run(folder, continued, whole)


def test_the_best_epoch_before_a_crash_counts_afterwards(tmp_path):
    """The rates are such that epochs get worse: the first is the best, and was before the crash."""
    settings = training("sgd", epochs=4, rate=3.0)
    whole = trained(**CUT, training=settings)
    folder = tmp_path / "model"
    assert whole.history[-1]["best_epoch"] < 4
    with pytest.raises(Crash):
        trained(**CUT, training=settings, folder=folder, tick=crash_at(30))
    assert_same_run(folder, trained(**CUT, training=settings, folder=folder), whole)


# -- numbers that are none


@every_optimiser
def test_a_loss_that_is_no_number_ends_training_and_spares_the_checkpoint(optimiser, tmp_path):
    """Here the targets are to blame, and only in the run that goes on."""
    settings, folder = training(optimiser, epochs=4), tmp_path / "model"
    whole = trained("regression", **CUT, training=settings)
    with pytest.raises(Crash):
        trained("regression", **CUT, training=settings, folder=folder, tick=crash_at(13))
    before = (folder / checkpoint.CHECKPOINT).read_bytes()
    given, task = examples("regression", 400)
    given.targets[:] = np.inf
    with pytest.raises(TrainingError, match=r"the loss is inf in epoch 2, step 1: .*keeps the state before it"):
        train(make_model(task, settings, **EVERYTHING), given, None, folder=folder)
    assert (folder / checkpoint.CHECKPOINT).read_bytes() == before
    assert_same_run(folder, trained("regression", **CUT, training=settings, folder=folder), whole)


@every_optimiser
def test_rates_that_are_too_high_are_named(optimiser, tmp_path):
    settings = training(optimiser, rate=1e25, sparse_rate=1e6)
    for folder in (None, tmp_path / "model"):
        with pytest.raises(TrainingError, match=r"the loss is (nan|inf) in epoch 1, .* rate 1e\+25 may be too high"):
            trained(**CUT, training=settings, folder=folder)


def test_the_column_with_the_largest_value_is_named(tmp_path):
    given, task = examples("binary", 400)
    values = given.data.values.copy()
    values[1234] = -3e38
    given, column = replace(given, data=replace(given.data, values=values)), given.data.indices[1234]
    for scaled, rest in (("none", "; the setting scale_input=max_abs divides"), ("max_abs", ", before columns are")):
        model = make_model(task, {"rate": 1e30, "sparse_rate": 1e30}, scale_input=scaled)
        model.data = {"base": 1}
        with pytest.raises(TrainingError, match=f"too large: the largest is 3e\\+38, in column {column + 1}{rest}"):
            train(model, given, None)


def test_a_checkpoint_before_the_loss_was_no_number_can_be_read_and_continued(tmp_path):
    """Momentum rises with the epochs, until the steps are too long."""
    settings, folder = (
        {"optimiser": "sgd", "epochs": 12, "rate": 0.25, "sparse_rate": 10.0, "decay": 1.0},
        tmp_path / "model",
    )
    messages = []
    for _ in range(2):
        with pytest.raises(TrainingError, match=r"the loss is (nan|inf) in epoch ([2-9]|10|11|12), step") as error:
            trained("regression", training=settings, network={"normalise": "none"}, folder=folder)
        messages.append(str(error.value))
        for path in folder.glob("*.safetensors"):
            for name, tensor in checkpoint.read_tensors(path)[0].items():
                assert torch.isfinite(tensor).all(), f"{path.name}: {name}"
    assert messages[0] == messages[1]


@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_weights_that_are_no_numbers_are_never_kept(kind, tmp_path):
    """The last step of an epoch spoils the weights: its loss was still a number, nothing after it is."""
    for epochs, folder in ((1, None), (1, tmp_path / "one"), (3, tmp_path / "three")):
        settings = {"optimiser": "sgd", "epochs": epochs, "batch_size": 400, "rate": 1e30, "sparse_rate": 1.0}
        with pytest.raises(TrainingError):
            trained(kind, training=settings, folder=folder)
        for path in [] if folder is None else folder.glob("*.safetensors"):
            for name, tensor in checkpoint.read_tensors(path)[0].items():
                assert torch.isfinite(tensor).all(), f"{path.name}: {name}"
