"""Files are whole or absent, whatever happens while they are written."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sketchnet.data import BagOfWords, CsrBatch, Synthetic, ingest, write_svmlight
from sketchnet.data.shards import write_shard
from sketchnet.data.sources import SyntheticSource
from sketchnet.errors import InputError, StorageError
from sketchnet.projection import CountSketch
from sketchnet.projection.on_disk import project_to_file
from sketchnet.storage import check_regular, read_json, replacing, workspace, workspace_of, write_json
from sketchnet.training import checkpoint

ROWS = CsrBatch(np.array([0, 1, 2]), np.array([0, 3]), np.ones(2, np.float32), 4)


def left(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_file_is_replaced_when_all_is_written(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as new:
        new.write_text("new")
        assert path.read_text() == "old"
    assert left(tmp_path) == {"file": "new"}


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), StorageError, "no room on the disk for .*file;"),
        (OSError(errno.EIO, "Input/output error"), StorageError, "cannot write .*file: Input/output error"),
        (InputError("the row is bad"), InputError, "the row is bad"),
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
    ],
)
def test_a_failure_leaves_the_old_file_and_nothing_else(error, raised, message, tmp_path):
    (tmp_path / "file").write_text("old")

    def write():
        with replacing(tmp_path / "file") as new:
            new.write_text("half")
            raise error

    with pytest.raises(raised, match=message):
        write()
    assert left(tmp_path) == {"file": "old"}


@pytest.mark.parametrize(
    "write",
    [
        lambda folder: write_json(folder / "history.jsonl", {"epoch": 1}),
        lambda folder: checkpoint.write_history(folder, [{"epoch": 1}]),
        lambda folder: checkpoint.write_tensors(folder / "history.jsonl", {}),
    ],
)
def test_files_of_models_reach_the_disk_or_leave_nothing(write, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "history.jsonl").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="no room on the disk for .*history"):
        write(tmp_path)
    assert left(tmp_path) == {"history.jsonl": "old"}


FOREIGN = {
    "a file": lambda place, precious: place.write_text("precious"),
    "an empty file": lambda place, precious: place.touch(),
    "a link to a folder": lambda place, precious: place.symlink_to(precious),
    "a link to nothing": lambda place, precious: place.symlink_to("nowhere"),
    "a folder": lambda place, precious: (place.mkdir(), (place / "new").write_text("precious")),
    "a folder with an owner": lambda place, precious: (place.mkdir(), (place / "owner").write_text("me")),
    "a folder with a link": lambda place, precious: (place.mkdir(), (place / "owner").symlink_to(precious / "file")),
    "a folder with a pipe": lambda place, precious: (place.mkdir(), os.mkfifo(place / "owner")),
}


def listing(folder):
    """What is there, without following links."""
    paths = sorted(folder.rglob("*"))
    return [(path, path.lstat().st_mode, path.read_bytes() if path.is_file() else b"") for path in paths]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("lay", FOREIGN.values(), ids=FOREIGN)
def test_what_is_not_ours_is_refused_by_name_and_stays(lay, inside, tmp_path):
    out, precious = tmp_path / "out", tmp_path / "precious"
    for folder in (out, precious):
        folder.mkdir()
        (folder / "file").write_text("precious")
    lay(workspace_of(out, inside), precious)
    before = listing(tmp_path)
    with (
        pytest.raises(InputError, match=rf"{workspace_of(out, inside).name} is .* not sketchnet's"),
        workspace(out, inside),
    ):
        pass
    assert listing(tmp_path) == before


def _hold(folder):
    with checkpoint.held(folder):
        pass


WRITERS = {
    "files": lambda folder: write_json(folder / "out", {}),
    "packed files": lambda folder: write_svmlight(folder / "out", ROWS),
    "shards": lambda folder: write_shard(folder, 0, ROWS, {}),
    "data sets": lambda folder: ingest(SyntheticSource(Synthetic(n=10, d=9, density=0.5), "train"), folder / "out"),
    "projections": lambda folder: project_to_file(CountSketch(3).sample(4, 0), ROWS, folder / "out"),
    "words": lambda folder: BagOfWords().fit(["a word or two"]).save(folder / "out"),
    "models": lambda folder: _hold(folder / "out"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_writer_leaves_alone_what_is_not_ours(name, tmp_path):
    """Files of the names that earlier versions wrote over, too."""
    out, write = tmp_path / ("shard-00000" if name == "shards" else "out"), WRITERS[name]
    if name == "models":
        out.mkdir()
        (out / ".sketchnet").write_text("precious")
    else:
        workspace_of(out).write_text("precious")
    for end in ("lock", "new", "partial", "progress", "rows", "replaced", "replacing", "part"):
        for hidden in ("", "."):
            (tmp_path / f"{hidden}{out.name}.{end}").write_text("precious")
    before = listing(tmp_path)
    with pytest.raises(InputError, match="not sketchnet's"):
        write(tmp_path)
    assert listing(tmp_path) == before
    (out / ".sketchnet" if name == "models" else workspace_of(out)).unlink()
    write(tmp_path)
    assert set(before) - set(listing(tmp_path)) <= {entry for entry in before if "sketchnet" in entry[0].name}
    assert not list(tmp_path.rglob("*sketchnet"))


def test_one_writer_at_a_time_and_nothing_is_left(tmp_path):
    """Many at once: each writes a whole file or is refused."""

    def write(number):
        try:
            write_json(tmp_path / "file", {"number": number, "more": "x" * 10_000})
        except StorageError as error:
            return str(error)
        return "written"

    with ThreadPoolExecutor(8) as threads:
        answers = set(threads.map(write, range(500)))
    assert "written" in answers
    assert answers <= {"written", f"another process is writing {tmp_path / 'file'}"}
    assert len(read_json(tmp_path / "file")["more"]) == 10_000
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("sign", [b"", b"sketchnet"])
def test_what_a_killed_writer_left_is_taken_over(sign, tmp_path):
    place = workspace_of(tmp_path / "file")
    place.mkdir()
    (place / "owner").write_bytes(sign)
    write_json(tmp_path / "file", {})
    assert left(tmp_path) == {"file": "{}"}


def test_an_unfinished_workspace_stays_until_it_is_finished(tmp_path):
    def begin():
        with workspace(tmp_path / "file") as work:
            (work / "rows").mkdir()
            with workspace(tmp_path / "file") as again:  # by the same thread
                assert again == work
            assert (work / "rows").exists()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin()
    with workspace(tmp_path / "file", keep=True) as work:
        assert (work / "rows").exists()
    assert (work / "rows").exists()
    with workspace(tmp_path / "file"):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("open_it", [check_regular, read_json])
def test_what_never_ends_is_not_read(open_it, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for name in ("pipe", "link", "."):
        with pytest.raises(InputError, match="is no regular file"):
            open_it(tmp_path / name)


def test_names_as_long_as_a_file_system_allows(tmp_path):
    path = tmp_path / ("n" * 250)
    with replacing(path) as new:
        new.write_text("new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == [path.name]


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("sketchnet.storage.fcntl.flock", refuse)
    with pytest.raises(StorageError, match="cannot lock .*No locks available"), replacing(tmp_path / "a"):
        pass
