"""Models that are damaged, or made to do harm: an error of one line, and nothing is run or written."""

import json
import os
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file

from sketchnet.experts import model
from tests.cli.command_line import bad, contents, sketchnet


class Hostile:
    def __reduce__(self):
        return os.mkdir, ("unpickled",)


def _pickle(folder):
    (folder / "weights.safetensors").write_bytes(pickle.dumps(Hostile()))


def _torch_pickle(folder):
    torch.save(Hostile(), folder / "weights.safetensors")


def _truncate(folder):
    path = folder / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def _without_weights(folder):
    (folder / "weights.safetensors").unlink()


def _header_only(folder):
    (folder / "weights.safetensors").write_bytes((10**15).to_bytes(8, "little") + b"{}")


def _double(folder):
    tensors = load_file(folder / "weights.safetensors")
    save_file({name: tensor.double() for name, tensor in tensors.items()}, folder / "weights.safetensors")


def _other_shape(folder):
    tensors = load_file(folder / "weights.safetensors")
    save_file({**tensors, "more.weight": torch.zeros(3, 1)}, folder / "weights.safetensors")


def _nan(folder):
    tensors = load_file(folder / "weights.safetensors")
    save_file({**tensors, "layers.1.bias": torch.full((16,), float("nan"))}, folder / "weights.safetensors")


def _config(change):
    def spoil(folder):
        path = folder / "config.json"
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return spoil


def _garbage(folder):
    (folder / "config.json").write_bytes(b"\x80\x04 not JSON")


def _folder(folder):
    (folder / "config.json").unlink()
    (folder / "config.json").mkdir()


@pytest.mark.parametrize(
    "spoil",
    [
        _pickle,
        _torch_pickle,
        _truncate,
        _without_weights,
        _header_only,
        _double,
        _other_shape,
        _nan,
        _garbage,
        _folder,
        _config(lambda c: c.clear()),
        _config(lambda c: c.update(format=99)),
        _config(lambda c: c.update(layout=99)),
        _config(lambda c: c.pop("network")),
        _config(lambda c: c.update(task=[])),
        _config(lambda c: c["task"].update(kind="oracle")),
        _config(lambda c: c["task"].update(classes=[1])),
        _config(lambda c: c["network"].update(hidden=[10**30])),
        _config(lambda c: c["network"].update(n_components=2**40)),
        _config(lambda c: c["network"].update(n_columns=10**15)),
        _config(lambda c: c["network"].update(scheme="__import__('os')")),
        _config(lambda c: c["network"].update(surprise=1)),
        _config(lambda c: c.update(data=[1])),
        _config(lambda c: c["data"].update(classes=["only one"])),
        _config(lambda c: c["data"].update(base="x")),
        _config(lambda c: c["data"].update(labels=[None])),
        _config(lambda c: c["data"].update(hasher={"surprise": 1})),
        _config(lambda c: c["data"].update(encoder={"format": 1})),
    ],
)
def test_damaged_and_hostile_models(spoil, here):
    spoil(here / "rows")
    before = contents(here)
    for verb in ("predict", "evaluate", "explain"):
        done = bad(verb, "rows", "rows.svm", message="", cwd=here)
        assert done.stdout == ""
    assert contents(here) == before
    assert not (here / "unpickled").exists()


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        ("rows", lambda data: data.update(labels="both"), "labels 'both' are not possible"),
        ("urls", lambda data: data["hasher"].update(seed="x"), "seed='x' is not possible"),
        ("urls", lambda data: data["hasher"].update(surprise=1), "is damaged: TypeError: "),
        ("table", lambda data: data["encoder"].update(n_columns=-1), "n_columns=-1 is not"),
        ("table", lambda data: data["encoder"].update(missing=3), "is damaged: TypeError: "),
    ],
)
def test_what_is_wrong_with_how_rows_are_read_names_the_file(model, change, message, here):
    _config(lambda content: change(content["data"]))(here / model)
    done = bad("predict", model, "rows.svm", message=message, cwd=here)
    assert done.stderr.startswith(f"sketchnet: {model}/config.json")


def test_a_model_for_which_memory_is_too_little_is_not_called_damaged(here, monkeypatch):
    def too_large(folder):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 36000000000 bytes")

    monkeypatch.setattr(model, "load_model", too_large)
    done = sketchnet("predict", "rows", "rows.svm", cwd=here)
    assert done.returncode == 1
    assert done.stderr.startswith("sketchnet: out of memory: ")
