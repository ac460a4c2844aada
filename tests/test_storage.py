"""Files are whole or absent, whatever happens while they are written."""

import errno
import os

import pytest

from sketchnet.errors import InputError, StorageError
from sketchnet.storage import replacing, write_json
from sketchnet.training import checkpoint


def left(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("alone", [True, False])
def test_a_file_is_replaced_when_all_is_written(alone, tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path, alone) as new:
        new.write_text("new")
        assert path.read_text() == "old"
    assert left(tmp_path) == {"file": "new"}


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), StorageError, "no room on the disk for .*file;"),
        (OSError(errno.EIO, "Input/output error"), StorageError, "cannot write .*file: Input/output error"),
        (InputError("the row is bad"), InputError, "the row is bad"),
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
    ],
)
def test_a_failure_leaves_the_old_file_and_nothing_else(error, raised, message, alone, tmp_path):
    (tmp_path / "file").write_text("old")

    def write():
        with replacing(tmp_path / "file", alone) as new:
            new.write_text("half")
            raise error

    with pytest.raises(raised, match=message):
        write()
    assert left(tmp_path) == {"file": "old"}


def test_processes_that_are_not_kept_apart_write_in_different_places(tmp_path):
    with replacing(tmp_path / "file") as one, replacing(tmp_path / "file", alone=False) as other:
        assert str(os.getpid()) in other.name
        assert one.name == "file.new"
        one.touch()
        other.touch()


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
