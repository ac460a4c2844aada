"""`sketchnet train` cut off at any point, and run by two at once."""

import json
import os
import random
import time

import pytest

from sketchnet.data import Synthetic, write_svmlight
from tests.cli.command_line import good, sketchnet
from tests.forked import start

OPTIONS = "--components 64 --hidden 32 --epochs 4 --batch-size 64 --set patience=null".split()


def command(folder, *options):
    return ["train", "rows.svm", "--out", str(folder), *OPTIONS, *options]


def model(folder):
    """Weights, configuration and history, times aside."""
    history = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    for record in history:
        for name in ("seconds", "seconds_to_best"):
            record.pop(name, None)
    assert not (folder / "checkpoint.safetensors").exists()
    assert not (folder / ".sketchnet").exists()
    return (folder / "weights.safetensors").read_bytes(), (folder / "config.json").read_bytes(), history


@pytest.fixture
def here(tmp_path):
    write_svmlight(tmp_path / "rows.svm", Synthetic(n=2000, d=10_000, density=2e-3).rows(slice(0, 2000)))
    return tmp_path


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.soak)])
@pytest.mark.parametrize("optimiser", ["adamw", "sgd"])
def test_killed_and_resumed_equals_uninterrupted(optimiser, kills, here):
    """SIGKILL at random points, each time resumed: the same weights and history as those of a single run."""
    rng, options = random.Random(kills), ["--set", f"optimiser={optimiser}", "--set", "rate=0.002"]
    began = time.monotonic()
    good(*command(here / "whole", *options), cwd=here)
    duration = time.monotonic() - began
    out = here / "resumed"
    for _ in range(kills):
        process = start(*command(out, *options), cwd=here)
        while not out.exists() and process.is_alive():
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.8 * duration))
        process.kill()
        process.join()
    good(*command(out, *options), cwd=here)
    assert model(out) == model(here / "whole")


def test_asked_to_stop_it_saves_and_goes_on_later(here):
    good(*command(here / "whole"), cwd=here)
    os.mkfifo(here / "said")
    (here / "errors").touch()
    process = start(*command(here / "x"), cwd=here, streams=[os.devnull, here / "said", here / "errors"])
    with open(here / "said") as said:
        assert any(line.startswith("epoch 1") for line in said)
        second = sketchnet(*command(here / "x"), cwd=here)
        process.terminate()
        process.join(60)
    if process.exitcode:  # else it had ended before
        assert process.exitcode == 1
        assert "stopped as asked; run the same command again" in (here / "errors").read_text()
        assert second.returncode == 1
        assert "another process is writing" in second.stderr
    good(*command(here / "x"), cwd=here)
    assert model(here / "x") == model(here / "whole")
