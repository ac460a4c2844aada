"""A network learns every task, by the steps of a plain loop."""

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.linear_model import LogisticRegression

from sketchnet.data.batches import epoch_order
from sketchnet.data.gather import take_rows
from sketchnet.training.loop import train
from sketchnet.training.steps import evaluate
from tests.statistics import FAILURE
from tests.training.test_optimisers import Dense, assert_same_weights
from tests.training.toy import (
    every_optimiser,
    examples,
    make_model,
    moved_in_epochs,
    toy,
    trained,
    training,
)


def test_no_linear_model_learns_the_toy():
    given, valid = toy(4000), toy(1000, seed=1)
    linear = LogisticRegression(C=0.1, max_iter=300).fit(given.rows.scipy(), given.labels("binary"))
    assert linear.score(valid.rows.scipy(), valid.labels("binary")) < 0.6


@pytest.mark.parametrize(
    ("kind", "error"), [("binary", 0.13), ("multiclass", 0.17), ("multilabel", 0.06), ("regression", 0.22)]
)
@every_optimiser
def test_a_network_learns(kind, error, optimiser):
    """Wrong labels, or the share of the targets' variance that is left; guessing is wrong in half or 3/4, and by 1."""
    options = training(optimiser, epochs=8, batch_size=100, sparse_rate={"adamw": 0.1, "sgd": 3.0}[optimiser])
    if kind == "regression" and optimiser == "sgd":
        options["rate"] = 0.03
    width = 64 if optimiser == "adamw" else 256
    model = trained(kind, 4000, 1000, options, {"n_components": width, "hidden": (64,)})
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
    chosen = {"rate": 5e-3, "epochs": 3, "batch_size": 100}
    model = trained(kind, 4000, 1000, chosen, {"feature_dropout": 0.1, "hidden": (64,)})
    told = [record["valid_error"] for record in model.history if "valid_error" in record][-1]
    unseen = examples(kind, 1000, seed=2, task=model.task)[0]
    noise = stats.norm.isf(FAILURE / 2) * np.sqrt(2 * 0.25 / 1000)
    assert abs(told - evaluate(model.network, model.task, unseen)[0]) < noise


@every_optimiser
@pytest.mark.parametrize("scheme", ["count_sketch", "li"])
def test_a_frozen_projection_stays_as_it_was_drawn_and_then_learns(optimiser, scheme):
    given, task = examples("binary", 400)
    settings = training(optimiser, epochs=4, frozen_epochs=2, l2=0.01)
    model = make_model(task, settings, scheme=scheme, normalise="none")
    assert moved_in_epochs(model, given) == [{"last"}] * 2 + [{"weight", "bias", "last"}] * 2
    assert all(parameter.requires_grad for parameter in model.network.parameters())
