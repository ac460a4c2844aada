"""Ten seconds of the battery, and the judge itself: it must catch what is wrong."""

import os
import subprocess
import sys
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from tests.attack.command import Bounds, Child, Outcome, run
from tests.attack.judge import changes, control_characters, judge, listing
from tests.attack.killed import kill_at
from tests.attack.plain import csr, project_plainly
from tests.attack.world import COLUMNS

GOOD = Outcome(("predict",), 0, b"1\n", b"")
BAD = Outcome(("predict",), 2, b"", b"sketchnet: a.svm:1:1: no label\n")


def kinds(outcome, codes=(0, 2), blames="a.svm"):
    return {wrong.kind for wrong in judge(outcome, codes, Bounds(), blames)}


def test_ten_seconds():
    """A round of all attacks takes longer; what one round misses, the next seeds have."""
    command = [sys.executable, "-m", "tests.attack", "--seconds", "10", "--seed", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""


def test_what_is_right_is_not_wrong():
    assert kinds(GOOD) == kinds(BAD) == set()
    assert kinds(Outcome((), 0, b"a\tb\n\xc3\xa4\n", b"a.svm: 3 lines left out\nsketchnet: and more\n")) == set()


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Outcome((), 1, b"", b"sketchnet: a.svm\n"), "code"),
        (Outcome((), -11, b"", b""), "crash"),
        (Outcome((), 2, b"", b"sketchnet: a.svm\nand more\n"), "lines"),
        (Outcome((), 2, b"", b"sketchnet: a.svm\nsketchnet: more\n"), "lines"),
        (Outcome((), 2, b"", b"a.svm\n"), "lines"),
        (Outcome((), 2, b"", b"sketchnet: a.svm"), "lines"),
        (Outcome((), 0, b"", b"x.py:1: RuntimeWarning: overflow\n"), "lines"),
        (Outcome((), 1, b"", b'Traceback (most recent call last):\n  File "x"\nKeyError: 1\n'), "traceback"),
        (Outcome((), 2, b"", b"sketchnet: row 3 is wrong\n"), "unnamed"),
        (Outcome((), 0, b"\x1b[31m\n", b""), "control"),
        (Outcome((), 2, b"", b"sketchnet: a.svm: class 'a\x07'\n"), "control"),
        (Outcome((), 0, "\u202e\n".encode(), b""), "control"),
        (Outcome((), 0, b"\x9b2J\n", b""), "control"),
        (Outcome((), 0, b"\rx\n", b""), "control"),
        (Outcome((), 0, b"", b"", peak=1 << 30), "memory"),
        (Outcome((), -9, b"", b"", stopped="time"), "time"),
        (Outcome((), -9, b"", b"", stopped="memory"), "memory"),
    ],
)
def test_what_is_wrong_is_found(outcome, kind):
    assert kinds(outcome) == {kind}


def test_control_characters():
    assert control_characters("a\tä\n\u00a0\u4e00") == []
    assert control_characters("\x1b\x7f\u0085\u2028\u2066") == [
        "'\\u2028'",
        "'\\u2066'",
        "'\\x1b'",
        "'\\x7f'",
        "'\\x85'",
    ]


def test_what_changes_on_the_disk(tmp_path):
    for name in ("mine", "theirs", "out"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("mine")
    (tmp_path / "folder").mkdir()
    before = listing(tmp_path)
    assert changes(before, listing(tmp_path)) == []
    (tmp_path / "mine").write_text("mime")
    (tmp_path / "theirs").unlink()
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("out")
    (tmp_path / "out").write_text("result")
    (tmp_path / "folder" / "x").mkdir()
    (tmp_path / ".out.lock").touch()
    found = [(wrong.kind, wrong.seen.split("'")[1]) for wrong in changes(before, listing(tmp_path), ["out"])]
    assert found == [
        ("left", ".out.lock"),
        ("left", "folder/x"),
        ("touched", "link"),
        ("touched", "mine"),
        ("touched", "theirs"),
    ]


def test_wrong_answers(tmp_path):
    """What is compared with: matrices that scipy refuses are none, and other numbers are not the same rows."""
    values, indices = np.array([1.0, 2.0]), np.array([0, 3])
    rows = csr(values, indices, np.array([0, 1, 2]), (2, COLUMNS))
    assert rows.toarray().sum() == 3
    for indptr in ([1, 1, 2], [0, 2, 1], [0, 1], [0, 1, 3], [0, 3, 2]):
        assert csr(values, indices, np.array(indptr), (2, COLUMNS)) is None
    assert csr(values, np.array([0, COLUMNS]), np.array([0, 1, 2]), (2, COLUMNS)) is None
    assert csr(values.astype(complex), indices, np.array([0, 1, 2]), (2, COLUMNS)) is None
    scene = SimpleNamespace(here=tmp_path, world=SimpleNamespace(gaussian=np.arange(4.0 * COLUMNS).reshape(COLUMNS, 4)))
    answer = np.array([[0, 1, 2, 3], [24, 26, 28, 30]], np.float32)
    np.save(tmp_path / "out.npy", answer)
    assert project_plainly(rows, scene)
    np.save(tmp_path / "out.npy", answer + np.eye(2, 4) / 100)
    assert not project_plainly(rows, scene)


def _hold(n_bytes):
    block = bytearray(n_bytes)
    time.sleep(0.1)
    del block


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_a_child_is_watched(tmp_path):
    """What a command says, how it ends, what memory it takes, and that one that hangs is ended."""
    (told,) = run(Child(["--version"], tmp_path))
    assert (told.code, told.out[:10], told.err, told.stopped) == (0, b"sketchnet ", b"", "")
    assert told.peak < 50 << 20
    large, slow, bad = run(
        Child(["--version"], tmp_path, lambda: _hold(300 << 20)),
        Child(["--version"], tmp_path, lambda: time.sleep(60), Bounds(seconds=1.0)),
        Child(["surprise"], tmp_path),
    )
    assert 250 << 20 < large.peak < 400 << 20
    assert (slow.stopped, slow.code) == ("time", -9)
    assert (bad.code, bad.err.count(b"\n")) == (2, 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_a_child_is_killed_where_it_should_be(tmp_path):
    """Before the first change in the folder there is nothing; before the ninth, what eight have made."""
    command = ["synth", "out", "-n", "50", "-d", "100", "--density", "0.1"]
    (tmp_path / "a").mkdir()
    (first,) = run(Child(command, tmp_path / "a", partial(kill_at, 1, str(tmp_path / "a"))))
    assert (first.code, listing(tmp_path / "a")) == (-9, {})
    (tmp_path / "b").mkdir()
    (ninth,) = run(Child(command, tmp_path / "b", partial(kill_at, 9, str(tmp_path / "b"))))
    assert (ninth.code, listing(tmp_path / "b")["out"]) == (-9, ("folder",))
