"""The loop around the steps: what it learns from rows first, what it reports, what it refuses."""

import dataclasses
import json
import signal
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from sketchnet.errors import InputError, Interrupted, StorageError
from sketchnet.training import checkpoint
from sketchnet.training.loop import Examples, train
from sketchnet.training.steps import evaluate
from tests.other_writer import held_by_another
from tests.training.toy import assert_same_network, examples, make_model, toy, trained


def test_scales_are_those_of_the_training_rows():
    """Of columns: their largest absolute values, 1 where they have none. Of projected rows: their moments."""
    given, task = examples("binary", 300)
    values = 0.1 * np.random.default_rng(0).standard_normal(len(given.data.values)).astype(np.float32)
    given = dataclasses.replace(given, data=dataclasses.replace(given.data, values=values))
    rows = sparse.csr_array(given.data.scipy(), copy=True)
    rows.sum_duplicates()
    largest = abs(rows).max(axis=0).toarray().ravel()
    model = make_model(task, scale_input="max_abs", learn=False, normalise="standard", n_components=5000)
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


def test_the_time_of_each_stage(tmp_path):
    """Of a run that was cut off, too, as it was when they were first done."""
    fixed = {"learn": False, "normalise": "standard", "scheme": "gaussian"}
    options = {"network": fixed, "training": {"epochs": 3}, "folder": tmp_path / "model"}
    with pytest.raises(Interrupted):
        trained(**options, loaded=1.23456, tick=lambda done, *_: done == 11 and signal.raise_signal(signal.SIGINT))
    model = trained(**options, loaded=0.5)
    stages = {record["stage"]: record["seconds"] for record in model.history if "stage" in record}
    assert list(stages) == ["load", "reduce", "normalise"]
    assert stages.pop("load") == 1.235
    *_, first, _, third, last = model.history
    assert list(last) == ["best_epoch", "seconds_to_best", "seconds"]
    assert 0 <= sum(stages.values()) <= first["seconds"] + 0.01 <= last["seconds_to_best"] + 0.01
    assert last["seconds_to_best"] <= last["seconds"] == third["seconds"]
    assert "load" not in [record.get("stage") for record in trained().history]  # nobody knows


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
    folder.mkdir()
    with held_by_another(folder, inside=True), pytest.raises(StorageError, match="another process is writing"):
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
    for network in ({}, {"scale_input": "max_abs"}, {"learn": False, "normalise": "standard"}):
        with pytest.raises(InputError, match="NaN or infinity: nan"):
            train(make_model(task, **network), bad, None)
