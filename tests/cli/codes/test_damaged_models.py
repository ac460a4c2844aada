"""Autoencoders that are damaged: an error of one line, and nothing is written."""

import json

import pytest
from safetensors.torch import load_file, save_file

from tests.cli.command_line import bad, contents


def _tensor(name, change):
    def spoil(folder):
        tensors = load_file(folder / "weights.safetensors")
        save_file({**tensors, name: change(tensors[name])}, folder / "weights.safetensors")

    return spoil


def _config(**change):
    def spoil(folder):
        content = json.loads((folder / "config.json").read_text())
        for part, settings in change.items():
            content[part] |= settings
        (folder / "config.json").write_text(json.dumps(content))

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "weights.safetensors").write_bytes(b"cos\nsystem\n"),
        lambda folder: (folder / "weights.safetensors").unlink(),
        _tensor("encoder.1.bias", lambda bias: bias * float("nan")),
        _tensor("encoder.1.bias", lambda bias: bias.double()),
        _tensor("encoder.1.bias", lambda bias: bias[:-1]),
        _config(network={"n_codes": 5}),
        _config(network={"n_codes": 10**30}),
        _config(network={"hidden": [2**24, 2**24]}),
        _config(network={"n_columns": 10**15}),
        _config(network={"visible": "real"}),
        _config(network={"dropout": 0.5}),
        _config(task={"kind": "binary", "classes": [0, 1]}),
        _config(data={"base": "x"}),
    ],
)
def test_damaged_and_hostile_models(spoil, here):
    spoil(here / "model")
    before = contents(here)
    for verb in (["encode"], ["evaluate", "--retrieval"], ["similar", "--rows", "1"]):
        assert bad(verb[0], "model", "test.svm", *verb[1:], message="", cwd=here).stdout == ""
    assert contents(here) == before
