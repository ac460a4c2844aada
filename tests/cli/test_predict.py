"""`sketchnet predict`: files and data sets of every kind, with every task."""

import gzip
import json
import shutil

import numpy as np
import pytest
from scipy import sparse

from sketchnet.data import open_shards
from tests.cli.command_line import bad, contents, good, sketchnet
from tests.cli.planted import TINY, N


def fields(lines):
    return [line.split("\t") for line in lines.splitlines()]


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
    assert [row["label"] for row in listed] == [int(answer) for answer in answers]
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
    for other in ("", "77 ", "1,2 ", "? ", "spam ", "spam:ham ", "C# ", "nan "):
        text = "".join(f"{other}{row}\n" for row in rows)
        (here / "other.svm").write_text(text)
        assert good("predict", "rows", "other.svm", cwd=here) == expected
        assert good("predict", "rows", "-", cwd=here, stdin=text.encode()) == expected
    (here / "other.svm").write_text("spam 1:1\n? 2:1\n3:x\n")
    bad("predict", "rows", "other.svm", message="other.svm:3:3: value 'x'", cwd=here)


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
    rest = "5:1 12:1 20:1 31:1 50:1"
    (here / "far.svm").write_text(f"1 1:1 {rest} {2**62}:0.01\n-1 {rest}\n")
    assert good("predict", "hashed", "far.svm", cwd=here).splitlines() == ["1", "-1"]
    assert json.loads(good("evaluate", "hashed", "far.svm", "--json", cwd=here))["error"] == 0
    assert str(2**62) in good("explain", "hashed", "far.svm", cwd=here)


def test_predict_text(world):
    answers = good("predict", "urls", "urls.txt", cwd=world).splitlines()
    labels = [line.split("\t")[0] for line in (world / "urls.tsv").read_text().splitlines()]
    assert answers == labels
    assert good("predict", "urls", "urls.tsv", "--text-column", "2", cwd=world).splitlines() == answers
    listed = map(json.loads, good("predict", "urls", "urls.txt", "--json", cwd=world).splitlines())
    assert [row["label"] for row in listed] == answers
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
    done = sketchnet("predict", "table", "strange.csv", cwd=here)
    assert done.stdout.strip() in ("yes", "no")
    assert done.stderr == "strange.csv, column 'colour': 1 values that the training rows do not have, left out\n"


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
    assert first["label"] == [int(label) for label in expected[0].split(",")]
    assert list(first["probabilities"]) == ["0", "1", "2"]


def test_no_rows_have_no_answers(here):
    (here / "empty.svm").write_text("")
    assert good("predict", "rows", "empty.svm", cwd=here) == ""
    assert good("predict", "rows", "-", cwd=here) == ""


def test_models_that_are_unfinished_say_so(world, tmp_path):
    shutil.copytree(world / "rows", tmp_path / "model")
    (tmp_path / "model" / "checkpoint.safetensors").write_bytes(b"")
    for verb in ("predict", "evaluate"):
        done = sketchnet(verb, "model", world / "rows.svm", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "sketchnet: model is unfinished; its best epoch so far answers\n")
    (tmp_path / "model" / "weights.safetensors").unlink()
    message = "there is no model/weights.safetensors; its training is unfinished: run it again to go on"
    bad("predict", "model", world / "rows.svm", message=message, cwd=tmp_path)
