"""`sketchnet train` cut off at any point, and run by two at once."""

import json
import random
import signal
import subprocess
import sys
import time

import pytest

from sketchnet.data import Synthetic, write_svmlight

OPTIONS = "--components 64 --hidden 32 --epochs 4 --batch-size 64 --set patience=null".split()


def command(folder, *options):
    return [sys.executable, "-m", "sketchnet", "train", "rows.svm", "--out", str(folder), *OPTIONS, *options]


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
    start = time.monotonic()
    subprocess.run(command(here / "whole", *options), check=True, capture_output=True, cwd=here)
    duration = time.monotonic() - start
    out = here / "resumed"
    for _ in range(kills):
        process = subprocess.Popen(
            command(out, *options), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=here
        )
        while not out.exists() and process.poll() is None:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.4 * duration))
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(command(out, *options), check=True, capture_output=True, cwd=here)
    assert model(out) == model(here / "whole")


def test_asked_to_stop_it_saves_and_goes_on_later(here):
    subprocess.run(command(here / "whole"), check=True, capture_output=True, cwd=here)
    process = subprocess.Popen(command(here / "x"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=here)
    for line in process.stdout:
        if line.startswith("epoch 1"):
            break
    second = subprocess.run(command(here / "x"), capture_output=True, text=True, cwd=here)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    if process.returncode:  # else it had ended before
        assert process.returncode == 1
        assert "stopped as asked; run the same command again" in errors
        assert second.returncode == 1
        assert "another process is writing" in second.stderr
    subprocess.run(command(here / "x"), check=True, capture_output=True, cwd=here)
    assert model(here / "x") == model(here / "whole")
