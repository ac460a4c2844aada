"""Out of core: resumable after a kill at any point, with the same bytes; bad situations lose nothing."""

import json
import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from sketchnet.data import CsrBatch, open_shards
from sketchnet.errors import InputError, StorageError
from sketchnet.memory import PeakMemory
from sketchnet.projection import CountSketch, Gaussian
from sketchnet.projection.on_disk import project_to_file
from sketchnet.storage import RECORD, workspace_of
from tests.cli.command_line import good
from tests.data.test_shards import write
from tests.forked import answer_of, start
from tests.other_writer import held_by_another
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
def test_resumes_in_any_shard_with_the_same_bytes(law, tmp_path):
    operator, X = LAWS[law](K, D).sample(D, 5), batch()
    parts = [X.rows(slice(*cut)) for cut in ((0, 100), (100, 101), (101, 101), (101, 400), (400, N))]
    data, path, totals = open_shards(write(tmp_path / "x", parts)), tmp_path / "result.npy", []
    project_to_file(operator, data, path, memory=60_000, progress=lambda done, total: totals.append(total))
    path.unlink()
    for units in range(1, totals[0], max(1, totals[0] // 7)):
        with pytest.raises(Interrupted):
            project_to_file(operator, data, path, memory=60_000, progress=stop_after(units))
        assert json.loads(_work(tmp_path, RECORD).read_text())["done"] == units
    seen = []
    result = project_to_file(operator, data, path, memory=60_000, progress=lambda done, total: seen.append(done))
    assert seen == list(range(units, totals[0] + 1))  # nothing twice
    assert np.array_equal(result, operator.apply(X))


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
        assert json.loads(_work(tmp_path, RECORD).read_text())["done"] == units
    result = project_to_file(operator, batch(), path, memory=60_000)
    assert np.array_equal(result, whole)
    assert [p.name for p in tmp_path.iterdir()] == ["result.npy"]


def _work(folder: Path, name: str) -> Path:
    """A file in the workspace of `folder`/result.npy."""
    return workspace_of(folder / "result.npy") / name


def run_and_kill(command: list[str], folder: Path, progress: Path, delay: float) -> bool:
    """Start, wait until work has begun, kill after `delay`; True if it was killed."""
    process = start(*command, cwd=folder)
    while not progress.exists() and process.is_alive():
        time.sleep(0.002)
    time.sleep(delay)
    process.kill()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)  # else who waits for the result would wait for ever
    return process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.soak)])
def test_killed_and_resumed_equals_uninterrupted(kills, tmp_path, monkeypatch):
    """SIGKILL at random points of a run of the command line, each time resumed; the bytes are those of a single run."""
    monkeypatch.undo()  # records are written as often as by those that are killed
    rng = random.Random(kills)
    X = batch(n=4000, d=10**9)
    matrix = sparse.csr_array((X.values, X.indices, X.indptr), shape=(4000, 10**9))
    sparse.save_npz(tmp_path / "x.npz", matrix, compressed=False)
    base = ["project", "x.npz"]
    options = ["--scheme", "gaussian", "-k", "1000", "--memory", "120KB", "--seed", "3"]
    began = time.monotonic()
    good(*base, "whole.npy", *options, cwd=tmp_path)
    duration = time.monotonic() - began
    killed, jobs = 0, 0
    while killed < kills:
        path, jobs = tmp_path / f"resumed-{jobs}.npy", jobs + 1  # a job may end before it is killed
        assert jobs <= 10 * kills
        command = [*base, path.name, *options]
        # several kills of one job, until it ends
        while not path.exists():
            progress = workspace_of(path) / RECORD
            killed += run_and_kill(command, tmp_path, progress, rng.uniform(0, 0.5 * duration))
            if killed >= kills and not path.exists():  # it may have been killed after its end
                good(*command, cwd=tmp_path)
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


def test_a_link_to_nothing_is_not_replaced(tmp_path):
    path = tmp_path / "result.npy"
    path.symlink_to("nothing")
    with pytest.raises(InputError, match="exists already"):
        project_to_file(CountSketch(K).sample(D, 5), batch(), path)
    assert path.is_symlink()


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
    _work(tmp_path, RECORD).write_text('{"job"')
    with pytest.raises(InputError, match="job.json is damaged"):
        project_to_file(operator, batch(), path, memory=60_000)
    assert np.array_equal(
        project_to_file(operator, batch(), path, memory=60_000, overwrite=True), operator.apply(batch())
    )


def test_a_second_writer_is_refused(tmp_path):
    path = tmp_path / "result.npy"
    with held_by_another(path), pytest.raises(StorageError, match=r"another process is writing .*result\.npy"):
        project_to_file(CountSketch(K).sample(D, 5), batch(), path)
    assert project_to_file(CountSketch(K).sample(D, 5), batch(), path).shape == (N, K)


def test_a_full_disk_is_an_error_before_work_begins(tmp_path):
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    rows = free // (4 * 2**20) + 1000
    empty = CsrBatch(np.zeros(rows + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.float32), D)
    with pytest.raises(StorageError, match="no room on the disk for"):
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


