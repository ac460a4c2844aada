"""Histories of models as they are read back: what no training noted is damage, of one line."""

import json

import pytest

from sketchnet.errors import InputError
from sketchnet.training import checkpoint

EPOCH = {"epoch": 1, "loss": 0.5, "valid_error": 0.1, "seconds": 1.0}
RBM = {"stage": "rbm", "layer": 0, "epoch": 1, "reconstruction": 0.5, "seconds": 1.0}
OTHERS = [{"stage": "linear", "strength": 3.0, "columns": "plain"}, {"best_epoch": 1, "seconds": 2.0}]


def write(folder, *records):
    (folder / checkpoint.HISTORY).write_text("".join(json.dumps(record) + "\n" for record in records))


def test_what_training_notes(tmp_path):
    write(tmp_path, RBM, EPOCH, *OTHERS)
    assert checkpoint.read_history(tmp_path) == [RBM, EPOCH, *OTHERS]


@pytest.mark.parametrize(
    "record",
    [
        [],
        "text",
        {},
        {**EPOCH, "loss": "a\u2028b"},
        {**EPOCH, "epoch": 1.5},
        {**EPOCH, "valid_error": None},
        {**EPOCH, "stage": 3},
        {"epoch": 1, "loss": 0.5},
        {**RBM, "layer": "first"},
        {"stage": "rbm", "layer": 0, "epoch": 1, "seconds": 1.0},
        {"stage": "linear", "strength": [3.0]},
        {"stage": "load", "seconds": "long"},
        {"best_epoch": True, "seconds": 2.0},
    ],
)
def test_what_training_does_not_note(record, tmp_path):
    write(tmp_path, EPOCH, record)
    with pytest.raises(InputError, match=r"history.jsonl is damaged: line 2 is no record of a training"):
        checkpoint.read_history(tmp_path)
