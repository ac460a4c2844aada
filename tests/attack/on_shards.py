"""Data sets on disk: arrays that are damaged, replaced by what is no file, or wrong with checksums that are right."""

from __future__ import annotations

import json
import zlib

import numpy as np

from tests.attack.attack import Scene, attack
from tests.attack.damage import damaged, misplace, spoil_json
from tests.attack.plain import project_plainly, read_shards
from tests.attack.world import COLUMNS

_ARRAYS = ("indptr", "indices", "values", "labels")
_DATA = "clicks"
_VERBS = [
    ("project", _DATA, "out.npy", "--scheme", "gaussian", "-k", "4"),
    ("evaluate", "rows", _DATA),
    ("predict", "rows", _DATA),
    ("train", _DATA, "--out", "out", "--components", "8", "--hidden", "4", "--epochs", "1"),
]


def _lay(scene: Scene) -> None:
    """The data set, by a name that a message has only where it means it."""
    scene.take("set")
    (scene.here / "set").rename(scene.here / _DATA)


def _use(scene: Scene, blames: str, codes=(0, 2)) -> None:
    """Give the data set to a verb. Where it is taken, what is projected must be what lies there, read plainly."""
    command = scene.rng.choice(_VERBS)
    scene.take("rows")
    outcome = scene.run(*command, codes=codes, blames=blames, own=("out", "out.npy"))
    if outcome.code == 0 and command[0] == "project":
        plain = read_shards(scene.here / _DATA)
        right = plain is not None and project_plainly(plain, scene)
        scene.check(bool(right), "answer", "the projection is not that of the rows, or these are no CSR matrix")


@attack("shard-array-damaged", share=3)
def array_damaged(scene: Scene) -> None:
    _lay(scene)
    name = scene.rng.choice(_ARRAYS)
    path = scene.here / _DATA / "shard-00000" / f"{name}.npy"
    content = path.read_bytes()
    path.write_bytes(damaged(content, scene.rng))
    _use(scene, _DATA, (2,) if path.read_bytes() != content else (0,))


@attack("shard-array-misplaced", share=3)
def array_misplaced(scene: Scene) -> None:
    _lay(scene)
    name = scene.rng.choice(
        [*(f"shard-00000/{array}.npy" for array in _ARRAYS), "shard-00000/manifest.json", "dataset.json"]
    )
    misplace(scene.here / _DATA / name, scene.rng)
    _use(scene, name.split("/")[-1], (1, 2))


@attack("shard-array-wrong", share=6)
def array_wrong(scene: Scene) -> None:
    """Other numbers or another dtype, with a checksum to match."""
    _lay(scene)
    rng, name = scene.rng, scene.rng.choice(_ARRAYS)
    path = scene.here / _DATA / "shard-00000" / f"{name}.npy"
    array = np.load(path)
    if rng.random() < 0.3:
        with np.errstate(all="ignore"):
            array = array.astype(rng.choice(["i1", "u8", "f2", "f8", "c16", "S4", "?", ">i8", ">f4", "M8[s]", "i8"]))
    if rng.random() < 0.8:
        at = rng.choice((0, len(array) - 1, rng.randrange(len(array))))
        kinds = [-1, 2**31 - 1, 2**40, 2**63 - 1, -(2**31), 3, 0, 17, COLUMNS]
        kinds += [np.nan, np.inf, 1e300, -0.0] if array.dtype.kind == "f" else []
        with np.errstate(all="ignore"):
            array[at] = np.array(rng.choice(kinds)).astype(array.dtype)
    path.write_bytes(b"")
    np.save(path, array)
    if rng.random() < 0.2:
        path.write_bytes(damaged(path.read_bytes(), rng))
    manifest = scene.here / _DATA / "shard-00000/manifest.json"
    content = json.loads(manifest.read_text())
    content["files"][name] = {"length": len(array), "dtype": array.dtype.str, "crc32": zlib.crc32(path.read_bytes())}
    manifest.write_text(json.dumps(content))
    _use(scene, _DATA)


@attack("shard-manifest", share=4)
def manifest_edited(scene: Scene) -> None:
    _lay(scene)
    name = scene.rng.choice(("shard-00000/manifest.json", "dataset.json"))
    path = scene.here / _DATA / name
    if scene.rng.random() < 0.7:
        spoil_json(path, scene.rng)
    else:
        path.write_bytes(damaged(path.read_bytes(), scene.rng))
    _use(scene, _DATA)
