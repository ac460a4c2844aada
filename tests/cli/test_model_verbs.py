"""train, predict, evaluate and explain as a person meets them, and what they say to bad input."""

import gzip
import json
import os
import pickle
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from scipy import sparse

from sketchnet.data import open_shards
from sketchnet.training.model import load_model
from tests.cli.command_line import bad, contents, good
from tests.nn.conftest import one_thread

__all__ = ["one_thread"]

TINY = "--components 32 --hidden 16 --epochs 8 --batch-size 32".split()
TINY += "--set rate=0.01 --set sparse_rate=0.05 --set feature_dropout=0".split()
FIELDS = ("--text-column", "2", "--label-column", "1")
N = 240


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with small files of every kind, and a model for each: column 1, `login` and `red` decide."""
    folder = tmp_path_factory.mktemp("world")
    draw = random.Random(0)
    files = {name: [] for name in ("rows.svm", "numbers.svm", "several.svm", "urls.tsv", "urls.txt", "table.csv")}
    for _ in range(N):
        y = draw.random() < 0.5
        ids = [*([1] if y else []), *sorted(draw.sample(range(2, 50), 5)), 50]
        entries = " ".join(f"{i}:1" for i in ids)
        files["rows.svm"].append(f"{2 * y - 1} {entries}")
        files["numbers.svm"].append(f"{100 + 20 * y} {entries}")
        files["several.svm"].append(f"{'0,2' if y else '1'} {entries}")
        url = draw.choice(["shop.example/ä", "news.example/", "mail.example/"]) + ("login" if y else "home")
        files["urls.txt"].append(url)
        files["urls.tsv"].append(f"{'bad' if y else 'good'}\t{url}")
        files["table.csv"].append(f"{'red' if y else 'blue'},{draw.random():.3f},{'yes' if y else 'no'}")
    files["table.csv"].insert(0, "colour,size,answer")
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    good("train", "rows.svm", "--out", "rows", *TINY, cwd=folder)
    good("train", "numbers.svm", "--regression", "--out", "numbers", *TINY, cwd=folder)
    good("train", "several.svm", "--out", "several", *TINY, cwd=folder)
    text = ("--text", *FIELDS, "--ngrams", "1-5", "--columns", "100000")
    good("train", "urls.tsv", *text, "--out", "urls", *TINY, cwd=folder)
    good("train", "table.csv", "--label", "answer", "--out", "table", *TINY, cwd=folder)
    return folder


@pytest.fixture
def here(world, tmp_path):
    """A copy to spoil, with paths as short."""
    shutil.copytree(world, tmp_path, dirs_exist_ok=True)
    return tmp_path


def fields(lines):
    return [line.split("\t") for line in lines.splitlines()]


# -- predict


def test_predict_rows(world):
    labels = [line.split()[0] for line in (world / "rows.svm").read_text().splitlines()]
    answers = good("predict", "rows", "rows.svm", cwd=world).splitlines()
    assert np.mean(np.array(answers) == labels) > 0.95
    header, *rows = fields(good("predict", "rows", "rows.svm", "--proba", cwd=world))
    assert header == ["label", "-1", "1"]
    assert [row[0] for row in rows] == answers
    probabilities = np.array([row[1:] for row in rows], float)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert [header[1 + i] for i in probabilities.argmax(axis=1)] == answers
    listed = [json.loads(line) for line in good("predict", "rows", "rows.svm", "--json", cwd=world).splitlines()]
    assert [row["label"] for row in listed] == answers
    np.testing.assert_allclose([list(row["probabilities"].values()) for row in listed], probabilities, atol=1e-5)


def test_predict_into_a_file(here):
    expected = good("predict", "rows", "rows.svm", cwd=here)
    assert good("predict", "rows", "rows.svm", "--output", "new.gz", cwd=here) == f"new.gz: {N} predictions\n"
    assert gzip.decompress((here / "new.gz").read_bytes()).decode() == expected
    (here / "broken.svm").write_text((here / "rows.svm").read_text() + "1 5:oops\n")
    (here / "old.txt").write_text("old")
    before = contents(here)
    bad("predict", "rows", "broken.svm", "--output", "old.txt", message=f"broken.svm:{N + 1}:5", cwd=here)
    bad("predict", "rows", "rows.svm", "--output", "nowhere/x", message="--output nowhere/x", cwd=here)
    bad("predict", "rows", "rows.svm", "--output", "rows", message="--output rows is not possible", cwd=here)
    assert contents(here) == before


def test_labels_do_not_matter(here):
    expected = good("predict", "rows", "rows.svm", cwd=here)
    rows = [line.partition(" ")[2] for line in (here / "rows.svm").read_text().splitlines()]
    for other in ("", "77 ", "1,2 "):
        (here / "other.svm").write_text("".join(f"{other}{row}\n" for row in rows))
        assert good("predict", "rows", "other.svm", cwd=here) == expected


def test_predict_a_data_set_on_disk(here):
    expected = good("predict", "rows", "rows.svm", cwd=here)
    good("ingest", "rows.svm", "shards", cwd=here)
    assert good("predict", "rows", "shards", cwd=here) == expected
    good("ingest", "rows.svm", "other", "--base", "0", cwd=here)
    bad("predict", "rows", "other", message="other does not fit the model: its base differs", cwd=here)
    good("ingest", "urls.txt", "text", "--text", cwd=here)
    bad("predict", "urls", "text", message="its hasher differs", cwd=here)
    bad("predict", "rows", "text", message="its hasher differs", cwd=here)
    good("ingest", "table.csv", "table-shards", "--label", "answer", cwd=here)
    assert good("predict", "table", "table-shards", cwd=here) == good("predict", "table", "table.csv", cwd=here)


def test_predict_npz(here):
    good("ingest", "rows.svm", "shards", cwd=here)
    sparse.save_npz(here / "rows.npz", open_shards(here / "shards")[:].scipy())
    assert good("predict", "rows", "rows.npz", cwd=here) == good("predict", "rows", "rows.svm", cwd=here)


def test_a_file_with_few_columns(here):
    (here / "few.svm").write_text("1 1:1\n")
    assert good("predict", "rows", "few.svm", cwd=here) == "1\n"
    good("ingest", "few.svm", "few", "--base", "1", cwd=here)
    assert open_shards(here / "few").n_columns == 1
    assert good("predict", "rows", "few", cwd=here) == "1\n"
    assert json.loads(good("evaluate", "rows", "few", "--json", cwd=here))["rows"] == 1


def test_hashed_columns_take_any_id(here):
    good("train", "rows.svm", "--out", "hashed", "--set", "hashed_columns=1024", *TINY, cwd=here)
    (here / "far.svm").write_text(f"1 1:1 {2**62}:1\n-1 2:1\n")
    assert good("predict", "hashed", "far.svm", cwd=here).splitlines() == ["1", "-1"]
    assert json.loads(good("evaluate", "hashed", "far.svm", "--json", cwd=here))["error"] == 0
    assert str(2**62) in good("explain", "hashed", "far.svm", cwd=here)


def test_predict_text(world):
    answers = good("predict", "urls", "urls.txt", cwd=world).splitlines()
    labels = [line.split("\t")[0] for line in (world / "urls.tsv").read_text().splitlines()]
    assert answers == labels
    assert good("predict", "urls", "urls.tsv", "--text-column", "2", cwd=world).splitlines() == answers
    header, *_ = fields(good("predict", "urls", "urls.txt", "--proba", cwd=world))
    assert header[0] == "label"
    assert set(header[1:]) == {"good", "bad"}


def test_predict_a_table_with_and_without_its_label(here):
    expected = good("predict", "table", "table.csv", cwd=here)
    assert set(expected.split()) == {"yes", "no"}
    lines = (here / "table.csv").read_text().splitlines()
    (here / "bare.csv").write_text("".join(line.rpartition(",")[0] + "\n" for line in lines))
    assert good("predict", "table", "bare.csv", cwd=here) == expected
    (here / "strange.csv").write_text("colour,size,answer\ngreen,1,perhaps\n")
    assert good("predict", "table", "strange.csv", cwd=here).strip() in ("yes", "no")


def test_predict_numbers(world):
    answers = np.array(good("predict", "numbers", "numbers.svm", cwd=world).split(), float)
    expected = [float(line.split()[0]) for line in (world / "numbers.svm").read_text().splitlines()]
    assert np.abs(answers - expected).mean() < 5
    first = json.loads(good("predict", "numbers", "numbers.svm", "--json", cwd=world).splitlines()[0])
    assert first == {"label": pytest.approx(answers[0])}


def test_predict_several_labels(world):
    answers = good("predict", "several", "several.svm", cwd=world).splitlines()
    expected = [line.split()[0] for line in (world / "several.svm").read_text().splitlines()]
    assert np.mean(np.array(answers) == expected) > 0.95
    first = json.loads(good("predict", "several", "several.svm", "--json", cwd=world).splitlines()[0])
    assert first["label"] == expected[0].split(",")
    assert list(first["probabilities"]) == ["0", "1", "2"]


def test_no_rows_have_no_answers(here):
    (here / "empty.svm").write_text("")
    assert good("predict", "rows", "empty.svm", cwd=here) == ""
    assert good("predict", "rows", "-", cwd=here) == ""


# -- standard input


def test_lines_from_standard_input(world):
    text = (world / "rows.svm").read_bytes()
    assert good("predict", "rows", "-", cwd=world, stdin=text) == good("predict", "rows", "rows.svm", cwd=world)
    # Bytes with which packed files begin, an empty line, and no newline at the end.
    lines = "BZh.example/login\n\nmail.example/home\r\n\x1f\x8blogin".encode()
    assert good("predict", "urls", "-", cwd=world, stdin=lines).splitlines()[::2] == ["bad", "good"]
    assert len(good("predict", "urls", "-", cwd=world, stdin=lines).splitlines()) == 4


def test_errors_name_the_line_of_standard_input(world):
    rows = (world / "rows.svm").read_bytes()
    lines = rows * 20 + b"1 2:1 3:oops\n"  # beyond the first block
    done = bad("predict", "rows", "-", message=f"standard input:{20 * N + 1}:9:", cwd=world, stdin=lines)
    assert len(done.stdout.splitlines()) > 1000  # what came before was answered
    bad("predict", "urls", "-", message="standard input:2:", cwd=world, stdin=b"good\n\xff\xfe\n")
    bad("predict", "table", "-", message="table cannot come from standard input", cwd=world)
    bad("predict", "rows", "-", "--norm", "l2", message="--norm is for text", cwd=world)


def test_each_line_is_answered_as_it_comes(world):
    command = [sys.executable, "-m", "sketchnet", "predict", "urls", "-"]
    with subprocess.Popen(command, cwd=world, stdin=-1, stdout=-1, text=True, bufsize=1) as process:
        for line, answer in (("shop.example/login", "bad"), ("news.example/home", "good")):
            process.stdin.write(line + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == answer + "\n"  # while the input is open
        process.stdin.close()
        assert process.wait(60) == 0


def test_a_reader_that_has_had_enough(here):
    (here / "long.svm").write_bytes((here / "rows.svm").read_bytes() * 200)
    command = [sys.executable, "-m", "sketchnet", "predict", "rows", "long.svm", "--proba"]
    with subprocess.Popen(command, cwd=here, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout.readline() == "label\t-1\t1\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 1


# -- evaluate


def test_evaluate(here):
    found = json.loads(good("evaluate", "rows", "rows.svm", "--json", cwd=here))
    assert found["rows"] == N
    assert found["classes"] == ["-1", "1"]
    assert found["error"] < 0.05
    assert found["roc_auc"] > 0.95
    assert np.sum(found["confusion"]) == N
    shown = good("evaluate", "rows", "rows.svm", "--calibration-plot", "plot.png", cwd=here)
    assert ["log", "loss", f"{found['log_loss']:.5g}"] in map(str.split, shown.splitlines())
    assert "rows are true classes, columns predicted ones" in shown
    assert (here / "plot.png").read_bytes().startswith(b"\x89PNG")


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


# -- explain


def test_explain_names_what_was_planted(world):
    for args, name in (
        (["rows", "rows.svm"], "1"),
        (["several", "several.svm"], "1"),
        (["numbers", "numbers.svm"], "1"),
        (["table", "table.csv"], "colour="),
    ):
        found = json.loads(good("explain", *args, "--json", "--top", "3", cwd=world))
        assert found["rows"] == N
        assert len(found["columns"]) == 3
        assert found["columns"][0]["name"].startswith(name)
        sizes = [column["importance"] for column in found["columns"]]
        assert sizes == sorted(sizes, reverse=True)
    assert "colour=red" in good("explain", "table", "table.csv", cwd=world)
    assert "in 7 rows" in good("explain", "rows", "rows.svm", "--rows", "7", cwd=world)


def test_explain_text_by_its_ngrams(world):
    names = [c["name"] for c in json.loads(good("explain", "urls", "urls.txt", "--json", cwd=world))["columns"]]
    assert all(name.startswith("'") for name in names)
    urls = (world / "urls.txt").read_text().splitlines()
    ends = [[url for url in urls if url.endswith(end)] for end in ("login", "home")]
    counts = [[np.mean([url.count(name[1:-1]) for url in end]) for end in ends] for name in names]
    # Columns that all rows share weigh as well, as an offset does; most are those that tell the classes apart.
    assert sum(abs(login - home) > 0.2 for login, home in counts) >= 12
    tsv = json.loads(good("explain", "urls", "urls.tsv", "--text-column", "2", "--json", cwd=world))["columns"]
    assert [c["name"] for c in tsv] == names


def test_explain_one_row(world):
    labels = [line.split()[0] for line in (world / "rows.svm").read_text().splitlines()]
    row = labels.index("1")
    found = json.loads(good("explain", "rows", "rows.svm", "--row", row, "--output", "1", "--json", cwd=world))
    assert found["row"] == row
    assert found["label"] == "1"
    assert len(found["columns"]) == 7
    first = found["columns"][0]
    assert (first["column"], first["name"], first["value"]) == (0, "1", 1)
    assert first["contribution"] > 0
    other = json.loads(good("explain", "rows", "rows.svm", "--row", row, "--output", "-1", "--json", cwd=world))
    assert other["columns"][0]["contribution"] == pytest.approx(-first["contribution"])
    assert good("explain", "rows", "rows.svm", "--row", row, cwd=world).startswith(f"row {row}: 1 with probability ")
    text = (world / "urls.txt").read_text().splitlines()
    row = next(i for i, line in enumerate(text) if line.endswith("login"))
    shown = json.loads(good("explain", "urls", "urls.txt", "--row", row, "--output", "bad", "--json", cwd=world))
    assert all(column["name"].strip("'").split("' or '")[0] in text[row] for column in shown["columns"])


def test_explain_a_data_set_on_disk(here):
    good("ingest", "rows.svm", "shards", cwd=here)
    expected = json.loads(good("explain", "rows", "rows.svm", "--json", cwd=here))["columns"]
    found = json.loads(good("explain", "rows", "shards", "--json", cwd=here))["columns"]
    assert [(c["column"], c["name"]) for c in found] == [(c["column"], c["name"]) for c in expected]


# -- bad input


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("predict nothing rows.svm", "nothing is no model: there is no nothing/config.json"),
        ("predict rows.svm rows.svm", "rows.svm is no model"),
        ("predict rows missing.svm", "there is no file missing.svm"),
        ("predict rows", "Missing argument 'INPUT'"),
        ("predict rows nan.svm", "nan.svm:1:5: value 'nan' is not a finite decimal number"),
        ("predict rows nan.npz", "NaN or infinity: nan in row 0, column 3"),
        ("predict rows far.svm", "row 1 has column id 51; the model was trained on 1 to 50"),
        ("predict rows wide.npz", "wide.npz has 60 columns; the model has 50"),
        ("predict rows large.svm", "the output for row 0 is not a finite number"),
        ("predict rows urls.txt --text", "the model was not trained on text"),
        ("predict rows table.csv --format table", "the model was not trained on one"),
        ("predict rows rows.svm --format xml", "--format xml is not possible"),
        ("predict rows rows.svm --norm l2", "--norm is for text"),
        ("predict table short.csv", "column 'size' is missing"),
        ("predict urls urls.txt --text-column 3", "there are 1 fields, but field 3 is asked for"),
        ("predict numbers rows.svm --proba", "--proba is for classes; numbers predicts numbers"),
        ("predict rows .", "is not a data set"),
        ("evaluate nothing rows.svm", "nothing is no model"),
        ("evaluate rows nan.svm", "nan.svm:1:5"),
        ("evaluate rows far.svm", "row 1 has column id 50; allowed are 0 to 49"),
        ("evaluate rows labels.svm", "label 7.0 of row 1 is not among the classes -1.0, 1.0"),
        ("evaluate rows several.svm", "the line has no label or several"),
        ("evaluate several negative.svm", "a label that is no whole number from 0 on"),
        ("evaluate several labels.svm", "labels go up to 7; the model knows 0 to 2"),
        ("evaluate rows empty.svm", "empty.svm has no rows"),
        ("evaluate table empty.csv", "empty.csv has no rows"),
        ("evaluate urls urls.txt", "urls.txt has no labels"),
        ("evaluate urls classes.tsv --text-column 2 --label-column 1", "has the class 'ugly'; the model knows"),
        ("evaluate rows rows.svm --calibration-plot plot.jpg", "it is a .png file"),
        ("evaluate numbers numbers.svm --calibration-plot plot.png", "is for models that choose one class"),
        ("explain nothing rows.svm", "nothing is no model"),
        ("explain rows empty.svm", "empty.svm has no rows"),
        ("explain rows rows.svm --row 1000", "rows.svm has 240 rows; --row 1000 is beyond them"),
        ("explain rows rows.svm --row -1", "Invalid value for '--row'"),
        ("explain rows rows.svm --top 0", "Invalid value for '--top'"),
        ("explain rows rows.svm --output 3", "--output 3 is not possible; classes are -1, 1"),
        ("explain numbers rows.svm --output 3", "not what this model predicts"),
        ("explain rows -", "cannot come from standard input"),
        ("train nan.svm --out new", "nan.svm:1:5"),
        ("train nan.npz --out new", "NaN or infinity"),
        ("train one.svm --out new", "there is only one class, 1.0"),
        ("train empty.svm --out new", "has no rows"),
        ("train empty.csv --label answer --out new", "the table has no rows"),
        ("train rows.svm --out new --set colour=red", "there is no setting colour"),
        ("train rows.svm --out new --set dropout", "--set dropout is not possible"),
        ("train rows.svm --out new --hidden many", "--hidden many is not possible"),
        ("train rows.svm --out new --hidden 0", "hidden=0 is not possible"),
        ("train rows.svm --out new --test labels.svm", "label 7.0 of row 1 is not among the classes"),
    ],
)
def test_bad_input(args, message, here):
    files = {
        "nan.svm": "1 3:nan\n",
        "far.svm": "1 3:1\n1 3:1 51:1\n",
        "large.svm": "1 1:3e38 2:3e38 50:3e38\n",
        "labels.svm": "1 1:1\n7 1:1\n",
        "negative.svm": "0,-2 1:1\n",
        "one.svm": "1 1:1\n1 2:1\n",
        "empty.svm": "",
        "empty.csv": "colour,size,answer\n",
        "short.csv": "colour,answer\nred,yes\n",
        "classes.tsv": "good\tx.example\nugly\ty.example\n",
    }
    for name, text in files.items():
        (here / name).write_text(text)
    sparse.save_npz(here / "nan.npz", sparse.csr_array((np.array([np.nan]), [3], [0, 1]), shape=(1, 50)))
    sparse.save_npz(here / "wide.npz", sparse.csr_array((np.ones(1), [3], [0, 1]), shape=(1, 60)))
    before = contents(here)
    bad(*args.split(), *(TINY[:2] if args.startswith("train") else ()), message=message, cwd=here)
    shutil.rmtree(here / "new", ignore_errors=True)  # where train keeps what it has read
    assert contents(here) == before


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
    save_file({**tensors, "wide.weight": torch.zeros(3, 1)}, folder / "weights.safetensors")


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


def test_training_where_another_model_is(here):
    before = contents(here)
    other = [*TINY, "--hidden", "8"]
    bad("train", "rows.svm", "--out", "rows", *other, message="rows has another model", cwd=here)
    after = {path: text for path, text in contents(here).items() if not path.startswith(str(here / "rows" / "data"))}
    assert after == before
    good("train", "rows.svm", "--out", "rows", *other, "--overwrite", cwd=here)
    assert load_model(here / "rows").network.config.hidden == (8,)


def test_training_where_another_model_is_leaves_nothing(here):
    before = contents(here)
    bad("train", "rows.svm", "--out", "rows", *TINY, "--hidden", "8", message="rows has another model", cwd=here)
    assert contents(here) == before


def test_help_has_examples(world):
    for verb in ("predict", "evaluate", "explain"):
        assert f"sketchnet {verb} " in good(verb, "--help", cwd=world)
