"""`sketchnet evaluate`: measures of every task."""

import json

import numpy as np

from sketchnet.data import open_shards, write_svmlight
from tests.cli.command_line import good
from tests.cli.planted import FIELDS, TINY, N


def test_evaluate(here):
    found = json.loads(good("evaluate", "rows", "rows.svm", "--json", cwd=here))
    assert found["rows"] == N
    assert found["classes"] == [-1, 1]
    assert found["error"] < 0.05
    assert found["roc_auc"] > 0.95
    assert np.sum(found["confusion"]) == N
    shown = good("evaluate", "rows", "rows.svm", cwd=here)
    assert ["log", "loss", f"{found['log_loss']:.5g}"] in map(str.split, shown.splitlines())
    assert "rows are true classes, columns predicted ones" in shown


def test_evaluate_text_and_tables(world):
    for args in (["urls", "urls.tsv", *FIELDS], ["table", "table.csv"]):
        assert json.loads(good("evaluate", *args, "--json", cwd=world))["error"] == 0


def test_evaluate_numbers_and_several_labels(world):
    found = json.loads(good("evaluate", "numbers", "numbers.svm", "--json", cwd=world))
    assert found["rmse"] < 8
    assert found["r2"] > 0.5
    found = json.loads(good("evaluate", "several", "several.svm", "--json", cwd=world))
    assert found["micro_f1"] > 0.95
    assert "micro f1" in good("evaluate", "several", "several.svm", cwd=world)


def test_what_one_class_does_not_define(here):
    (here / "one.svm").write_text("1 1:1\n1 2:1\n")
    assert "roc auc" not in good("evaluate", "rows", "one.svm", cwd=here)
    found = json.loads(good("evaluate", "rows", "one.svm", "--json", cwd=here))
    assert "roc_auc" not in found
    assert found["confusion"][0] == [0, 0]


def test_classes_called_0_and_1_are_numbers_in_any_format(tmp_path):
    good("synth", "shards", "-n", "300", "-d", "100", "--density", "0.05", cwd=tmp_path)
    for part in ("train", "test"):
        write_svmlight(tmp_path / f"{part}.svm", open_shards(tmp_path / "shards" / part)[:])
    good("train", "shards/train", "--out", "of-shards", *TINY, cwd=tmp_path)
    good("train", "train.svm", "--columns", "100", "--out", "of-text", *TINY, cwd=tmp_path)
    for model in ("of-shards", "of-text"):
        found = [
            json.loads(good("evaluate", model, rows, "--json", cwd=tmp_path)) for rows in ("shards/test", "test.svm")
        ]
        assert found[0] == found[1]
        assert found[0]["classes"] == [0, 1]
        good("report", model, "--data", "test.svm" if model == "of-shards" else "shards/test", cwd=tmp_path)
