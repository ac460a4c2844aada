"""`sketchnet train` with --task autoencoder, and with --pretrain."""

import importlib
import json
import signal

import pytest
import torch

from sketchnet.pretraining import RBM, RBMConfig, RBMTrainingConfig, make_rows, train_rbm
from sketchnet.training.model import load_model
from tests.cli.codes.documents import PLAIN, QUICK, RETRIEVAL, TINY, N, open_shards_of
from tests.cli.command_line import good, sketchnet


def history(folder):
    """Times aside."""
    records = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    return [{key: value for key, value in record.items() if not key.startswith("seconds")} for record in records]


def test_labels_are_not_looked_at(here):
    shown = good("train", "bare.svm", "--out", "bare", *QUICK, "--valid", "test.svm", "--test", "sets.svm", cwd=here)
    model, rows = load_model(here / "bare"), open_shards_of(here, "sets.svm")[:]
    loss = model.network.losses(model.network.visible(rows)).mean().item()
    assert float(shown.partition("test loss: ")[2].split()[0]) == pytest.approx(loss, rel=1e-4)
    assert "bare: done; try `sketchnet encode bare FILE`" in shown
    for name in ("train", "bare"):
        good("train", f"{name}.svm", "--out", f"{name}-model", *QUICK, cwd=here)
    weights = [(here / f"{name}-model" / "weights.safetensors").read_bytes() for name in ("train", "bare")]
    assert weights[0] == weights[1]
    shown = good("train", "test.svm", "bare.svm", "sets.svm", "--out", "all", *QUICK, cwd=here)
    assert shown.startswith(f"{4 * N * 9 // 10} rows x 40 columns of counts values; ")  # a tenth is held back


def test_what_is_printed_and_told(here):
    shown = good("train", "train.svm", "--out", "new", *QUICK, "--overwrite", cwd=here)
    assert "40-16-4-16-40, binary units; real codes" in shown
    assert "pretraining layer 2, epoch 3: reconstruction " in shown
    assert "epoch 1: loss " in shown
    told = json.loads(good("train", "train.svm", "--out", "new", *QUICK, "--json", "--test", "test.svm", cwd=here))
    assert told["model"] == "new"
    assert [record["stage"] for record in told["history"] if "stage" in record] == [
        "load",
        "normalise",
        *["rbm"] * 6,
        "centre",
    ]
    assert set(told["test"]) == {"loss"}
    assert 1 <= told["best_epoch"] <= 4


def test_a_rbm_that_begins_again_is_told_to_people():
    rbm = RBM(RBMConfig(8, 4, "gaussian", "gaussian"))
    rows = make_rows(25 * torch.randn(400, 8, generator=torch.Generator().manual_seed(0)), 20, 0)
    first, *_, last = train_rbm(rbm, rows, RBMTrainingConfig(batch_size=20, epochs=2), layer=1).history
    verb, page = (importlib.import_module(f"sketchnet.{name}") for name in ("cli.train", "report.run"))
    told = f"pretraining layer 2, epoch {first['epoch']}: no longer finite, begins again at rate {first['rate']:.4g}"
    assert verb._sentence(first, None) == told
    (row,) = page._stages([first, last]).rows
    assert (row[0], row[2].text) == ("pretraining of layer 2", f"began again at rate {first['rate']:.4g}")


def test_without_pretraining_and_behind_a_projection(here):
    options = [*PLAIN, "--scheme", "gaussian", "-k", "20"]
    shown = good("train", "train.svm", "--out", "new", *options, cwd=here)
    assert "gaussian to 20 (fixed), 20-16-4-16-20, relu units" in shown
    assert [record["stage"] for record in history(here / "new") if "stage" in record] == ["load", "reduce", "centre"]
    config = json.loads((here / "new" / "config.json").read_text())
    assert config["training"]["pretrain"] == 0
    assert config["network"]["n_components"] == 20
    assert json.loads(good("evaluate", "new", "test.svm", *RETRIEVAL, cwd=here))["area"] > 0.45


STACK = "--pretrain -k 20 --hidden 16,8 --epochs 4 --set pretrain=5".split()


@pytest.mark.parametrize(
    "options",
    [
        [*QUICK, "--binary-codes"],
        [*STACK, "--fixed"],
        [*STACK, "--set", "sparse_rate=0.01"],
    ],
)
def test_stopped_in_pretraining_and_in_an_epoch_it_ends_alike(options, here, monkeypatch):
    """Asked to stop after certain records, by a signal as Ctrl-C sends it."""
    verb = importlib.import_module("sketchnet.cli.train")
    sentence, stops = verb._sentence, [{"layer": 0, "epoch": 2}, {"layer": 1, "epoch": 1}, {"epoch": 2}]

    def stop_after(record, learning):
        if stops and stops[0] == {key: record[key] for key in ("layer", "epoch") if key in record}:
            stops.pop(0)
            signal.raise_signal(signal.SIGINT)
        return sentence(record, learning)

    whole, cut = (["train", "train.svm", "--out", name, *options] for name in ("whole", "cut"))
    good(*whole, cwd=here)
    monkeypatch.setattr(verb, "_sentence", stop_after)
    for file in ("pretraining", "pretraining", "checkpoint"):
        done = sketchnet(*cut, cwd=here)
        assert done.returncode == 1
        assert done.stderr == "sketchnet: stopped as asked; run the same command again to go on\n"
        assert (here / "cut" / f"{file}.safetensors").exists()
    good(*cut, cwd=here)
    assert not stops
    assert sorted(path.name for path in (here / "cut").iterdir()) == sorted(p.name for p in (here / "whole").iterdir())
    assert (here / "cut" / "weights.safetensors").read_bytes() == (here / "whole" / "weights.safetensors").read_bytes()
    assert history(here / "cut") == history(here / "whole")
    assert any(record.get("stage") == "rbm" for record in history(here / "cut"))


def test_pretraining_is_a_setting_of_a_classifier(here):
    shown = good("train", "train.svm", "--out", "new", *"--pretrain -k 20 --hidden 8 --epochs 3".split(), cwd=here)
    assert "334 epochs of pretraining" in shown
    config = json.loads((here / "new" / "config.json").read_text())
    assert config["training"]["pretrain"] == 334
    assert len(good("predict", "new", "train.svm", cwd=here).splitlines()) == 2 * N


def test_settings_that_fail_at_once_do_not_stand_in_the_way(here):
    """Nothing is kept, so another try needs no --overwrite."""
    done = sketchnet("train", "train.svm", "--out", "new", *TINY, "--set", "pretrain_rate=1e30", cwd=here)
    assert done.returncode == 1
    assert "no longer finite" in done.stderr
    good("train", "train.svm", "--out", "new", *TINY, cwd=here)
