"""Command lines that write, each with what it needs and what it leaves: what is killed, starved and crowded."""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.attack.attack import Scene
from tests.attack.command import Child, run
from tests.attack.judge import listing
from tests.attack.killed import write_changes

_SMALL_NET = "--components 8 --hidden 4 --epochs 2 --batch-size 64"


@dataclass(frozen=True)
class Work:
    """`{to}` stands for the folder to write into. `first` is run before: what is then replaced."""

    takes: tuple[str, ...]
    command: str
    writes: tuple[str, ...]
    first: str = ""

    def words(self, to: str = ".") -> list[str]:
        return shlex.split(self.command.format(to=to))

    def prepare(self, scene: Scene, to: str = ".") -> None:
        scene.take(*self.takes)
        if self.first:
            words = shlex.split(self.first.format(to=to))
            scene.run(*words, codes=(0,), own=self.writes_in(to))

    def writes_in(self, to: str) -> tuple[str, ...]:
        return tuple(os.path.normpath(os.path.join(to, name)) for name in self.writes)


WORKS = {
    "ingest": Work(("rows.svm",), "ingest rows.svm {to}/out", ("out",)),
    "ingest-shards": Work(("big.svm",), "ingest big.svm {to}/out --memory 12MB", ("out",)),
    "ingest-over": Work(
        ("rows.svm", "big.svm"),
        "ingest rows.svm {to}/out --overwrite",
        ("out",),
        "ingest big.svm {to}/out --memory 12MB",
    ),
    "synth": Work((), "synth {to}/out -n 500 -d 1000 --density 0.01", ("out",)),
    "project-npz": Work(("rows.npz",), "project rows.npz {to}/out.npy -k 40", ("out.npy",)),
    "project-set": Work(("set",), "project set {to}/out.npy -k 40", ("out.npy",)),
    "project-svm": Work(("rows.svm",), "project rows.svm {to}/out.npy -k 40", ("out.npy",)),
    "project-over": Work(
        ("rows.svm",),
        "project rows.svm {to}/out.npy -k 40 --overwrite",
        ("out.npy",),
        "project rows.svm {to}/out.npy -k 3",
    ),
    "train": Work(("rows.svm",), f"train rows.svm --out {{to}}/out {_SMALL_NET}", ("out",)),
    "train-set": Work(("set",), f"train set --out {{to}}/out {_SMALL_NET} --seed 4", ("out",)),
    "train-over": Work(
        ("rows.svm",),
        f"train rows.svm --out {{to}}/out {_SMALL_NET} --overwrite",
        ("out",),
        f"train rows.svm --out {{to}}/out {_SMALL_NET} --seed 9",
    ),
    "encode": Work(("rows.svm", "codes"), "encode codes rows.svm --output {to}/out.npy", ("out.npy",)),
    "predict": Work(("rows.svm", "rows"), "predict rows rows.svm --output {to}/out.tsv.gz", ("out.tsv.gz",)),
    "report": Work(
        ("rows.svm", "rows"),
        "report rows --data rows.svm --out {to}/out.html --markdown {to}/out.md",
        ("out.html", "out.md"),
    ),
    "reproduction": Work((), "reproduction tab:rp_layer_complexity --scale smoke --out {to}/out", ("out",)),
}
_TIMES = re.compile(rb'"(seconds|seconds_to_best|when|[a-z_]*seconds)": ("[^"]*"|[^,}\]]*)')


@dataclass
class Undisturbed:
    """What a work does where nothing disturbs it."""

    left: dict[str, tuple]  # a listing of what it writes
    changes: list[list[str]]  # each an event and its paths
    seconds: float
    longest: int  # bytes of its largest file
    size: int  # of all


def undisturbed(scene: Scene, name: str) -> Undisturbed:
    """Run a work in a folder of its own, the first time that it is asked for."""
    if ("undisturbed", name) not in scene.world.remembered:
        with tempfile.TemporaryDirectory(dir=scene.world.folder.parent) as folder, tempfile.TemporaryFile() as told:
            aside = Scene(scene.world, Path(folder), scene.rng)
            WORKS[name].prepare(aside)
            child = Child(WORKS[name].words(), aside.here, partial(write_changes, told.fileno(), folder))
            (outcome,) = run(child)
            if outcome.code:
                raise AssertionError(f"{outcome.command} fails undisturbed: {outcome.err}")
            told.seek(0)
            lines = told.read().decode().replace(folder, "").split("\0\n")[:-1]
            files = [path for path in aside.here.rglob("*") if path.is_file()]
            sizes = [path.stat().st_size for path in files if any(w in path.parts for w in WORKS[name].writes)]
            found = Undisturbed(
                what_is_left(aside.here), [line.split("\0") for line in lines], outcome.seconds, max(sizes), sum(sizes)
            )
        scene.world.remembered["undisturbed", name] = found
    return scene.world.remembered["undisturbed", name]


def what_is_left(folder: Path) -> dict[str, tuple]:
    """A listing in which times of day and lengths of time do not count."""
    found = listing(folder)
    for name in found:
        path = folder / name
        if found[name][0] != "file" or path.suffix not in (".jsonl", ".html", ".md"):
            continue
        if path.suffix == ".jsonl":
            content = path.read_bytes()
            found[name] = "text", _cells(content) if b'"recipe"' in content else _TIMES.sub(b"", content)
        else:
            found[name] = "page", path.stat().st_size > 1000  # it has speeds, and drawings of times
    return found


def _cells(content: bytes) -> bytes:
    """Which cells have numbers. These are times here; and of a line that was cut off only what follows it counts."""
    found = set()
    for line in content.splitlines():
        with suppress(ValueError):
            record = json.loads(line)
            what = [record.get(name) for name in ("scale", "recipe", "settings", "seed")]
            found.add(json.dumps([*what, sorted(record["found"])]))
    return "\n".join(sorted(found)).encode()
