"""`sketchnet report` as a person meets it: of models of every kind, and of what is none."""

import json
import random
import re
import shutil

import pytest

from sketchnet.training.model import load_model
from tests.cli.command_line import bad, good
from tests.report.numbers import Numbers

TINY = "--components 16 --hidden 8 --epochs 2 --batch-size 32".split()
TINY += "--set rate=0.01 --set sparse_rate=0.05 --set feature_dropout=0".split()
N = 120
TEXT = ("--text-column", "2", "--label-column", "1")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    draw = random.Random(0)
    files = {name: [] for name in ("rows.svm", "numbers.svm", "several.svm", "words.tsv")}
    for _ in range(N):
        y = draw.random() < 0.5
        entries = " ".join(f"{i}:1" for i in [*([1] if y else []), *sorted(draw.sample(range(2, 30), 5)), 30])
        files["rows.svm"].append(f"{2 * y - 1} {entries}")
        files["numbers.svm"].append(f"{100 + 20 * y} {entries}")
        files["several.svm"].append(f"{'0,2' if y else '1'} {entries}")
        files["words.tsv"].append(f"{draw.choice(['<b>no</b>', 'yes', 'odd'])}\t<i>{'login' if y else 'home'}</i>")
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    good("train", "rows.svm", "--out", "rows", *TINY, cwd=folder)
    good("train", "numbers.svm", "--regression", "--out", "numbers", *TINY, cwd=folder)
    good("train", "several.svm", "--out", "several", *TINY, cwd=folder)
    words = ("--text", *TEXT, "--ngrams", "1-6", "--columns", "5000")
    good("train", "words.tsv", *words, "--out", "words", *TINY, cwd=folder)
    auto = "--task autoencoder --hidden 8 --codes 4 --epochs 2 --set pretrain=2".split()
    good("train", "rows.svm", "--out", "auto", *auto, cwd=folder)
    return folder


def numbers_of(path):
    return {name: value for name, value, _ in Numbers(path.read_text()).found}


def test_a_file_that_cannot_be_written_leaves_the_other_as_it_was(world, tmp_path):
    (tmp_path / "page.html").write_text("old")
    (tmp_path / ".page.md.sketchnet").write_text("not ours")  # where the new file is to be written
    asked = ("report", world / "rows", "--out", "page.html", "--markdown", "page.md")
    bad(*asked, message=".page.md.sketchnet", cwd=tmp_path)
    assert (tmp_path / "page.html").read_text() == "old"


def test_a_classifier_with_data(world, tmp_path):
    out = tmp_path / "run.html"
    found = json.loads(good("report", "rows", "--data", "rows.svm", "--out", out, "--json", cwd=world))
    measured = json.loads(good("evaluate", "rows", "rows.svm", "--json", cwd=world))
    explained = json.loads(good("explain", "rows", "rows.svm", "--top", "30", "--json", cwd=world))
    shown, text = numbers_of(out), out.read_text()
    model = load_model(world / "rows")
    for key in ("error", "log_loss", "roc_auc", "calibration_error"):
        assert found[key] == shown[f"metrics/{key}"] == measured[key]
    for i, row in enumerate(measured["confusion"]):
        assert [shown[f"confusion/{i}/{j}"] for j in range(2)] == row
    for i, column in enumerate(explained["columns"]):
        assert shown[f"features/{i}"] == column["importance"]
        assert f"<code>{column['name']}</code>" in text
    for record in (record for record in model.history if "epoch" in record):
        assert shown[f"epoch/{record['epoch']}/loss"] == record["loss"]
    assert shown["size/parameters"] == sum(tensor.numel() for tensor in model.network.parameters())
    assert shown["size/bytes"] == (world / "rows" / "weights.safetensors").stat().st_size
    assert found["rows_per_second"] > 0
    assert "predicted probability of class 1" in text


def test_names_of_classes_and_columns_are_escaped(world, tmp_path):
    out = tmp_path / "run.html"
    good("report", "words", "--data", "words.tsv", *TEXT, "--out", out, "--markdown", tmp_path / "run.md", cwd=world)
    text = out.read_text()
    assert "&lt;b&gt;no&lt;/b&gt;" in text
    assert "&lt;i&gt;" in text  # of an n-gram that is named
    assert "<b>" not in text
    assert "<i>" not in text


@pytest.mark.parametrize(
    ("model", "data", "sections"),
    [
        ("numbers", "numbers.svm", ["predictions", "features"]),
        ("several", "several.svm", ["features"]),
        ("auto", "rows.svm", ["retrieval"]),
        ("rows", None, []),
        ("auto", None, []),
    ],
)
def test_other_models(world, tmp_path, model, data, sections):
    out = tmp_path / "run.html"
    good("report", model, *(("--data", data) if data else ()), "--out", out, cwd=world)
    found = re.findall('<section id="(.*?)"', out.read_text())
    assert found == ["summary", "learning", *sections, "times", "settings"]


def test_folders_of_earlier_versions(world, tmp_path):
    """Stages had other names, and the last record had fewer times."""
    shutil.copytree(world / "rows", tmp_path / "old")
    path = tmp_path / "old" / "history.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines() if '"stage": "load"' not in line]
    assert records[-1].pop("seconds_to_best") > 0
    records.insert(0, {"stage": "project", "seconds": 0.75})
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    good("report", "old", "--out", "old.html", cwd=tmp_path)
    good("report", world / "rows", "--out", "new.html", cwd=tmp_path)
    shown = [numbers_of(tmp_path / f"{name}.html") for name in ("old", "new")]
    assert shown[0]["stage/0/seconds"] == 0.75
    assert ["history/seconds_to_best" in numbers for numbers in shown] == [False, True]


def test_bad_models(world, tmp_path):
    out = tmp_path / "run.html"
    bad("report", "nowhere", "--out", out, message="nowhere", cwd=world)
    bad("report", ".", "--out", out, message="config.json", cwd=world)
    bad("report", "rows.svm", "--out", out, message="rows.svm", cwd=world)
    bad("report", "rows", "--out", "page.pdf", message="--out page.pdf is not possible", cwd=world)
    bad("report", "rows", "--out", "no/page.html", message="--out no/page.html", cwd=world)
    bad("report", "rows", "--out", out, "--markdown", "x.txt", message="--markdown x.txt", cwd=world)
    bad("report", "rows", "--label", "x", "--out", out, message="give --data FILE", cwd=world)
    bad("report", "rows", "--data", "none.svm", "--out", out, message="none.svm", cwd=world)
    bad("report", "rows", "--data", "numbers.svm", "--out", out, message="100", cwd=world)
    assert not out.exists()


def test_an_autoencoder_on_rows_without_labels(world, tmp_path):
    lines = (world / "rows.svm").read_text().splitlines()
    (tmp_path / "bare.svm").write_text("\n".join(line.split(" ", 1)[1] for line in lines) + "\n")
    good("report", world / "auto", "--data", "bare.svm", cwd=tmp_path)
    assert "mean_average_precision" not in numbers_of(tmp_path / "report.html")
