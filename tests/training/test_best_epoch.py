"""When training stops, and which epoch remains."""

import numpy as np
import pytest

from sketchnet.training.loop import Examples, train
from sketchnet.training.steps import evaluate
from tests.training.toy import every_optimiser, examples, make_model, toy, trained, training


def noise(optimiser="sgd", **options):
    """Labels that cannot be learnt: validation errors go up and down."""
    rng = np.random.default_rng(8)
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
    until = next(record["seconds"] for record in model.history if record.get("epoch") == best + 1)
    assert model.history[-1]["seconds_to_best"] == until < model.history[-1]["seconds"]
    assert evaluate(model.network, model.task, valid) == min(errors(model))
    assert not model.network.training
    assert all(parameter.requires_grad for parameter in model.network.parameters())


def test_patience():
    model, given, valid = noise(epochs=50, patience=3)
    train(model, given, valid)
    ran, best = len(errors(model)), model.history[-1]["best_epoch"]
    assert ran == best + 3 < 50
    assert evaluate(model.network, model.task, valid) == min(errors(model))


def test_patience_is_for_what_comes_after_frozen_epochs():
    model, given, valid = noise(epochs=50, patience=1, frozen_epochs=20)
    train(model, given, valid)
    assert len(errors(model)) == max(model.history[-1]["best_epoch"], 20) + 1 < 50


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
