"""Saving a model: cut off or refused at any point, what was there before is whole."""

import os
import resource
import shutil
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sketchnet.errors import InputError, StorageError
from sketchnet.training import load_model
from tests.other_writer import held_by_another
from tests.training.toy import make_model, trained


@pytest.fixture
def folder(tmp_path):
    trained("multiclass", n=100, n_valid=50, training={"epochs": 1}).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        make_model(trained(n=100, n_valid=0, training={"epochs": 1}).task).save(tmp_path / "file" / "model")


def test_a_save_that_fails_leaves_the_model_before_it(folder):
    """As without room on the disk: no file may grow beyond 10,000 bytes."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    model = load_model(folder)
    with torch.no_grad():
        model.network.projection.weight += 1
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(StorageError, match=r"no room for .*weights\.safetensors: the system allows no larger file"):
            model.save(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_save_that_is_killed_leaves_one_model_or_the_other(folder, tmp_path, monkeypatch):
    """What a kill would leave is copied before everything that changes the folder, and in the end."""
    old, new = load_model(folder), load_model(folder)
    with torch.no_grad():
        new.network.projection.weight += 1
    new.training, new.history = replace(new.training, epochs=7), [{"best_epoch": 7, "seconds": 1.0}]
    left, busy = [], []

    def copy_folder():
        if not busy:  # copying makes folders too
            busy.append(True)
            left.append(tmp_path / f"left-{len(left)}")
            shutil.copytree(folder, left[-1])
            busy.clear()

    def watched(change):
        def first_copied(*args, **options):
            copy_folder()
            return change(*args, **options)

        return first_copied

    with monkeypatch.context() as patch:
        for name in ("mkdir", "rename", "replace", "unlink", "rmdir"):
            patch.setattr(os, name, watched(getattr(os, name)))
        new.save(folder)
    copy_folder()

    def is_new(found):
        (whole,) = (m for m in (old, new) if torch.equal(found.network.projection.weight, m.network.projection.weight))
        assert (found.training, found.history) == (whole.training, whole.history)
        return whole is new

    for place in left:
        shutil.copytree(place, f"{place}-again")
        with (
            held_by_another(place, inside=True),
            suppress(InputError),
        ):  # locked, nothing is brought back: no mixture may be loaded
            is_new(load_model(place))
    found = [is_new(load_model(place)) for place in left]
    assert found == sorted(found)
    assert set(found) == {False, True}
    for place in left:
        again = Path(f"{place}-again")
        new.save(again)
        assert is_new(load_model(again))
        assert sorted(path.name for path in again.iterdir()) == ["config.json", "history.jsonl", "weights.safetensors"]


def test_a_folder_that_another_process_writes_is_left_alone(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    model = load_model(folder)
    with held_by_another(folder, inside=True), pytest.raises(StorageError, match="another process is writing"):
        model.save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_models_are_not_saved_over_what_is_no_model(tmp_path):
    model = trained(n=100, n_valid=0)
    for name, content, message in (
        ("dataset.json", "{}", "is a data set"),
        ("config.json", '{"architectures": []}', "has a config.json that is no model's"),
        ("checkpoint.safetensors", "x", "its training was interrupted"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text(content)
        with pytest.raises(InputError, match=message):
            model.save(folder)
        assert [(path.name, path.read_text()) for path in folder.iterdir()] == [(name, content)]
    model.save(tmp_path / "model")
    model.save(tmp_path / "model")  # which is one
