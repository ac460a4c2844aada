"""`sketchnet train` without a setting of the network: a blend of experts, through all verbs."""

import json
import os
import random
import signal
import time

import pytest

from tests import forked
from tests.cli.command_line import bad, contents, good
from tests.cli.planted import FIELDS, plant
from tests.cli.test_train_kill import model

OF = {
    "rows": ("rows.svm",),
    "numbers": ("numbers.svm", "--regression"),
    "several": ("several.svm",),
    "urls": ("urls.tsv", "--text", *FIELDS, "--ngrams", "1-5", "--columns", "100000"),
    "table": ("table.csv", "--label", "answer"),
}
# Of the address, `login` and `home` say the same.
DECIDES = {"rows": "1", "numbers": "1", "several": "1", "urls": "o", "table": "colour="}


@pytest.fixture(scope="module")
def blends(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blends")
    plant(folder)
    for name, rows in OF.items():
        good("train", *rows, "--out", name, "--effort", "quick", cwd=folder)
    return folder


@pytest.mark.parametrize("name", OF)
def test_all_verbs_take_a_blend(name, blends):
    rows = OF[name][0]
    fields = FIELDS if name == "urls" else ()
    found = json.loads(good("evaluate", name, rows, *fields, "--json", cwd=blends))
    assert found["rows"] == 240
    assert found.get("error", found.get("squared_error", 0)) < 0.02
    answers = good("predict", name, rows, *fields[:2], cwd=blends).splitlines()
    assert len(answers) == 240
    shown = good("explain", name, rows, *fields[:2], "--top", "3", cwd=blends).splitlines()
    assert DECIDES[name] in shown[1]
    page = good("report", name, "--data", rows, *fields, "--markdown", f"{name}.md", cwd=blends)
    assert "a page of the model" in page
    assert "the blend" in (blends / f"{name}.md").read_text()


def test_settings_say_which_model_is_meant(blends, tmp_path):
    plant(tmp_path)
    good("train", "rows.svm", "--experts", "linear", "--metric", "roc_auc", "--valid-last", "0.2", cwd=tmp_path)
    config = json.loads((tmp_path / "rows-model" / "config.json").read_text())
    assert list(config["experts"]) == ["linear"]
    assert (config["training"]["metric"], config["training"]["valid_last"]) == ("roc_auc", 0.2)
    before = contents(tmp_path)
    refused = {
        ("--experts", "forest"): "experts='forest' is not possible; allowed are linear",
        ("--experts", "linear", "--epochs", "3"): "epochs is a setting of the network; give it with --experts sketch",
        ("--experts", "sketch", "--metric", "error"): "--metric is for blends of experts",
        ("--task", "autoencoder", "--effort", "quick"): "--effort is for blends of experts",
        ("--metric", "speed"): "metric='speed' is not possible",
        ("--effort", "none"): "effort='none' is not possible; allowed are quick, auto, best",
        ("--valid-last", "1"): "valid_last=1.0 is not possible",
        ("--group-column", "user"): "--group-column is for table, but rows.svm is read as svmlight",
    }
    for options, message in refused.items():
        bad("train", "rows.svm", "--out", "new", *options, message=message, cwd=tmp_path)
    bad("train", "rows.svm", "--experts", "sketch", message="has another model", cwd=tmp_path)
    assert contents(tmp_path) == before


def test_a_column_of_groups_is_no_feature_and_holds_rows_together(tmp_path):
    draw = random.Random(0)
    answers = [draw.choice("ab") for _ in range(60)]
    lines = [f"u{i % 60},u{i % 60},{answers[i % 60]}" for i in range(600)]
    (tmp_path / "t.csv").write_text("\n".join(["user,copy,answer", *lines, ""]))
    losses = {}
    for name, options in {"apart": (), "together": ("--group-column", "user")}.items():
        out = good("train", "t.csv", "--label", "answer", "--experts", "linear", *options, "--out", name, "--json",
                   cwd=tmp_path)  # fmt: skip
        losses[name] = next(r["valid_loss"] for r in json.loads(out)["history"] if r["stage"] == "linear")
    assert losses["together"] > 0.6 > 0.2 > losses["apart"]
    (tmp_path / "new.csv").write_text("copy\nu1\n")  # later rows need no group
    assert good("predict", "together", "new.csv", cwd=tmp_path).strip() in "ab"
    bad("train", "t.csv", "--label", "answer", "--group-column", "nobody", message="there is no column 'nobody'",
        cwd=tmp_path)  # fmt: skip


def test_killed_and_resumed_equals_uninterrupted(tmp_path):
    """SIGKILL and SIGTERM at random points: in the end the same model as that of a single run, and nothing else."""
    plant(tmp_path)
    (tmp_path / "more.svm").write_text((tmp_path / "rows.svm").read_text() * 4)
    command = ("train", "more.svm", "--experts", "linear,vectors", "--out")
    start = time.monotonic()
    good(*command, "whole", cwd=tmp_path)
    duration, rng = time.monotonic() - start, random.Random(0)
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = forked.start(*command, "cut", cwd=tmp_path)
        while not (tmp_path / "cut").exists() and process.is_alive():
            time.sleep(0.002)
        time.sleep(duration * rng.uniform(0, 0.8))
        os.kill(process.pid, number)
        process.join()
        assert process.exitcode in (0, 1, -number)
    good(*command, "cut", cwd=tmp_path)
    assert model(tmp_path / "cut") == model(tmp_path / "whole")
