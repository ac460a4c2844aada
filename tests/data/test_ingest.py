"""Ingest: same shards whatever happens on the way; other people's files are left alone."""

import json
import os
import random
import shutil
import time
from itertools import islice

import pytest

from sketchnet.data import Synthetic, ingest, open_shards, shards, write_svmlight
from sketchnet.data.sources import SyntheticSource
from sketchnet.errors import InputError, StorageError
from sketchnet.storage import workspace
from tests.cli.command_line import good
from tests.data.test_shards import same
from tests.forked import start
from tests.other_writer import held_by_another

DATA = Synthetic(n=2000, d=500, density=0.02, seed=3)


def source(rows_per_chunk=50):
    return SyntheticSource(DATA, "train", rows_per_chunk)


class Broken(SyntheticSource):
    """Input that is bad after so many chunks."""

    def __init__(self, chunks):
        super().__init__(DATA, "train", 50)
        self._chunks = chunks

    def chunks(self, state):
        yield from islice(super().chunks(state), self._chunks)
        raise InputError("bad from here on")


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


class Interrupted(Exception):
    pass


def test_resumed_at_every_shard_gives_the_same_files(tmp_path):
    ingest(source(), tmp_path / "whole", shard_entries=1500)
    same(open_shards(tmp_path / "whole")[:], DATA.rows(slice(0, 1600)))
    assert len(list((tmp_path / "whole").glob("shard-*"))) > 8
    for stop in range(1, 1600, 173):

        def progress(fraction, rows, stop=stop):
            assert fraction == rows / 1600
            if rows > stop:
                raise Interrupted

        out = tmp_path / str(stop)
        with pytest.raises(Interrupted):
            ingest(source(), out, shard_entries=1500, progress=progress)
        with pytest.raises(InputError, match="its ingest is unfinished"):
            open_shards(out)
        ingest(source(), out, shard_entries=1500)
        assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.soak)])
@pytest.mark.parametrize("verb", ["synth", "ingest"])
def test_killed_and_resumed_equals_uninterrupted(verb, kills, tmp_path):
    """SIGKILL at random points of a run of the command line, each time resumed; the files are those of a single run."""
    rng = random.Random(kills)
    if verb == "synth":
        options, last = ["-n", "400000", "-d", "100000", "--density", "3e-4"], "test/dataset.json"
        command = ["synth"]
    else:
        write_svmlight(tmp_path / "x.svm.gz", Synthetic(n=20_000, d=10**6, density=5e-5).rows(slice(0, 20_000)))
        options, last = ["--memory", "22MB"], "dataset.json"
        command = ["ingest", "x.svm.gz"]
    began = time.monotonic()
    good(*command, "whole", *options, cwd=tmp_path)
    duration = time.monotonic() - began
    assert len(list((tmp_path / "whole").rglob("shard-*"))) >= 3
    out = tmp_path / "resumed"
    for _ in range(kills):
        process = start(*command, "resumed", *options, cwd=tmp_path)
        while not out.exists() and process.is_alive():
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.7 * duration))
        process.kill()
        process.join()
        if (out / last).exists():  # it had ended: compare, and start anew
            good(*command, "resumed", *options, cwd=tmp_path)
            assert contents(out) == contents(tmp_path / "whole")
            shutil.rmtree(out)
    good(*command, "resumed", *options, cwd=tmp_path)
    assert contents(out) == contents(tmp_path / "whole")


def test_what_is_there_is_not_replaced(tmp_path):
    ingest(source(), tmp_path / "x")
    before = (tmp_path / "x" / "dataset.json").stat().st_mtime_ns
    ingest(source(), tmp_path / "x")  # the same job: there is nothing to do
    assert (tmp_path / "x" / "dataset.json").stat().st_mtime_ns == before
    with pytest.raises(InputError, match="is another data set"):
        ingest(source(), tmp_path / "x", n_columns=600)
    assert ingest(source(), tmp_path / "x", n_columns=600, overwrite=True)["columns"] == 600
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="has files that no ingest wrote"):
            ingest(source(), tmp_path / "mine", overwrite=overwrite)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "precious"


def test_another_jobs_unfinished_run_is_kept(tmp_path):
    def progress(fraction, rows):
        if rows > 500:
            raise Interrupted

    with pytest.raises(Interrupted):
        ingest(source(), tmp_path / "x", shard_entries=1500, progress=progress)
    before = contents(tmp_path / "x")
    other = SyntheticSource(Synthetic(n=2000, d=500, density=0.02, seed=4), "train", 50)
    with pytest.raises(InputError, match="is another data set, or an unfinished one: its synthetic is"):
        ingest(other, tmp_path / "x", shard_entries=1500)
    with pytest.raises(InputError, match=r"in pieces of another size \(shard_entries=1500\); .* give overwrite=True"):
        ingest(source(), tmp_path / "x", shard_entries=1501)
    assert contents(tmp_path / "x") == before


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    real, written = shards._write_array, []

    def full(path, array):
        written.append(path)
        if len(written) > 13:
            raise OSError(28, os.strerror(28))
        return real(path, array)

    monkeypatch.setattr(shards, "_write_array", full)
    with pytest.raises(StorageError, match=r"no room on the disk for .*shard-0000\d; what was finished before is kept"):
        ingest(source(), tmp_path / "x", shard_entries=1500)
    assert len(list((tmp_path / "x").glob("shard-*"))) == 3
    assert not list((tmp_path / "x").glob(".shard*"))
    monkeypatch.setattr(shards, "_write_array", real)
    ingest(source(), tmp_path / "x", shard_entries=1500)
    same(open_shards(tmp_path / "x")[:], DATA.rows(slice(0, 1600)))


