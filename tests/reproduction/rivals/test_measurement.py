"""Rivals in processes of their own: what is reported, and whose memory it is."""

import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse

from reproduction.rivals.measurement import measure, outcome, peak_memory, read_rows, write_rows
from reproduction.rivals.rival import Rival
from sketchnet.errors import InputError, StorageError, TrainingError
from tests.reproduction.rivals.separable import separable


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    write_rows(folder, separable(300, 2, seed=0), separable(200, 2, seed=1))
    return folder


def test_rows_come_back(folder):
    X, y = read_rows(folder, "test")
    Z, z = separable(200, 2, seed=1)
    assert (X != Z).nnz == 0
    assert np.array_equal(y, z)


def test_rows_without_room_on_the_disk(tmp_path):
    """NumPy would say how many numbers it was to write, and how many it did."""
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    part = sparse.csr_array((20_000, 9), dtype=np.float32), np.zeros(20_000)  # offsets of 80 kB, labels of 160 kB
    try:
        with pytest.raises(StorageError, match=f"no room for {tmp_path}: the system allows no larger file"):
            write_rows(tmp_path, part, part)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def test_everything_is_reported(folder):
    found = measure("liblinear", folder, budget=30)
    assert found["error"] < 4
    assert found["valid_error"] < 10
    assert found["trials"] >= 2
    assert 0 < found["fit_seconds"] < 30
    assert 0 < found["predict_seconds"] < 30
    assert 0 < found["search_seconds"] < 30
    assert 40 < found["peak_mib"] < 1000
    assert found["settings"].startswith("strength=")


class Hungry(Rival):
    """Needs 400 MiB to search and `mib` to learn."""

    name = "hungry"
    defaults: ClassVar = {"mib": 1}

    def grid(self, X, y):
        return [{"mib": 400}, {"mib": self.mib}]

    def _learn(self, X, y, settings, valid, deadline):
        self.guess = 0 if settings["mib"] == self.mib else 1
        np.ones(settings["mib"] << 17)

    def _decide(self, X):
        return np.full(X.shape[0], self.guess)


def test_peak_memory_has_what_was_allocated_by_the_fit_but_not_by_the_search(tmp_path):
    X, y = separable(300, 2, seed=0)
    y[:] = 0
    y[-2:] = 1
    write_rows(tmp_path, (X, y), (X, y))
    code = """
        import sys
        from reproduction.rivals.measurement import outcome, peak_memory
        from tests.reproduction.rivals.test_measurement import Hungry

        rival = Hungry()
        rival.mib = int(sys.argv[2])
        before = peak_memory()
        print(outcome(rival, sys.argv[1], 30)["peak_mib"] - before)
    """
    for mib in (10, 250):
        command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path), str(mib)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert mib - 10 < float(done.stdout) < mib + 60


def test_memory_of_the_process_that_asks_is_not_counted():
    filled = np.ones(600 << 17)
    code = "from reproduction.rivals.measurement import peak_memory; print(peak_memory())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 500 < peak_memory()
    del filled


def test_without_a_budget_nothing_is_searched(folder):
    class Plain(Hungry):
        mib = 5

    found = outcome(Plain(), folder, 0)
    assert found["trials"] == 0
    assert "valid_error" not in found
    assert found["settings"] == "mib=400"


def test_failures_are_told(tmp_path, folder):
    X, y = separable(60, 2, seed=0)
    X.data[0] = np.nan
    write_rows(tmp_path, (X, y), (X, y))
    with pytest.raises(InputError, match="NaN or infinity"):
        measure("pegasos", tmp_path, budget=1)
    with pytest.raises(InputError, match="there is no rival 'svm'"):
        measure("svm", folder)
    with pytest.raises(TrainingError, match="measuring pegasos failed with exit status 1: FileNotFoundError"):
        measure("pegasos", tmp_path / "nowhere", budget=1)


def test_failures_of_the_search_are_told(folder):
    class Broken(Hungry):
        mib = 5

        def _learn(self, X, y, settings, valid, deadline):
            raise ZeroDivisionError("nothing goes")

    with pytest.raises(TrainingError, match="settings of hungry failed, ZeroDivisionError: nothing goes"):
        outcome(Broken(), folder, 1)


def test_a_rival_that_hangs_is_stopped_with_its_children(folder, tmp_path, monkeypatch):
    """In the search, which is a child of the measuring process. The package that it finds never gives rows back."""
    pid = tmp_path / "pid"
    hangs = f"""
        import os, time

        def Dataset(*rows, **settings):
            open({str(pid)!r}, "w").write(str(os.getpid()))
            time.sleep(600)
    """
    (tmp_path / "lightgbm.py").write_text(textwrap.dedent(hangs))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for limit in (8, 60):  # on a busy machine it takes longer to get there
        begun = time.perf_counter()
        with pytest.raises(TrainingError, match=f"lightgbm did not end within {limit} seconds and was stopped"):
            measure("lightgbm", folder, budget=1, limit=limit)
        assert time.perf_counter() - begun < limit + 60
        if pid.exists():
            break
    child = int(pid.read_text())
    _wait(lambda: not _runs(child), 5)  # whoever adopts it takes a moment to note its end
    assert not _runs(child)


def test_a_rival_ends_with_the_process_that_measures_it(folder, tmp_path):
    """However that one ends: it may get no chance to say so."""
    pid = tmp_path / "pid"
    hangs = f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    (tmp_path / "lightgbm.py").write_text(hangs)
    measures = f"from reproduction.rivals.measurement import measure; measure('lightgbm', {str(folder)!r}, budget=0)"
    paths = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    with subprocess.Popen([sys.executable, "-c", measures], env=os.environ | {"PYTHONPATH": paths}) as process:
        _wait(lambda: pid.exists() and pid.read_text(), 120)
        process.kill()
    rival = int(pid.read_text())
    _wait(lambda: not _runs(rival), 30)
    assert not _runs(rival)


def _wait(until, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not until() and time.monotonic() < deadline:
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_limits_that_are_no_times_are_errors(folder):
    with pytest.raises(InputError, match="limit=-1 is not possible; it must be a number from 0"):
        measure("liblinear", folder, limit=-1)
    with pytest.raises(InputError, match="budget=inf is not possible"):
        measure("liblinear", folder, budget=float("inf"))
    assert measure("pegasos", folder, budget=0, limit=1e9)["trials"] == 0
