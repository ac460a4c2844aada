"""`sketchnet train` leaves alone what others put into the folder that it is given."""

import sys

import pytest

from sketchnet.cli import _go_on
from sketchnet.cli.model_folder import reading_folder
from sketchnet.errors import InputError
from sketchnet.storage import workspace, workspace_of
from sketchnet.training import checkpoint
from sketchnet.training.model import load_model
from sketchnet.training.processes import Processes
from tests.cli.command_line import bad, contents, good, sketchnet
from tests.cli.planted import TINY
from tests.other_writer import held_by_another

ROWS = "1 1:1\n-1 2:1\n" * 20


@pytest.mark.parametrize("source", [".sketchnet/rows.svm", ".sketchnet/train", "nothing.svm"])
def test_a_folder_where_rows_would_be_kept_is_not_removed(source, tmp_path):
    """Neither the rows that were trained on, nor others, nor when the input is bad."""
    (tmp_path / ".sketchnet").mkdir()
    (tmp_path / ".sketchnet" / "rows.svm").write_text(ROWS)
    good("ingest", ".sketchnet/rows.svm", ".sketchnet/train", cwd=tmp_path)
    before = contents(tmp_path)
    message = ".sketchnet is where sketchnet would keep unfinished work, but it is not sketchnet's; move it away"
    for more in ((), ("--overwrite",)):
        bad("train", source, "--out", ".", *TINY, *more, message=message, cwd=tmp_path)
    assert contents(tmp_path) == before


def test_neither_a_data_set_nor_another_programs_folder_becomes_a_model(tmp_path):
    (tmp_path / "rows.svm").write_text(ROWS)
    good("ingest", "rows.svm", "rows", cwd=tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"architectures": []}')
    before = contents(tmp_path)
    for more in ((), ("--overwrite",)):
        bad("train", "rows", "--out", "rows", *TINY, *more, message="rows is a data set; choose", cwd=tmp_path)
        message = "has a config.json that is no model's"
        bad("train", "rows", "--out", "other", *TINY, *more, message=message, cwd=tmp_path)
    assert contents(tmp_path) == before


def test_a_link_to_nothing_is_not_replaced(tmp_path):
    (tmp_path / "rows.svm").write_text(ROWS)
    for name in checkpoint.FILES:
        (tmp_path / name).mkdir()
        (tmp_path / name / name).symlink_to("nothing")
        message = f"{name}/{name} is a link to nothing; remove it, or choose another folder"
        bad("train", "rows.svm", "--out", name, *TINY, message=message, cwd=tmp_path)
        assert [path.is_symlink() for path in (tmp_path / name).iterdir()] == [True]


def test_rows_that_no_network_takes_leave_nothing_in_the_way(tmp_path):
    """Neither files of a model, nor an own folder removed."""
    (tmp_path / "rows.svm").write_text(ROWS + "1 1:1e300\n")
    (tmp_path / "model").mkdir()
    for _ in range(2):
        done = sketchnet("train", "rows.svm", "--out", "model", *TINY, cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert list((tmp_path / "model").iterdir()) == []
    (tmp_path / "rows.svm").write_text(ROWS)
    good("train", "rows.svm", "--out", "model", *TINY, "--epochs", "1", cwd=tmp_path)


def test_a_model_stays_until_there_is_something_of_the_new_one(tmp_path):
    (tmp_path / "rows.svm").write_text(ROWS)
    good("train", "rows.svm", "--out", "model", *TINY, cwd=tmp_path)
    before = contents(tmp_path)
    diverges = ("--overwrite", "--set", "rate=1e300")
    tiny = [word for word in TINY if not word.startswith("rate=")]
    tiny.remove("--set")
    done = sketchnet("train", "rows.svm", "--out", "model", *tiny, *diverges, cwd=tmp_path)
    assert done.returncode == 1
    assert "may be too high" in done.stderr
    assert "keeps the state" not in done.stderr
    assert contents(tmp_path) == before
    good("train", "rows.svm", "--out", "model", *TINY, "--overwrite", "--seed", "1", cwd=tmp_path)
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "config.json",
        "history.jsonl",
        "weights.safetensors",
    ]


