"""A disk that is full, and two writers at once."""

from __future__ import annotations

import ctypes
import os
from functools import partial

from tests.attack.attack import Scene, attack
from tests.attack.command import Child, limit_files, run
from tests.attack.judge import changes, judge
from tests.attack.works import WORKS, undisturbed, what_is_left

_PAGE, _DETACH, _REMOUNT = 4096, 2, 32


def _starved(scene: Scene, name: str) -> None:
    """Too little room at first, on a small disk where mounting is allowed, or for any file; then enough."""
    work, whole = WORKS[name], undisturbed(scene, name)
    disk = scene.here / "disk"
    disk.mkdir()
    mounted = scene.rng.random() < 0.6 and _mount(disk, "size=64m")
    try:
        work.prepare(scene, "disk")
        before, before_disk = lambda: None, what_is_left(disk)
        if mounted:
            room = scene.rng.randrange(1, max(2, whole.size // _PAGE + 8))
            used = os.statvfs(disk)
            _mount(disk, f"remount,size={(used.f_blocks - used.f_bfree + room) * used.f_frsize}")
            kind = f"{room * _PAGE} bytes of room"
        else:
            most = scene.rng.randrange(whole.longest + 1)
            before, kind = partial(limit_files, most), f"files of at most {most} bytes"
        scene.commands.append(["#", kind])
        outcome = scene.run(*work.words("disk"), codes=(0, 1), own=("disk",), before=before)
        if outcome.code == 1:
            told = any(words in outcome.err for words in (b"no room", b"No space", b"File too large", b"too large"))
            scene.check(told, "message", f"nothing of room: {outcome.err!r}")
            if len(work.writes) == 1 and "." in work.writes[0]:  # a file is there as it was before, or not at all
                now = what_is_left(disk).get(work.writes[0])
                scene.check(now == before_disk.get(work.writes[0]), "half", f"{work.writes[0]} is {now}")
        if mounted:
            _mount(disk, "remount,size=64m")
        done = scene.run(*work.words("disk"), codes=(0, 2) if outcome.code == 0 else (0,), own=("disk",))
        if done.code == 0:
            left = {os.path.normpath(os.path.join("disk", p)): e for p, e in whole.left.items() if p not in work.takes}
            left = {p: e for p, e in left.items() if not any(p.startswith(f"disk/{taken}/") for taken in work.takes)}
            found = {p: e for p, e in what_is_left(scene.here).items() if p.startswith("disk/")}
            for wrong in changes(left, found):
                scene.check(False, "beside" if wrong.kind == "left" else "answer", f"after {kind}: {wrong.seen}")
    finally:
        if mounted:
            _libc().umount2(os.fsencode(disk), _DETACH)


def unmount_below(folder) -> None:
    """What a worker that was killed left mounted."""
    with open("/proc/mounts", "rb") as mounts:
        places = [line.split()[1] for line in mounts]
    for place in places:
        if place.startswith(os.fsencode(folder) + b"/"):
            _libc().umount2(place, _DETACH)


def _two_writers(scene: Scene, name: str) -> None:
    """The same command twice at once: both succeed, or one says that another is writing; the output is whole."""
    work, whole = WORKS[name], undisturbed(scene, name)
    work.prepare(scene)
    wait = scene.rng.random() * whole.seconds
    children = [Child(work.words(), scene.here), Child(work.words(), scene.here, partial(_sleep, wait))]
    outcomes = run(*children)
    scene.commands.append([*work.words(), "#", f"twice, {wait:.3f} s apart"])
    for outcome, child in zip(outcomes, children):
        scene.wrongs += judge(outcome, (0, 1, 2), child.bounds)
        if outcome.code:
            told = any(words in outcome.err for words in (b"another process", b"exists already"))
            scene.check(told, "message", f"nothing of another writer: {outcome.err!r}")
    scene.check(0 in [outcome.code for outcome in outcomes], "code", "neither succeeds")
    for wrong in changes(whole.left, what_is_left(scene.here)):
        scene.check(False, "beside" if wrong.kind == "left" else "answer", wrong.seen)


def _sleep(seconds: float) -> None:
    import time

    time.sleep(seconds)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _mount(folder, options: str) -> bool:
    """Mount a disk in memory, or change its size; false where that is not allowed."""
    flags = _REMOUNT if options.startswith("remount,") else 0
    data = options.removeprefix("remount,").encode()
    return _libc().mount(b"none", os.fsencode(folder), b"tmpfs", flags, data) == 0


for _name in WORKS:
    attack(f"full-{_name}", share=2)(partial(_starved, name=_name))
    attack(f"two-{_name}")(partial(_two_writers, name=_name))
