"""`sketchnet train`: where another model is, and beside which other rows."""

from sketchnet.training.model import load_model
from tests.cli.command_line import bad, contents, good
from tests.cli.planted import TINY


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
            allowed = "far.svm: row 1 has column id 59; allowed are 0 to 49, as in the training rows"
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


def test_what_the_blend_did_is_printed(here):
    quick = "--components 8 --hidden 4 --epochs 1 --valid rows.svm".split()
    assert ", columns plain, " in good("train", "rows.svm", "--out", "new", *quick, cwd=here)
