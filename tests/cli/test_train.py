"""`sketchnet train`: where another model is, beside which other rows, and what it takes from the rows."""

import json

import pytest

from sketchnet import SketchClassifier
from sketchnet.projection import SRHT
from sketchnet.training.model import load_model
from tests.cli.command_line import bad, contents, good
from tests.cli.planted import FIELDS, TINY, N


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


def test_other_rows_are_as_wide_as_the_training_rows(here):
    """Or narrower. Wider ones are refused before a step is made, with the way out."""
    (here / "few.svm").write_text("1 1:1\n")
    (here / "far.svm").write_text("1 3:1\n1 3:1 60:1\n")
    for name in ("rows", "few", "far"):
        good("ingest", f"{name}.svm", f"{name}-shards", "--base", "1", cwd=here)
    for option in ("--valid", "--test"):
        for rows in ("rows.svm", "rows-shards"):
            command = ["train", rows, "--out", "new", *TINY, option]
            allowed = "far.svm:2:7: id '60' is too large; allowed are 1 to 50, as in the training rows"
            bad(*command, "far.svm", message=f"{allowed}; read these with --columns 60 or more", cwd=here)
            found = "far-shards has 60 columns, the training rows have 50"
            bad(*command, "far-shards", message=f"{found}; read these with --columns 60 or more", cwd=here)
            assert not (here / "new").exists()
    quick = "--components 8 --hidden 4 --epochs 1".split()
    good("train", "rows.svm", "--out", "wide", *quick, "--columns", "60", "--test", "far.svm", cwd=here)
    good("train", "rows.svm", "--out", "few", *quick, "--test", "few-shards", cwd=here)
    for name in ("far.svm", "far-shards"):
        hashed = ["--set", "hashed_columns=64", "--test", name]
        assert "test error" in good("train", "rows.svm", "--out", f"hashed-{name}", *quick, *hashed, cwd=here)


def test_rows_whose_classes_are_numbered_otherwise_are_not_measured_by(here):
    lines = (here / "urls.tsv").read_text().splitlines(keepends=True)
    first = lines[0].split("\t")[0]
    (here / "others.tsv").write_text("".join(sorted(lines, key=lambda line: line.startswith(first))))
    text = ("--text", *FIELDS, "--columns", "1000")
    for name in ("urls", "others"):
        good("ingest", f"{name}.tsv", f"{name}-rows", *text, cwd=here)
    message = "rows beside the training rows have the classes"
    bad("train", "urls-rows", "--test", "others-rows", "--out", "new", *TINY, message=message, cwd=here)
    good("ingest", "others.tsv", "like-rows", *text, "--like", "urls-rows", cwd=here)
    good("train", "urls-rows", "--test", "like-rows", "--out", "new", *TINY, cwd=here)


def test_numbers_are_not_taken_for_the_numbers_of_named_classes(here):
    """Labels 0 and 1 beside training rows with the classes x, 1 and 0; fewer classes in the same order are fine."""
    texts = {"named": "x10" * 20, "numbers": "01" * 10, "fewer": "x1" * 10}
    for name, labels in texts.items():
        (here / f"{name}.tsv").write_text("".join(f"{label}\tword {label}\n" for label in labels))
        text = "--text --text-column 2 --label-column 1 --columns 1000".split()
        good("ingest", f"{name}.tsv", f"{name}-rows", *text, cwd=here)
    message = "rows beside the training rows have the classes numbers; those have x, 1, 0; ingest them --like"
    bad("train", "named-rows", "--test", "numbers-rows", "--out", "new", *TINY, message=message, cwd=here)
    good("train", "named-rows", "--test", "fewer-rows", "--out", "new", *TINY, cwd=here)


def test_rows_with_several_labels_are_not_measured_by_where_one_was_learnt(here):
    good("ingest", "several.svm", "several-rows", cwd=here)
    message = "rows beside the training rows have several labels, those one a row"
    bad("train", "rows.svm", "--test", "several-rows", "--out", "new", *TINY, message=message, cwd=here)


def test_the_history_says_how_long_reading_took(here):
    history = json.loads(good("train", "rows.svm", "--out", "new", "--json", "--fixed", *TINY, cwd=here))["history"]
    assert [record["stage"] for record in history if "stage" in record] == ["load", "reduce", "normalise"]
    assert history[0]["seconds"] > 0
    assert history[0] == SketchClassifier.load(here / "new").history_[0]


_CODES = "--task autoencoder -k 16 --hidden 8 --codes 4 --epochs 1 --no-pretrain".split()


@pytest.mark.parametrize("task", [["--fixed", *TINY], _CODES])
def test_the_density_of_the_dissertations_srht_is_that_of_the_rows(task, here):
    for _ in range(2):  # the second time it is finished, and the same model
        good("train", "rows.svm", "--out", "new", "--scheme", "srht_sparse", *task, cwd=here)
    network = load_model(here / "new").network.config
    assert network.options == {"density": SRHT.thesis_density(N, network.n_columns)}  # too few to hold some back


def test_frozen_epochs_are_a_setting_of_what_learns(here):
    good("train", "rows.svm", "--out", "new", *TINY, "--set", "frozen_epochs=5", cwd=here)
    assert load_model(here / "new").training.frozen_epochs == 5
    message = "an autoencoder has no setting frozen_epochs"
    bad("train", "rows.svm", "--task", "autoencoder", "--set", "frozen_epochs=5", message=message, cwd=here)