def test_a_second_writer_is_refused(tmp_path):
    with held_by_another(tmp_path / "x"), pytest.raises(StorageError, match="another process is writing"):
        ingest(source(), tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_ids_beyond_the_width_are_an_error(tmp_path):
    with pytest.raises(InputError, match=r"row \d+ has column id 4\d\d; allowed are 0 to 399"):
        ingest(source(), tmp_path / "x", n_columns=400)
    assert ingest(source(), tmp_path / "y", n_columns=10**12)["columns"] == 10**12


def test_the_description_says_what_is_there(tmp_path):
    told = ingest(source(), tmp_path / "x")
    assert told == json.loads((tmp_path / "x" / "dataset.json").read_text())
    assert (told["rows"], told["columns"], told["classes"]) == (1600, 500, ["0", "1"])


def test_what_is_overwritten_stays_until_the_new_is_whole(tmp_path):
    """Bad input in the first chunk or in a later one keeps the old data set, and leaves nothing beside it."""
    ingest(source(), tmp_path / "x")
    before = contents(tmp_path)
    for chunks in (0, 20):
        with pytest.raises(InputError, match="bad from here on"):
            ingest(Broken(chunks), tmp_path / "x", shard_entries=500, overwrite=True)
        assert contents(tmp_path) == before


@pytest.mark.parametrize("cut", ["before the first rename", "between the renames", "after the second"])
def test_an_overwrite_that_was_cut_off_at_its_end(cut, tmp_path):
    ingest(source(), tmp_path / "x")
    with workspace(tmp_path / "x", keep=True) as work:
        ingest(source(), work / "replacing", n_columns=600)
        if cut != "before the first rename":
            (tmp_path / "x").rename(work / "replaced")
        if cut == "after the second":
            (work / "replacing").rename(tmp_path / "x")
    assert ingest(source(), tmp_path / "x", n_columns=600, overwrite=True)["columns"] == 600
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_what_was_replaced_does_not_come_back(tmp_path):
    """A torso of the old data set is removed by the next run, and never taken for the data set."""
    ingest(source(), tmp_path / "x")
    with workspace(tmp_path / "x", keep=True) as work:
        shutil.copytree(tmp_path / "x", work / "replaced")
        (work / "replaced" / "dataset.json").unlink()
    (tmp_path / "x").rename(tmp_path / "kept")
    assert ingest(source(), tmp_path / "x", n_columns=600)["columns"] == 600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "x"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "x").symlink_to(tmp_path / "disk" / "data", target_is_directory=True)
    (tmp_path / "disk" / "data").mkdir()
    for n_columns in (500, 600, 700):
        assert ingest(source(), tmp_path / "x", n_columns=n_columns, overwrite=True)["columns"] == n_columns
        assert open_shards(tmp_path / "disk" / "data").n_columns == n_columns
    assert (tmp_path / "x").is_symlink()
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["data"]


def test_what_is_mounted_is_replaced_in_place(tmp_path, monkeypatch):
    ingest(source(), tmp_path / "x")
    monkeypatch.setattr(os.path, "ismount", lambda path: True)
    place = (tmp_path / "x").stat().st_ino
    assert ingest(source(), tmp_path / "x", n_columns=600, overwrite=True)["columns"] == 600
    assert (tmp_path / "x").stat().st_ino == place


def test_input_of_which_nothing_could_be_read_leaves_nothing(tmp_path):
    with pytest.raises(InputError, match="bad from here on"):
        ingest(Broken(0), tmp_path / "x")
    assert not list(tmp_path.iterdir())
    (tmp_path / "x").mkdir()  # which is the user's own
    with pytest.raises(InputError, match="bad from here on"):
        ingest(Broken(0), tmp_path / "x")
    assert [path.name for path in tmp_path.rglob("*")] == ["x"]
    assert ingest(source(), tmp_path / "x")["rows"] > 0


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "letter").write_text("mine")
    (tmp_path / "x").symlink_to("letter")
    for name in ("letter", "x"):
        with pytest.raises(InputError, match=f"{name} is no folder; choose another name"):
            ingest(source(), tmp_path / name)
    assert (tmp_path / "letter").read_text() == "mine"


def test_what_is_foreign_in_the_folder_is_told_before_anything_is_written(tmp_path):
    (tmp_path / "x" / ".shard-00000.sketchnet").mkdir(parents=True)
    (tmp_path / "x" / ".shard-00000.sketchnet" / "letter").write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(InputError, match="it is not sketchnet's; move it away"):
        ingest(source(), tmp_path / "x")
    assert contents(tmp_path) == before
