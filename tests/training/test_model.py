"""Model folders: what is saved is loaded; what is damaged or absurd is refused, quickly and in little memory."""

import json
import os
import pickle
import shutil
import signal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from sketchnet.data import CsrBatch
from sketchnet.errors import InputError
from sketchnet.memory import PeakMemory
from sketchnet.training import load_model
from tests.training.toy import D, make_model, toy, trained

CONFIG, WEIGHTS, HISTORY = "config.json", "weights.safetensors", "history.jsonl"
NETWORKS = {
    "learnt": {},
    "li": {"scheme": "li", "options": {"s": 30}},
    "hashed": {"hashed_columns": 500, "scale_input": "max_abs"},
    "fixed": {"learn": False, "scheme": "gaussian", "normalise": "standard", "activation": "relu"},
    "deeper": {"learn": False, "normalise": "max_abs", "hidden": (8, 4), "dropout": 0.1},
}


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "regression"])
@pytest.mark.parametrize("network", NETWORKS)
def test_a_loaded_model_gives_the_same_outputs(kind, network, tmp_path):
    model = trained(kind, n=100, n_valid=50, training={"epochs": 1}, network=NETWORKS[network])
    model.data = {"base": 1, "name": ["é", "2"]}
    folder = tmp_path / "a" / "model"
    model.save(folder)
    assert sorted(path.name for path in folder.iterdir()) == [CONFIG, HISTORY, WEIGHTS]
    loaded = load_model(folder)
    for rows in (toy(1500, seed=2).rows, toy(3).rows, toy(3).rows.rows(slice(0, 0))):
        assert np.array_equal(loaded.outputs(rows), model.outputs(rows))
        doubled = CsrBatch(rows.indptr, rows.indices, rows.values.astype(np.float64), D)
        assert np.array_equal(loaded.outputs(doubled), model.outputs(doubled))
        assert loaded.outputs(rows).shape == (rows.n_rows, model.task.n_outputs)
    assert loaded.task == model.task
    assert loaded.training == model.training
    assert loaded.network.config == model.network.config
    assert loaded.data == model.data
    assert loaded.history == model.history
    assert not loaded.network.training
    loaded.save(folder)  # over itself
    assert np.array_equal(load_model(str(folder)).outputs(toy(3).rows), model.outputs(toy(3).rows))


def test_large_data_is_predicted_in_pieces():
    model, told = make_model(trained(n=100, n_valid=0).task), []
    rows = toy(2500).rows
    outputs = model.outputs(rows, progress=lambda done, total: told.append((done, total)))
    assert told == [(1024, 2500), (2048, 2500), (2500, 2500)]
    pieces = [model.outputs(rows.rows(slice(start, min(start + 1024, 2500)))) for start in (0, 1024, 2048)]
    assert np.array_equal(outputs, np.concatenate(pieces))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    trained("multiclass", n=100, n_valid=50, training={"epochs": 1}).save(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "model")
    return tmp_path / "model"


class TooSlow(BaseException):
    pass


def assert_refused(folder, match=None):
    """With an InputError, within seconds, without taking memory for what the folder only claims to have."""

    def too_slow(number, frame):
        raise TooSlow

    before = signal.signal(signal.SIGALRM, too_slow)
    signal.setitimer(signal.ITIMER_REAL, 5)
    try:
        with PeakMemory() as memory, pytest.raises(InputError, match=match):
            load_model(folder)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert memory.peak < 50e6


def change(folder, part, **values):
    content = json.loads((folder / CONFIG).read_text())
    (content[part] if part else content).update(values)
    (folder / CONFIG).write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (CONFIG, b""),
        (CONFIG, b"[1, 2]"),
        (CONFIG, b'"text"'),
        (CONFIG, b"{"),
        (CONFIG, b"\xff\xfe\x00"),
        (CONFIG, b'{"format": 1}'),
        (CONFIG, b"[" * 200_000),
        (CONFIG, b'{"a":' * 100_000),
        (CONFIG, b'{"format": ' + b"1" * 10_000 + b"}"),
        (WEIGHTS, b""),
        (WEIGHTS, b"\x00" * 100),
        (WEIGHTS, b"\xff" * 100),
        (WEIGHTS, (10**9).to_bytes(8, "little") + b"{}"),
        (WEIGHTS, pickle.dumps({"layers.1.weight": [1.0, 2.0]})),
        (WEIGHTS, np.random.default_rng(0).bytes(100_000)),
        (HISTORY, b"{\n"),
        (HISTORY, b"\xff\xfe\n"),
    ],
    ids=[
        "empty", "list", "text", "cut off", "other encoding", "no keys", "deep lists", "deep objects", "long number",
        "no weights", "zeros", "ones", "long header", "pickle", "random bytes", "history cut off", "other history",
    ],
)  # fmt: skip
def test_files_of_other_content_are_refused(folder, name, content):
    (folder / name).write_bytes(content)
    assert_refused(folder, str(folder))


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS])
def test_missing_files_are_named(folder, name):
    (folder / name).unlink()
    assert_refused(folder, f"there is no .*{name}")
    (folder / name).mkdir()
    assert_refused(folder, name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["config.json", "weights.safetensors", "history.jsonl"])
def test_what_never_ends_is_refused(folder, name):
    path = folder / name
    path.unlink()
    os.mkfifo(path)
    assert_refused(folder, f"{name} is no regular file")
    path.unlink()
    path.symlink_to("/dev/zero")
    assert_refused(folder, f"{name} is no regular file")


