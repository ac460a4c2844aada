"""Out of core: resumable after a kill at any point, with the same bytes; bad situations lose nothing."""

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from sketchnet.data import CsrBatch
from sketchnet.errors import InputError, StorageError
from sketchnet.memory import PeakMemory
from sketchnet.projection import CountSketch, Gaussian
from sketchnet.projection.on_disk import project_to_file
from tests.projection.schemes import LAWS, every_law

N, D, K = 600, 2**33, 64


def batch(n=N, d=D, seed=0) -> CsrBatch:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(n * 20).astype(np.float32)
    return CsrBatch(np.arange(n + 1) * 20, rng.integers(0, d, n * 20), values, d)


@pytest.fixture(autouse=True)
def record_every_unit(monkeypatch):
    monkeypatch.setattr("sketchnet.projection.on_disk._RECORD_EVERY", 0)


class Interrupted(Exception):
    pass


def stop_after(units):
    def progress(done, total):
        if done == units:
            raise Interrupted

    return progress


@every_law
def test_resumes_with_the_same_bytes(law, tmp_path):
    operator = LAWS[law](K, D).sample(D, 5)
    whole = operator.apply(batch())
    path = tmp_path / "result.npy"
    # Few rows a unit even for schemes that need no memory: the plan depends on the scheme, so ask for its length.
    total = len(operator.plan(batch(), 60_000).units)
    for units in range(1, total, max(1, total // 5)):
        with pytest.raises(Interrupted):
            project_to_file(operator, batch(), path, memory=60_000, progress=stop_after(units))
        assert not path.exists()
        assert json.loads((tmp_path / "result.npy.progress").read_text())["done"] == units
    result = project_to_file(operator, batch(), path, memory=60_000)
    assert np.array_equal(result, whole)
    assert [p.name for p in tmp_path.iterdir()] == ["result.npy"]


def run_and_kill(command: list[str], progress: Path, delay: float) -> bool:
    """Start, wait until work has begun, kill after `delay`; True if it was killed."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not progress.exists() and process.poll() is None:
        time.sleep(0.002)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.soak)])
def test_killed_and_resumed_equals_uninterrupted(kills, tmp_path):
    """SIGKILL at random points of a run of the command line, each time resumed; the bytes are those of a single run."""
    rng = random.Random(kills)
    X = batch(n=4000, d=10**9)
    matrix = sparse.csr_array((X.values, X.indices, X.indptr), shape=(4000, 10**9))
    sparse.save_npz(tmp_path / "x.npz", matrix, compressed=False)
    base = [sys.executable, "-m", "sketchnet", "project", str(tmp_path / "x.npz")]
    options = ["--scheme", "gaussian", "-k", "1000", "--memory", "120KB", "--seed", "3"]
    start = time.monotonic()
    subprocess.run([*base, str(tmp_path / "whole.npy"), *options], check=True, capture_output=True)
    duration = time.monotonic() - start
    killed = 0
    while killed < kills:
        path = tmp_path / f"resumed-{killed}.npy"
        command = [*base, str(path), *options]
        # several kills of one job, until it ends
        while not path.exists():
            progress = path.with_name(path.name + ".progress")
            killed += run_and_kill(command, progress, rng.uniform(0, 0.5 * duration))
            if killed >= kills:
                subprocess.run(command, check=True, capture_output=True)
        assert path.read_bytes() == (tmp_path / "whole.npy").read_bytes()
    assert killed >= kills


def test_an_existing_result_is_not_replaced(tmp_path):
    path = tmp_path / "result.npy"
    path.write_text("precious")
    operator = CountSketch(K).sample(D, 5)
    with pytest.raises(InputError, match="exists already"):
        project_to_file(operator, batch(), path)
    assert path.read_text() == "precious"
    project_to_file(operator, batch(), path, overwrite=True)
    assert np.load(path).shape == (N, K)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"operator": Gaussian(K).sample(D, 6)}, "its projection is .*this one's is"),
        ({"memory": 70_000}, "its memory is 60000, this one's is 70000"),
        ({"dtype": np.float64}, "its dtype is float32, this one's is float64"),
        ({"source": "other data"}, "its source is None, this one's is other data"),
    ],
)
def test_an_unfinished_run_of_another_job_is_kept(change, message, tmp_path):
    path = tmp_path / "result.npy"
    job = {"operator": Gaussian(K).sample(D, 5), "X": batch(), "path": path, "memory": 60_000}
    with pytest.raises(Interrupted):
        project_to_file(**job, progress=stop_after(3))
    with pytest.raises(InputError, match=message):
        project_to_file(**{**job, **change})
    assert np.array_equal(project_to_file(**job), job["operator"].apply(batch()))


def test_a_damaged_record_is_an_error(tmp_path):
    path = tmp_path / "result.npy"
    operator = Gaussian(K).sample(D, 5)
    with pytest.raises(Interrupted):
        project_to_file(operator, batch(), path, memory=60_000, progress=stop_after(3))
    (tmp_path / "result.npy.progress").write_text('{"job"')
    with pytest.raises(InputError, match="progress is damaged"):
        project_to_file(operator, batch(), path, memory=60_000)
    assert np.array_equal(
        project_to_file(operator, batch(), path, memory=60_000, overwrite=True), operator.apply(batch())
    )


def test_a_second_writer_is_refused(tmp_path):
    path = tmp_path / "result.npy"
    with open(tmp_path / "result.npy.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StorageError, match=r"another process is writing .*result\.npy"):
            project_to_file(CountSketch(K).sample(D, 5), batch(), path)
    assert project_to_file(CountSketch(K).sample(D, 5), batch(), path).shape == (N, K)


def test_a_full_disk_is_an_error_before_work_begins(tmp_path):
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    rows = free // (4 * 2**20) + 1000
    empty = CsrBatch(np.zeros(rows + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.float32), D)
    with pytest.raises(StorageError, match="no room for"):
        project_to_file(CountSketch(2**20).sample(D, 5), empty, tmp_path / "result.npy")
    assert list(tmp_path.iterdir()) == []


def test_bad_data_is_an_error_before_anything_is_written(tmp_path):
    X = batch()
    X.values[77] = np.nan
    with pytest.raises(InputError, match="row 3"):
        project_to_file(CountSketch(K).sample(D, 5), X, tmp_path / "result.npy")
    assert list(tmp_path.iterdir()) == []


def test_no_rows(tmp_path):
    X = CsrBatch(np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0, np.float32), D)
    assert project_to_file(CountSketch(K).sample(D, 5), X, tmp_path / "result.npy").shape == (0, K)


@pytest.mark.parametrize("law", ["gaussian", "li"])
def test_memory_stays_inside_the_budget(law, tmp_path):
    """A projection whose P for the columns at hand would take 800 MB, within 50 MB, the mapped output not counted."""
    operator = LAWS[law](1000, D).sample(D, 5)
    X = batch(n=10_000)
    operator.apply(X.rows(slice(0, 10)))  # compiles
    with PeakMemory() as used:
        project_to_file(operator, X, tmp_path / "result.npy", memory="50MB")
    assert used.peak < 50e6
