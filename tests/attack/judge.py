"""What counts as wrong: in what a command line said, in what it used, and in what lies on the disk afterwards."""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.attack.command import Bounds, Outcome

_TURNING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # marks that turn text around
_NOTE = (" left out", "damage may go unseen")  # how notes end
_OBEYED = ("Cc", "Cs", "Zl", "Zp")
_HASHED = 64 << 20  # of a longer file, only its size and time are compared


class Wrong(NamedTuple):
    """One thing that is not as it must be: its kind in a word, and what was seen."""

    kind: str
    seen: str


def judge(outcome: Outcome, codes: Sequence[int], bounds: Bounds, blames: str = "") -> list[Wrong]:
    """What is wrong with a command's end, its messages, its time and its memory. Where it fails, its message must have
    the name `blames`.
    """
    if outcome.stopped:
        return [Wrong(outcome.stopped, f"stopped after {outcome.seconds:.1f} s with {outcome.peak >> 20} MiB")]
    wrongs = [] if outcome.peak <= bounds.memory else [Wrong("memory", f"{outcome.peak >> 20} MiB were used")]
    out, err = _text(outcome.out), _text(outcome.err)
    if outcome.code < 0:
        return [*wrongs, Wrong("crash", f"ended by signal {-outcome.code}; {err[-300:]!r}")]
    if "Traceback (most recent call last)" in err:
        return [*wrongs, Wrong("traceback", " | ".join(err.strip().splitlines()[-3:]))]
    if outcome.code not in codes:
        wrongs.append(Wrong("code", f"exit {outcome.code}, not {' or '.join(map(str, codes))}; {err[-300:]!r}"))
    wrongs += [Wrong("control", f"{where} has {bad}") for where, bad in _controls(out, err) if bad]
    lines = err.removesuffix("\n").split("\n") if err else []
    said = [line for line in lines if not line.endswith(_NOTE)]
    if not all(line.startswith(("sketchnet: ", "python -m reproduction: ")) for line in said):
        wrongs.append(Wrong("lines", f"standard error has {err[-300:]!r}"))
    elif outcome.code and (len(said) != 1 or not err.endswith("\n")):
        wrongs.append(Wrong("lines", f"{len(said)} lines of error: {err[-300:]!r}"))
    if outcome.code and blames and blames not in err:
        wrongs.append(Wrong("unnamed", f"{blames!r} is not in {err[-300:]!r}"))
    return wrongs


def control_characters(text: str, allowed: str = "\n\t") -> list[str]:
    """Characters that a terminal obeys, or that turn text around, as Python writes them."""
    bad = {
        c for c in text if c not in allowed and (c in _TURNING or unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp"))
    }
    return sorted(map(ascii, bad))


def _controls(out: str, err: str) -> list[tuple[str, str]]:
    pairs = ("standard output", out, "\n\t"), ("standard error", err, "\n")
    return [(name, ", ".join(control_characters(text, allowed))) for name, text, allowed in pairs]


def _text(said: bytes) -> str:
    return said.decode("utf-8", "surrogateescape")  # what is no UTF-8 counts as a control character


def listing(folder: Path) -> dict[str, tuple]:
    """Every path in a folder: its type, and the checksum of a file, or where a link leads."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(place, name)
            found[os.path.relpath(path, folder)] = entry(path)
    return found


def entry(path: str | Path) -> tuple:
    """One path of a listing."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return ("nothing",)
    if stat.S_ISLNK(status.st_mode):
        return "link", os.readlink(path)
    if stat.S_ISDIR(status.st_mode):
        return ("folder",)
    if not stat.S_ISREG(status.st_mode):
        return "special", stat.S_IFMT(status.st_mode), status.st_rdev
    if status.st_size > _HASHED:
        return "file", status.st_size, status.st_mtime_ns
    return "file", status.st_size, hashlib.blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()


def changes(before: dict[str, tuple], after: dict[str, tuple], own: Sequence[str] = ()) -> list[Wrong]:
    """What differs between two listings and is not `own`, nor in such a folder."""
    wrongs = []
    for path in sorted({*before, *after}):
        if before.get(path) == after.get(path) or any(path == mine or path.startswith(f"{mine}/") for mine in own):
            continue
        kind = "left" if path not in before else "touched"
        wrongs.append(Wrong(kind, f"{path!r} was {before.get(path, 'not there')}, is {after.get(path, 'not there')}"))
    return wrongs