@pytest.mark.parametrize("name", ["config.json", "history.jsonl"])
def test_settings_of_absurd_size_are_refused(folder, name):
    os.truncate(folder / name, 10**12)
    assert_refused(folder, f"{name} has 1,000,000,000,000 bytes; allowed are 1,073,741,824")


def test_no_folder(tmp_path):
    assert_refused(tmp_path / "nothing", "nothing is no model")


@pytest.mark.parametrize("kept", [7, 8, 100, 5000, -1])
def test_truncated_weights_are_refused(folder, kept):
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[:kept])
    assert_refused(folder, "weights.safetensors is damaged")


@pytest.mark.parametrize(
    "edit",
    [
        lambda tensors: tensors.update({"layers.1.weight": tensors["layers.1.weight"].T.contiguous()}),
        lambda tensors: tensors.update({"projection.weight": tensors["projection.weight"].reshape(-1, 1)}),
        lambda tensors: tensors.update({"projection.weight": tensors["projection.weight"][:-1].clone()}),
        lambda tensors: tensors.pop("projection.weight"),
        lambda tensors: tensors.pop("norm.num_batches_tracked"),
        lambda tensors: tensors.update({"layers.9.weight": torch.zeros(3)}),
        lambda tensors: tensors.clear(),
    ],
    ids=["turned", "flat", "short", "without a table", "without a count", "one more", "empty"],
)
def test_weights_that_do_not_fit_are_refused(folder, edit):
    tensors = load_file(folder / WEIGHTS)
    edit(tensors)
    save_file(tensors, folder / WEIGHTS)
    assert_refused(folder, "does not fit its config.json")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int32, torch.bool], ids=str)
@pytest.mark.parametrize("name", ["projection.weight", "layers.1.weight", "norm.running_mean"])
def test_weights_of_another_type_are_refused(folder, name, dtype):
    tensors = load_file(folder / WEIGHTS)
    tensors[name] = tensors[name].to(dtype)
    save_file(tensors, folder / WEIGHTS)
    assert_refused(folder, "weights.safetensors")


def test_other_formats_are_refused(folder):
    change(folder, None, format=2)
    assert_refused(folder, "has format 2; this version reads format 1")
    change(folder, None, format=1, layout=7)
    assert_refused(folder, "draws by layout 7; this version by 1")
    change(folder, None, layout=None)
    assert_refused(folder, "layout None")


@pytest.mark.parametrize(
    "values",
    [
        {"hidden": [10**9, 10**9]},
        {"hidden": [2**62, 2**62]},
        {"hidden": [10**400]},
        {"hidden": [1] * 50},
        {"n_components": 2**31},
        {"n_components": 10**30},
        {"n_columns": 2**62},
        {"n_columns": 2**34},
        {"n_columns": 2**62, "scale_input": "max_abs", "learn": False},
        {"hashed_columns": 2**62},
        {"hashed_columns": -5},
        {"n_columns": -1},
        {"n_columns": 0},
        {"n_outputs": 2**40},
        {"n_outputs": -3},
        {"scheme": "li"},
        {"scheme": "li", "n_columns": 2**33, "n_components": 10, "options": {"s": 10}},
        {"scheme": "li", "n_columns": 2**50, "options": {"s": 1e18}},
        {"scheme": "gaussian", "learn": False, "n_components": 2**31},
        {"seed": 2**64},
        {"seed": -1},
        {"unknown": 1},
        {"options": {"k": 7}},
        {"options": {"s": 3}},
        {"options": [1]},
        {"hidden": "12"},
        {"hidden": 5},
        {"hidden": [[5]]},
        {"scheme": "nothing"},
        {"scheme": None},
        {"scheme": ["li"]},
        {"activation": "exec"},
        {"activation": ["relu"]},
    ],
    ids=str,
)
def test_absurd_networks_are_refused(folder, values):
    change(folder, "network", **values)
    assert_refused(folder)


NUMBERS = {
    "network": [
        "n_columns",
        "n_outputs",
        "n_components",
        "eta",
        "hashed_columns",
        "dropout",
        "feature_dropout",
        "seed",
    ],
    "training": [
        "epochs",
        "batch_size",
        "rate",
        "sparse_rate",
        "l2",
        "decay",
        "patience",
        "seconds",
        "seed",
    ],
    "task": ["mean", "deviation"],
}


@pytest.mark.parametrize("value", ["three", float("nan"), [1]], ids=["text", "nan", "list"])
@pytest.mark.parametrize(("part", "name"), [(part, name) for part, names in NUMBERS.items() for name in names])
def test_numbers_that_are_none_are_refused(folder, part, name, value):
    change(folder, part, **{name: value})
    assert_refused(folder, CONFIG)


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("task", {"kind": "clustering"}),
        ("task", {"kind": None}),
        ("task", {"classes": [0, 1]}),
        ("task", {"classes": 4}),
        ("task", {"kind": "binary"}),
        ("training", {"optimiser": "lbfgs"}),
        ("training", {"momentum": [0.5]}),
        ("training", {"momentum": [0.5, 1.5]}),
        ("training", {"epochs": -1}),
        (None, {"task": []}),
        (None, {"network": None}),
        (None, {"training": "sgd"}),
        (None, {"data": [1]}),
        (None, {"data": {"classes": ["two", "names"]}}),
    ],
    ids=str,
)
def test_other_damage_to_the_settings_is_refused(folder, part, values):
    change(folder, part, **values)
    assert_refused(folder, CONFIG)
