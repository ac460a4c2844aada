"""A run gives the same bits however it is made: threads, kept rows, a projection that is fixed, rows on disk."""

import dataclasses

import numpy as np
import pytest
import torch

from sketchnet.data import open_shards
from sketchnet.kernels.cpu import threads
from sketchnet.training.loop import Examples, train
from tests.data.test_shards import write
from tests.training.toy import (
    EVERYTHING,
    D,
    assert_same_network,
    every_optimiser,
    examples,
    make_model,
    trained,
    training,
    without_seconds,
)


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
    common = {"scheme": scheme, "options": options, "normalise": "batch", "dropout": 0.1}
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
        ({}, True),
        ({"scheme": "gaussian", "scale_input": "max_abs", "dropout": 0.1}, True),
        ({"feature_dropout": 0.3}, False),
    ],
    ids=["plain", "scaled", "dropped"],
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
    by_moments = 2 if normalise in ("standard", "max_abs") else 0
    assert (stages.count("reduce"), stages.count("normalise")) == (by_moments or kept, by_moments)


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