def test_an_interrupted_overwrite_goes_on(tmp_path):
    path = tmp_path / "result.npy"
    operator = Gaussian(K).sample(D, 5)
    path.write_text("old")
    with pytest.raises(Interrupted):
        project_to_file(operator, batch(), path, memory=60_000, overwrite=True, progress=stop_after(5))
    seen = []
    progress = lambda done, total: seen.append(done)  # noqa: E731
    result = project_to_file(operator, batch(), path, memory=60_000, overwrite=True, progress=progress)
    assert seen[0] == 5
    assert np.array_equal(result, operator.apply(batch()))


def test_killed_after_the_last_rename(tmp_path, monkeypatch):
    path, operator = tmp_path / "result.npy", Gaussian(K).sample(D, 5)
    real = os.replace

    def replace(source, target):
        real(source, target)
        if target == path:
            raise Interrupted

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(Interrupted):
        project_to_file(operator, batch(), path, memory=60_000)
    monkeypatch.setattr(os, "replace", real)
    assert np.array_equal(project_to_file(operator, batch(), path, memory=60_000), operator.apply(batch()))
    assert [p.name for p in tmp_path.iterdir()] == ["result.npy"]


def other_shape(partial: Path) -> None:
    with open(partial, "wb") as file:
        np.save(file, np.zeros((3, 2), np.float32))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda partial: os.truncate(partial, 1000), "the unfinished .*result.npy, in .*, is damaged"),
        (lambda partial: os.truncate(partial, 0), "the unfinished .*result.npy, in .*, is damaged"),
        (other_shape, r"the unfinished .*result.npy, in .*, holds \(3, 2\) of float32, not"),
    ],
)
def test_a_damaged_partial_file_is_refused_or_overwritten(spoil, message, tmp_path):
    path, operator = tmp_path / "result.npy", Gaussian(K).sample(D, 5)
    with pytest.raises(Interrupted):
        project_to_file(operator, batch(), path, memory=60_000, progress=stop_after(5))
    spoil(_work(tmp_path, "partial.npy"))
    with pytest.raises(InputError, match=message + ".*ask to overwrite it"):
        project_to_file(operator, batch(), path, memory=60_000)
    result = project_to_file(operator, batch(), path, memory=60_000, overwrite=True)
    assert np.array_equal(result, operator.apply(batch()))
    assert [p.name for p in tmp_path.iterdir()] == ["result.npy"]


def test_a_result_that_was_removed_is_made_again(tmp_path):
    path, operator = tmp_path / "result.npy", Gaussian(K).sample(D, 5)
    with pytest.raises(Interrupted):
        project_to_file(operator, batch(), path, memory=60_000, progress=stop_after(5))
    _work(tmp_path, "partial.npy").unlink()
    assert np.array_equal(project_to_file(operator, batch(), path, memory=60_000), operator.apply(batch()))
    assert [p.name for p in tmp_path.iterdir()] == ["result.npy"]


def test_an_old_result_does_not_pass_for_an_interrupted_new_one(tmp_path):
    path, operator = tmp_path / "result.npy", Gaussian(K).sample(D, 5)
    np.save(path, np.zeros((N, K), np.float32))
    with pytest.raises(Interrupted):
        project_to_file(operator, batch(), path, memory=60_000, overwrite=True, progress=stop_after(5))
    _work(tmp_path, "partial.npy").unlink()
    with pytest.raises(InputError, match="exists already"):
        project_to_file(operator, batch(), path, memory=60_000)
    result = project_to_file(operator, batch(), path, memory=60_000, overwrite=True)
    assert np.array_equal(result, operator.apply(batch()))


def test_units_of_another_plan_are_not_counted(tmp_path, monkeypatch):
    """As after an upgrade that cuts the work differently."""
    path, operator = tmp_path / "result.npy", Gaussian(K).sample(D, 5)
    with pytest.raises(Interrupted):
        project_to_file(operator, batch(), path, memory=60_000, progress=stop_after(5))
    monkeypatch.setattr("sketchnet.projection.slicing._NARROW", 32)
    with pytest.raises(InputError, match="its plan is"):
        project_to_file(operator, batch(), path, memory=60_000)


def memory_used(law: str, d: int, memory: float) -> int:
    operator, X, out = LAWS[law](1000, d).sample(d, 5), batch(n=20_000, d=d), np.ones((20_000, 1000), np.float32)
    operator.apply(X.rows(slice(0, 300)), out=out[:300], memory=memory)  # compiles
    operator.apply(X.rows(slice(0, 5)), out=out[:5], memory=memory)
    with PeakMemory(0.0005) as used:
        operator.apply(X, out=out, memory=memory)
    return used.peak


@pytest.mark.parametrize("law", ["gaussian", "li", "li-5", "srht", "srht-sparse", "count_sketch"])
@pytest.mark.parametrize("d", [2**33, 100_000])  # columns numbered in each slice of rows; P drawn for all columns
def test_memory_stays_inside_the_budget(law, d):
    """In a fresh process, where memory that was freed before cannot hide what is taken: several slices in 30 MB.

    P for the 400,000 columns at hand would take 1.6 GB. Threads and their stacks are not counted: two megabytes.
    """
    assert answer_of(memory_used, law, d, 30e6) < 32e6