def test_a_network_that_no_memory_holds_leaves_nothing(tmp_path):
    """Two such layers side by side take a petabyte, which torch refuses at once."""
    (tmp_path / "rows.svm").write_text(ROWS)
    huge = ("--components", "1", "--hidden", f"{2**24},{2**24}")
    done = sketchnet("train", "rows.svm", "--out", "model", *huge, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("sketchnet: out of memory: ")
    assert done.stderr.endswith(
        "choose a smaller network (--hidden, --components) or --batch-size, or name a smaller --memory\n"
    )
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("begun", [False, True])
def test_rows_that_a_training_would_go_on_with_stay_when_memory_runs_out(begun, tmp_path):
    out = tmp_path / "model"

    def run_out():
        with reading_folder(out, Processes(), False) as rows:
            rows.mkdir()
            if begun:
                (out / checkpoint.CHECKPOINT).touch()
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")

    with pytest.raises(RuntimeError, match="out of memory"):
        run_out()
    assert (out / ".sketchnet" / "rows").exists() == begun


@pytest.mark.parametrize("place", ["replaced", "restored"])
def test_a_run_that_was_killed_before_it_had_something(place, tmp_path):
    (tmp_path / "rows.svm").write_text(ROWS)
    good("train", "rows.svm", "--out", "model", *TINY, cwd=tmp_path)
    before = contents(tmp_path)
    with workspace(tmp_path / "model", inside=True, keep=True) as work:
        (work / place).mkdir()
        for name in ("config.json", "weights.safetensors"):
            (tmp_path / "model" / name).rename(work / place / name)
    load_model(tmp_path / "model")
    assert contents(tmp_path) == before


def test_after_an_interrupted_overwrite(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["sketchnet", "train", "rows.svm", "--overwrite"])
    assert _go_on() == "; run the same command again, without --overwrite, to go on"
    monkeypatch.setattr(sys, "argv", ["sketchnet", "ingest", "rows.svm", "rows", "--overwrite"])
    assert _go_on() == "; run the same command again to go on"


def test_what_an_interrupted_run_has_read_goes_on_and_can_be_overwritten(tmp_path):
    """Reading that was cut off is gone on with; --overwrite forgets it, though it was to read otherwise."""
    (tmp_path / "rows.svm").write_text(ROWS)
    (tmp_path / "model").mkdir()
    with workspace(tmp_path / "model", inside=True, keep=True) as work:
        good("ingest", "rows.svm", work / "rows" / "train", cwd=tmp_path)  # as an interruption leaves it
    before = contents(work / "rows" / "train")
    message = "model/.sketchnet/rows/train is another data set, or an unfinished one"
    bad("train", "rows.svm", "--out", "model", *TINY, "--columns", "9", message=message, cwd=tmp_path)
    assert contents(work / "rows" / "train") == before
    good("train", "rows.svm", "--out", "model", *TINY, "--columns", "9", "--overwrite", cwd=tmp_path)
    assert {path.name for path in (tmp_path / "model").iterdir()} == {
        "config.json",
        "history.jsonl",
        "weights.safetensors",
    }


def test_another_command_does_not_remove_what_a_running_one_reads(tmp_path):
    (tmp_path / "rows.svm").write_text(ROWS)
    (tmp_path / "model").mkdir()
    with held_by_another(tmp_path / "model", inside=True):
        rows = workspace_of(tmp_path / "model", inside=True) / "rows"
        good("ingest", "rows.svm", rows / "train", cwd=tmp_path)
        before = contents(rows)
        done = sketchnet("train", "rows.svm", "--out", "model", "--columns", "9", cwd=tmp_path)
        assert done.returncode == 1
        assert "another process is writing model" in done.stderr
        assert contents(rows) == before


@pytest.mark.parametrize("begun", [False, True])
def test_bad_input_loses_nothing_that_an_interrupted_run_has_read(begun, tmp_path):
    def read(end):
        with reading_folder(tmp_path / "model", Processes(), False) as rows:
            rows.mkdir(exist_ok=True)
            raise end

    if begun:
        with pytest.raises(KeyboardInterrupt):
            read(KeyboardInterrupt())
    with pytest.raises(InputError):
        read(InputError("--test names no file"))
    assert (tmp_path / "model" / ".sketchnet" / "rows").exists() == begun
