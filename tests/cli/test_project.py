"""The command line as a person meets it: exit codes, one-line errors, results."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from sketchnet.data import CsrBatch, open_shards, write_svmlight
from sketchnet.projection import SRHT, CountSketch, Gaussian, Li
from tests.cli.command_line import sketchnet
from tests.data.test_shards import write
from tests.forked import start


@pytest.fixture
def folder(tmp_path):
    X = sparse.random_array((300, 5000), density=0.01, format="csr", rng=np.random.default_rng(0)).astype(np.float32)
    sparse.save_npz(tmp_path / "x.npz", X)
    return tmp_path, X


def test_projects_a_file(folder):
    path, X = folder
    done = sketchnet(
        "project", "x.npz", "y.npy", "--scheme", "li", "-k", "50", "--option", "s=20", "--seed", "4", cwd=path
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("y.npy: 300 x 5,000 -> 300 x 50 by li, seed 4")
    assert np.array_equal(np.load(path / "y.npy"), Li(50, s=20).sample(5000, 4).apply(X))
    assert sorted(p.name for p in path.iterdir()) == ["x.npz", "y.npy"]


def test_projects_a_data_set(folder):
    path, X = folder
    batch = CsrBatch(X.indptr, X.indices, X.data, 5000)
    write(path / "x", [batch.rows(slice(0, 100)), batch.rows(slice(100, 300))])
    command = ("project", "x", "y.npy", "--scheme", "gaussian", "-k", "50", "--memory", "1MiB")
    done = sketchnet(*command, cwd=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("y.npy: 300 x 5,000 -> 300 x 50 by gaussian, seed 0")
    assert np.array_equal(np.load(path / "y.npy"), Gaussian(50).sample(5000, 0).apply(X))
    values = path / "x" / "shard-00001" / "values.npy"
    values.write_bytes(values.read_bytes()[:-1] + b"!")
    done = sketchnet(*command, "--overwrite", cwd=path)
    assert done.returncode == 2
    assert "its checksum differs" in done.stderr


def test_projects_text_files(folder):
    path, X = folder
    write_svmlight(path / "x.svm.gz", X, np.ones(300))
    done = sketchnet("project", "x.svm.gz", "y.npy", "-k", "50", "--columns", "5000", "--base", "1", cwd=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert np.allclose(np.load(path / "y.npy"), CountSketch(50).sample(5000, 0).apply(X), atol=1e-6)
    assert sorted(p.name for p in path.iterdir()) == ["x.npz", "x.svm.gz", "y.npy"]

    (path / "words.txt").write_text("one two\nthree\n")
    done = sketchnet("project", "words.txt", "words.npy", "-k", "50", "--text", "--analyzer", "word", cwd=path)
    assert (done.returncode, done.stderr) == (0, "")
    ingested = sketchnet("ingest", "words.txt", "words", "--text", "--analyzer", "word", cwd=path)
    assert ingested.returncode == 0
    assert np.array_equal(
        np.load(path / "words.npy"), CountSketch(50).sample(2**24, 0).apply(open_shards(path / "words"))
    )


def test_a_text_file_is_not_read_again(folder):
    """After an interruption, or before an answer that needs no rows."""
    path, X = folder
    write_svmlight(path / "x.svm", X, np.ones(300))
    _stop_early(path, "x.svm")
    rows = path / ".y.npy.sketchnet" / "rows"
    before = {p.name: p.stat().st_mtime_ns for p in rows.rglob("*.npy")}
    assert before
    other = sketchnet("project", "x.svm", "y.npy", "-k", "60", cwd=path)
    assert "y.npy is what another job was making when it was interrupted" in other.stderr
    assert {p.name: p.stat().st_mtime_ns for p in rows.rglob("*.npy")} == before
    assert sketchnet("project", "x.svm", "y.npy", "-k", "50", cwd=path).returncode == 0
    assert sorted(p.name for p in path.iterdir()) == ["x.npz", "x.svm", "y.npy"]
    (path / "x.svm").write_text("no rows")
    assert "y.npy exists already" in sketchnet("project", "x.svm", "y.npy", "-k", "50", cwd=path).stderr
    assert "s=-1" in sketchnet("project", "x.svm", "z.npy", "--scheme", "li", "--option", "s=-1", cwd=path).stderr


def test_an_interruption_costs_nothing_with_overwrite(folder):
    path, X = folder
    write_svmlight(path / "x.svm", X, np.ones(300))
    (path / "y.npy").write_text("an older result")
    _stop_early(path, "x.svm", "--overwrite")
    before = {p.name: p.stat().st_mtime_ns for p in (path / ".y.npy.sketchnet" / "rows").rglob("*.npy")}
    _stop_early(path, "x.svm", "--overwrite")
    assert {p.name: p.stat().st_mtime_ns for p in (path / ".y.npy.sketchnet" / "rows").rglob("*.npy")} == before
    assert sketchnet("project", "x.svm", "y.npy", "-k", "50", "--overwrite", cwd=path).returncode == 0
    assert np.load(path / "y.npy").shape == (300, 50)
    assert sorted(p.name for p in path.iterdir()) == ["x.npz", "x.svm", "y.npy"]


@pytest.mark.parametrize("cut", ["before anything goes", "when the rows have gone"])
def test_cut_off_after_the_last_rename(cut, folder):
    """All was done but tidying up: the next run says so, and tidies up."""
    path, X = folder
    write_svmlight(path / "x.svm", X, np.ones(300))
    code = """from sketchnet import storage
        real, removed = storage.remove, []
        def remove(path):
            if path.parent.name == ".y.npy.sketchnet" and os.path.exists("y.npy"):
                real(path) if WHEN and path.name == "rows" else None
                os._exit(9)
            real(path)
        storage.remove = remove"""
    _stop_early(path, "x.svm", code=code.replace("WHEN", str(cut.startswith("when"))))
    assert (path / "y.npy").exists()
    assert (path / ".y.npy.sketchnet").exists()
    whole = (path / "y.npy").read_bytes()
    done = sketchnet("project", "x.svm", "y.npy", "-k", "50", cwd=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("y.npy: 300 x ")
    assert (path / "y.npy").read_bytes() == whole
    assert sorted(p.name for p in path.iterdir()) == ["x.npz", "x.svm", "y.npy"]
    assert "y.npy exists already" in sketchnet("project", "x.svm", "y.npy", "-k", "50", cwd=path).stderr


def test_rows_do_not_stay(folder):
    """If the result came from elsewhere."""
    path, X = folder
    write_svmlight(path / "x.svm", X, np.ones(300))
    _stop_early(path, "x.svm")
    assert sketchnet("project", "x.npz", "y.npy", "-k", "50", "--overwrite", cwd=path).returncode == 0
    assert sorted(p.name for p in path.iterdir()) == ["x.npz", "x.svm", "y.npy"]


def test_width(folder):
    path, X = folder
    args = ("project", "x.npz", "y.npy", "--scheme", "srht", "-k", "50", "--columns")
    assert sketchnet(*args, "9000", cwd=path).returncode == 0
    wider = sparse.csr_array((X.data, X.indices, X.indptr), (300, 9000))
    assert np.array_equal(np.load(path / "y.npy"), SRHT(50).sample(9000, 0).apply(wider))
    done = sketchnet(*args, "4000", "--overwrite", cwd=path)
    assert "x.npz has 5,000 columns, more than --columns 4000" in done.stderr


def test_an_unfinished_run_on_another_data_set_is_left_alone(folder):
    path, X = folder
    batch = CsrBatch(X.indptr, X.indices, X.data, 5000)
    write(path / "x", [batch])
    write(path / "other", [replace(batch, values=2 * batch.values)])
    _stop_early(path, "x")
    done = sketchnet("project", "other", "y.npy", "-k", "50", cwd=path)
    assert done.returncode == 2
    assert "y.npy is what another job was making when it was interrupted: its source is" in done.stderr
    assert sketchnet("project", "x", "y.npy", "-k", "50", cwd=path).returncode == 0
    assert np.array_equal(np.load(path / "y.npy"), CountSketch(50).sample(5000, 0).apply(X))


_BEFORE_THE_FIRST_UNIT = """from sketchnet.projection import count_sketch
        count_sketch.CountSketchOperator.run = lambda *args: os._exit(9)"""


def _stop_early(path, input, *more, code=_BEFORE_THE_FIRST_UNIT):
    """A run of `project INPUT y.npy -k 50` that `code` cuts off."""
    code = f"if True:\n        import os\n        {code}"
    process = start("project", input, "y.npy", "-k", "50", *more, cwd=path, before=partial(exec, code, {}))
    process.join(120)
    assert process.exitcode == 9


def test_json_for_machines(folder):
    path, X = folder
    done = sketchnet(
        "project", "x.npz", "y.npy", "--scheme", "srht_sparse", "-k", "50", "--dtype", "float64", "--json", cwd=path
    )
    told = json.loads(done.stdout)
    assert told["rows"] == 300
    density = told["scheme"]["density"]
    assert density == pytest.approx(np.log(300) ** 2 / 5000)
    expected = SRHT(50, form="sparse", density=density).sample(5000, 0).apply(X, dtype=np.float64)
    assert np.array_equal(np.load(path / "y.npy"), expected)


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["missing.npz", "y.npy"], 2, "there is no file missing.npz"),
        (["bad.svm", "y.npy"], 2, "bad.svm:2:3: "),
        (["x.txt", "y.npy"], 2, "the names do not tell the format of x.txt; give --format "),
        (["bare.svm", "y.npy"], 2, "bare.svm has no features: none of its 2 rows has an entry"),
        (["bare.npz", "y.npy"], 2, "bare.npz has no features: none of its 2 rows has an entry"),
        (["bare", "y.npy"], 2, "bare has no features: none of its 2 rows has an entry"),
        (["bad.svm", "y.npy", "--device", "nonsense"], 2, "device 'nonsense' is not possible"),
        (
            ["bad.svm", "y.npy", "--device", "cuda", "--dtype", "float64"],
            2,
            "device 'cuda' gives dense float32 results",
        ),
        (["shards", "y.npy", "--base", "1"], 2, "--base is for files, but shards is a folder"),
        (["x.npz", "y.npy", "--base", "1"], 2, "--base is for svmlight, but x.npz is read as npz"),
        (["shards", "y.npy"], 2, "there is no shards/dataset.json: shards is not a data set"),
        (["x.npz", "y.bin"], 2, "OUTPUT y.bin is not possible; it is a .npy file in a folder that is there"),
        (["x.npz", "y.npy", "--scheme", "fourier"], 2, "there is no scheme 'fourier'; there are gaussian, "),
        (["x.npz", "y.npy", "-k", "0"], 2, "k=0 is not possible"),
        (["x.npz", "y.npy", "--memory", "lots"], 2, "--memory lots is not a size"),
        (["x.npz", "y.npy", "--dtype", "int8"], 2, "--dtype int8 is not possible"),
        (["x.npz", "y.npy", "--option", "s"], 2, "--option s is not possible; write NAME=VALUE"),
        (["x.npz", "y.npy", "--seed", "-5"], 2, "seed=-5 is not possible"),
        (["x.npz", "nowhere/y.npy"], 2, "OUTPUT nowhere/y.npy is not possible; it is a .npy file in a folder"),
        (["bad.npz", "y.npy"], 2, "bad.npz is not a complete scipy .npz file"),
        (["x.npz"], 2, "missing argument 'OUTPUT'; its arguments are INPUT OUTPUT"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(folder, args, code, message):
    path, _ = folder
    (path / "bad.npz").write_bytes(b"PK\3\4 not much more")
    (path / "bad.svm").write_text("1 2:3\n1 x\n")
    (path / "bare.svm").write_text("1\n2\n")
    (path / "x.txt").write_text("1 2:3\n")
    (path / "shards").mkdir()
    sparse.save_npz(path / "bare.npz", sparse.csr_array((2, 0)))
    write(path / "bare", [CsrBatch(np.zeros(3, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), 0)])
    before = sorted(path.iterdir())
    done = sketchnet("project", *args, cwd=path)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sorted(path.iterdir()) == before
    assert done.stderr.count("\n") == 1


def test_two_at_once(folder):
    """One does the work, the other is told so; or the second comes late and finds the result."""
    path, X = folder
    command = [sys.executable, "-m", "sketchnet", "project", "x.npz", "y.npy", "--scheme", "gaussian", "-k", "100"]
    both = [subprocess.Popen(command, cwd=path, stdout=-3, stderr=-1, text=True) for _ in range(2)]
    errors = [process.communicate()[1] for process in both]
    codes = sorted(process.returncode for process in both)
    assert codes in ([0, 1], [0, 2])
    assert any("another process is writing" in e or "exists already" in e for e in errors)
    assert np.array_equal(np.load(path / "y.npy"), Gaussian(100).sample(5000, 0).apply(X))
    assert sorted(p.name for p in path.iterdir()) == ["x.npz", "y.npy"]


def test_help_has_an_example(tmp_path):
    done = sketchnet("project", "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "sketchnet project clicks.npz" in done.stdout
    assert sketchnet("--version", cwd=tmp_path).stdout.startswith("sketchnet 0.")


def test_what_is_wrong_with_rows_begins_with_their_file(tmp_path):
    X = sparse.csr_array((np.array([1, np.nan]), [3, 5], [0, 1, 2]), shape=(2, 9))
    sparse.save_npz(tmp_path / "nan.npz", X)
    X.data[1] = 1
    write(tmp_path / "shards", [CsrBatch(X.indptr, X.indices + 5, X.data, 9)])
    X.indices[0] = 9
    np.savez(tmp_path / "far.npz", indptr=X.indptr, indices=X.indices, data=X.data, shape=X.shape, format=b"csr")
    X.indptr[:] += 1
    np.savez(tmp_path / "odd.npz", indptr=X.indptr, indices=X.indices, data=X.data, shape=X.shape, format=b"csr")
    for name, message in (
        ("nan.npz", "Input X contains NaN or infinity: nan in row 1, column 5"),
        ("far.npz", "row 0 has column id 9; allowed are 0 to 8"),
        ("odd.npz", "the row offsets begin at 1; in a scipy matrix they begin at 0"),
        ("shards", "row 1 has column id 10; allowed are 0 to 8"),
    ):
        done = sketchnet("project", name, "y.npy", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (2, f"sketchnet: {name}: {message}\n")
