"""Foreign files, folders and links in the place of every name that a verb writes, renames or removes.

Foreign is whatever sketchnet did not write. It must stay as it is, wherever it lies, whether the command then fails or
not. Two things are not foreign: the file that `predict`, `encode` and `report` are told to write, which they replace,
and what lies in an output that sketchnet itself wrote and is told to `--overwrite`. Names with random or process
numbers cannot be met, so they are left out.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from tests.attack.attack import Scene, attack
from tests.attack.judge import entry, listing
from tests.attack.works import WORKS, undisturbed

_FILES_REPLACED = ("predict", "encode", "report")


def _places(scene: Scene, name: str) -> list[str]:
    """Where a work, or another one of the same verb, changes something."""
    verb, work = name.split("-")[0], WORKS[name]
    found = set()
    for other in WORKS:
        if other.split("-")[0] == verb:
            found |= {path.strip("/") for _, *paths in undisturbed(scene, other).changes for path in paths}

    def fits(path: str) -> bool:
        inside = any(path == output or path.startswith(f"{output}/") for output in work.writes)
        allowed = path in work.writes if verb in _FILES_REPLACED else inside and bool(work.first)
        return bool(path) and path not in work.takes and not allowed and not re.search(r"\d{3,}\.new|tmp", path)

    return sorted(path for path in found if fits(path))


def _crowded(scene: Scene, name: str) -> None:
    """Something foreign lies where the verb would write."""
    work, rng = WORKS[name], scene.rng
    places = _places(scene, name)
    if not places:
        return
    work.prepare(scene)
    names = {path: tuple(path.split("/")[: 1 + (path.split("/")[0] in work.writes)]) for path in places}
    name = rng.choice(sorted(set(names.values())))  # a folder with many files in it is one among the names
    path = scene.here / rng.choice([path for path in places if names[path] == name])
    path.parent.mkdir(parents=True, exist_ok=True)
    (scene.here / "precious").mkdir()
    scene.put("precious/letter", b"the only copy\n")
    kinds = ("file", "link to a file", "folder", "link to a folder", "empty file", "dangling link")
    # Results are added to an empty file, and an empty sign is taken for ours: nothing is lost by that.
    kind = rng.choice(kinds[:4] if path.name in ("results.jsonl", "owner") else kinds)
    _lay(path, kind, scene.here / "precious")
    scene.commands.append(["#", f"{kind} at {path.relative_to(scene.here)}"])
    # Into the output itself, where it is a folder or leads to one, the verb writes. All that was there must stay.
    within = path in [scene.here / output for output in work.writes]
    before = _seen(path, within), _seen(scene.here / "precious", within)
    outcome = scene.run(*work.words(), codes=(0, 1, 2), own=(".", *listing(scene.here), *work.writes, *places))
    after = _seen(path, within), _seen(scene.here / "precious", within)
    scene.check(before == after, "foreign", f"{kind} at {path.relative_to(scene.here)}: was {before}, is {after}")
    named = path.name.encode() in outcome.err or any(f"{w}".encode() in outcome.err for w in work.writes)
    scene.check(outcome.code == 0 or named, "unnamed", f"{path.name} is not in {outcome.err!r}")


def _lay(path: Path, kind: str, precious: Path) -> None:
    if "link" in kind:
        path.symlink_to(precious if "folder" in kind else precious / ("letter" if "to" in kind else "nothing"))
    elif kind == "folder":
        path.mkdir()
        (path / "letter").write_text("also the only copy\n")
    else:
        path.write_text("" if "empty" in kind else "mine\n")


def _seen(path: Path, within: bool) -> tuple:
    """The thing itself, and all that lies in it where it is a folder that is no link, or only the letter."""
    inside = listing(path) if path.is_dir() and not path.is_symlink() else {}
    return entry(path), {name: what for name, what in inside.items() if name == "letter" or not within}


for _name in WORKS:
    attack(f"foreign-{_name}", share=3)(partial(_crowded, name=_name))
