"""Standard streams that are closed or full: one line, no traceback."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sketchnet.cli import main
from tests.cli.planted import TINY
from tests.forked import start

FULL = Path("/dev/full")
_MODEL = ["config.json", "history.jsonl", "weights.safetensors"]


def run(shell, cwd):
    """The end of a shell's line, which stands for what closes or redirects the streams of `sketchnet`."""
    command = ["sh", "-c", f'"$0" -m sketchnet {shell}', sys.executable]
    # Unbuffered, Python forgets what it could not write, and so whose error it was.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=environment)


def test_closed_output(tmp_path):
    done = run("data list >&-", tmp_path)
    said = "sketchnet: standard output is closed; to see nothing, send it to /dev/null\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_closed_errors(tmp_path):
    done = run("synth out -n 20 -d 20 --density 0.1 2>&-", tmp_path)
    assert done.returncode == 0
    assert "out/train: 16 x 20" in done.stdout
    assert run("synth 2>&-", tmp_path).returncode == 2


def test_closed_input(world):
    done = run("predict rows - <&-", world)
    assert (done.returncode, done.stderr) == (2, "sketchnet: standard input is closed; give a file\n")


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("verb", ["data list", "data list --json", "--help", "--version"])
def test_output_that_is_full(verb, tmp_path):
    done = run(f"{verb} > /dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (1, "sketchnet: standard output: No space left on device\n")


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("verb", ["predict", "evaluate"])
def test_answers_where_the_output_is_full(verb, world, tmp_path):
    (tmp_path / "errors").touch()
    process = start(verb, "rows", "rows.svm", cwd=world, streams=[os.devnull, FULL, tmp_path / "errors"])
    process.join(60)
    assert process.exitcode == 1
    assert (tmp_path / "errors").read_text() == "sketchnet: standard output: No space left on device\n"


def test_a_reader_that_leaves_at_once(tmp_path):
    done = run("data list --json | true", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("command", "left"),
    [
        (["train", "rows.svm", "--out", "out", *TINY], _MODEL),
        (["train", "rows.svm", "--out", "out", "--json", *TINY], _MODEL),
        (["ingest", "rows.svm", "out"], ["dataset.json", "shard-00000"]),
        (["synth", "out", "-n", "20", "-d", "20", "--density", "0.1"], ["test", "train"]),
        (["project", "rows.svm", "out.npy", "-k", "4"], []),
        (["predict", "rows", "rows.svm", "--output", "out.tsv"], []),
        (["report", "rows", "--out", "out.html"], []),
    ],
    ids=lambda value: value[0] if value else "",
)
def test_a_reader_that_leaves_does_not_stop_what_is_written(command, left, here, monkeypatch):
    """As `| head -1` does: the work is done to its end, and nothing unfinished stays."""
    before = set(os.listdir(here))
    read, write = os.pipe()
    os.close(read)
    monkeypatch.setattr(sys, "argv", ["sketchnet", *command])
    errors = io.StringIO()
    with (
        open(write, "w") as nobody,
        contextlib.chdir(here),
        contextlib.redirect_stdout(nobody),
        contextlib.redirect_stderr(errors),
        pytest.raises(SystemExit) as end,
    ):
        main()
    assert (end.value.code or 0, errors.getvalue()) == (0, "")
    (made,) = set(os.listdir(here)) - before
    assert made.startswith("out")
    assert left == (sorted(os.listdir(here / made)) if (here / made).is_dir() else [])
