"""Damage: bytes that are changed at random, values of JSON that are replaced, names that a terminal would obey."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

HOSTILE = [
    "\x1b[31mred", "\x1b]0;title\x07", "bell\x07", "two\nlines", "back\rover", "\u202eright", "\u2066apart", "\x9b2J",
    "\x7f", "nul\x00", "a\u2028b", "\x08\x08\x08", "\x1b]8;;http://x\x1b\\link", "<script>alert(1)</script>", "\u200f",
]  # fmt: skip
_VALUES = [
    None, True, -1, 0, 1, 2**31, 2**63, 2**64, 10**30, -(10**30), 0.5, 1e308, float("nan"), float("inf"), "", "x", [],
    {}, [[]], [None], {"a": {}}, [1, "a", None], "../../etc/passwd", "x" * 10_000, *HOSTILE,
]  # fmt: skip


def damaged(content: bytes, rng: random.Random, tokens: tuple[bytes, ...] = ()) -> bytes:
    """A few changes: bits flipped, parts cut, doubled or overwritten, the end cut off, tokens put in."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at, kind = rng.randrange(len(data) + 1), rng.randrange(6 + bool(tokens) * 3)
        if kind in (0, 1) and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del data[at : at + rng.choice((1, 2, 8, 100))]
        elif kind == 3:
            del data[at:]
        elif kind == 4:
            data[at:at] = data[at // 2 : at // 2 + rng.choice((1, 8, 100))]
        elif kind == 5:
            data[at : at + 4] = rng.choice((b"\xff" * 4, b"\0" * 4, rng.randbytes(4), b"\xff\xff\xff\x7f"))
        elif tokens:
            data[at:at] = rng.choice(tokens)
    return bytes(data)


def flipped(content: bytes, rng: random.Random) -> bytes:
    """One bit, wherever it is."""
    data, at = bytearray(content), rng.randrange(len(content) * 8)
    data[at // 8] ^= 1 << at % 8
    return bytes(data)


def with_other_value(content, rng: random.Random):
    """A JSON value in which one part, at any depth, is replaced, taken out or put in."""
    parts = list(_parts(content))
    owner, key = rng.choice(parts) if parts else (None, None)
    if owner is None:
        return rng.choice(_VALUES)
    kind = rng.randrange(8)
    if kind == 0:
        del owner[key]
    elif kind == 1 and isinstance(owner, dict):
        owner[rng.choice(HOSTILE)] = owner.pop(key)
    elif kind == 2 and isinstance(owner, list):
        owner *= 2
    else:
        owner[key] = rng.choice(_VALUES)
    return content


def spoil_json(path: Path, rng: random.Random) -> None:
    """Replace a value in a JSON file."""
    path.write_text(json.dumps(with_other_value(json.loads(path.read_text()), rng)))


def misplace(path: Path, rng: random.Random) -> None:
    """Put what is no regular file in the place of a file; or a link to it elsewhere, which is as good."""
    kind = rng.choice(("fifo", "zero", "folder", "dangling", "loop", "socket", "nothing"))
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        os.mknod(path, 0o140644)
    elif kind != "nothing":
        path.symlink_to({"zero": "/dev/zero", "dangling": "nowhere", "loop": path.name}[kind])


def _parts(value):
    """(container, key) of every value inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(items):
        yield value, key
        yield from _parts(part)
