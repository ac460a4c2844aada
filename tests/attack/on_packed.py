"""Packed files: flipped, cut, joined, and bombs; of our own, and of other programs."""

from __future__ import annotations

import bz2
import gzip
import lzma

import zstandard

from tests.attack.attack import Scene, attack
from tests.attack.damage import damaged, flipped
from tests.attack.judge import Wrong
from tests.attack.plain import read_labels, read_shards
from tests.attack.world import PACKINGS

_PACK = {
    ".gz": lambda data: gzip.compress(data, 6, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lambda data: lzma.compress(data, preset=0),
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
_BUDGET = 50 << 20
_BOMBS = {  # what is packed, times how often
    "newlines": (b"\n", 400 << 20),
    "spaces": (b" ", 400 << 20),
    "zeros": (b"\0", 400 << 20),
    "rows": (b"1 1:1\n", 4 << 20),
    "comment": (b"#" + b"a" * 1023, 300 << 10),
    "one row": (b" 1:1", 20 << 20),
    "label": (b"1", 300 << 20),
}


def _same_rows(scene: Scene, *wanted: str) -> bool:
    """Whether `out` has the rows of one of the files."""
    found, labels = read_shards(scene.here / "out"), read_labels(scene.here / "out")
    for name in wanted:
        rows, of_rows = scene.world.remembered.setdefault(name, _ingested(scene, name))
        if found.shape == rows.shape and (found != rows).nnz == 0 and labels.tolist() == of_rows.tolist():
            return True
    return False


def _ingested(scene: Scene, name: str):
    return read_shards(scene.world.folder / name), read_labels(scene.world.folder / name)


@attack("packed-flip", share=6)
def packed_flip(scene: Scene) -> None:
    """One bit of a file that we wrote: the same rows, or an error."""
    name = f"rows.svm{scene.rng.choice((*PACKINGS, '.zst'))}"
    scene.put(name, flipped((scene.world.folder / name).read_bytes(), scene.rng))
    outcome = scene.run("ingest", name, "out", blames=name, own=("out",))
    scene.check(outcome.code != 0 or _same_rows(scene, "set"), "answer", f"other rows were read from a flipped {name}")


@attack("packed-damage", share=3)
def packed_damage(scene: Scene) -> None:
    """More damage, to a file with a checksum."""
    suffix = scene.rng.choice(PACKINGS)
    name, content = f"rows.svm{suffix}", _PACK[suffix]((scene.world.folder / "rows.svm").read_bytes())
    scene.put(name, damaged(content, scene.rng))
    outcome = scene.run("ingest", name, "out", blames=name, own=("out",))
    scene.check(outcome.code != 0 or _same_rows(scene, "set"), "answer", f"other rows were read from a damaged {name}")


@attack("packed-joined")
def packed_joined(scene: Scene) -> None:
    """The rows in several streams, each as short as may be; or the last of them cut."""
    rng, suffix = scene.rng, scene.rng.choice(PACKINGS)
    text, streams = (scene.world.folder / "rows.svm").read_bytes(), []
    cuts = sorted(rng.randrange(len(text) + 1) for _ in range(rng.choice((1, 2, 20))))
    for start, stop in zip([0, *cuts], [*cuts, len(text)]):
        streams.append(_PACK[suffix](text[start:stop]))
    cut = rng.random() < 0.3
    if cut:
        streams[-1] = streams[-1][: rng.randrange(1, len(streams[-1]))]
    name = f"rows.svm{suffix}"
    scene.put(name, b"".join(streams))
    outcome = scene.run("ingest", name, "out", codes=(2,) if cut else (0,), blames=name, own=("out",))
    scene.check(outcome.code != 0 or _same_rows(scene, "set"), "answer", f"joined streams of {name} gave other rows")


@attack("packed-bomb", share=2)
def packed_bomb(scene: Scene) -> None:
    """Hundreds of megabytes in a few KB: the memory named is kept to, over what an ordinary file takes."""
    what, suffix = scene.rng.choice(sorted(_BOMBS)), scene.rng.choice(PACKINGS)
    verb = scene.rng.choice([("ingest", "out"), ("project", "out.npy", "-k", "4")])
    name = f"bomb.svm{suffix}"
    scene.put(name, _bomb(scene, what, suffix))
    scene.take("rows.svm")
    more = [*verb[2:], "--memory", "50MB"]
    ordinary = scene.run(verb[0], "rows.svm", f"ordinary-{verb[1]}", *more, own=(f"ordinary-{verb[1]}",)).peak
    outcome = scene.run(verb[0], name, *verb[1:2], *more, own=(verb[1],), memory=ordinary + _BUDGET)
    if outcome.code == 0 and what not in ("newlines", "rows", "comment", "one row"):
        scene.wrongs.append(Wrong("answer", f"{what} were taken for rows"))


def _bomb(scene: Scene, what: str, suffix: str) -> bytes:
    """In one stream, packed piece by piece: the bomb must not go off here."""
    if (what, suffix) not in scene.world.remembered:
        unit, times = _BOMBS[what]
        piece = unit * max(1, (1 << 20) // len(unit))
        pack = {
            ".gz": lambda: gzip.zlib.compressobj(1, gzip.zlib.DEFLATED, 31),
            ".bz2": bz2.BZ2Compressor,
            ".xz": lambda: lzma.LZMACompressor(preset=0),
            ".zst": lambda: zstandard.ZstdCompressor(1).compressobj(),
        }[suffix]()
        pieces = [pack.compress(piece) for _ in range(len(unit) * times // len(piece))]
        scene.world.remembered[what, suffix] = b"".join(pieces) + pack.flush()
    return scene.world.remembered[what, suffix]
