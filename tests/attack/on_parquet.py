"""Parquet files: damaged, and such as are short on disk and long in memory."""

from __future__ import annotations

import numpy as np

from tests.attack.attack import Scene, attack
from tests.attack.damage import damaged

# Of pages that are unpacked at once: how many bytes they have, and whether that is more than 50 MB of memory allow.
_LONG = {
    "long dictionary": (115_000_000, True),
    "dictionary": (8_300_000, False),
    "long page": (115_000_000, True),
    "page": (8_000_000, False),
}


@attack("parquet", share=5)
def parquet(scene: Scene) -> None:
    """Damaged Parquet: pyarrow finds it out or not; what it says fits in a line."""
    scene.put("a.parquet", damaged((scene.world.folder / "table.parquet").read_bytes(), scene.rng))
    if scene.rng.random() < 0.5:
        scene.run("ingest", "a.parquet", "out", "--label", "answer", blames="a.parquet", own=("out",))
    else:
        scene.take("table")
        scene.run("predict", "table", "a.parquet", blames="a.parquet")


@attack("parquet-bomb")
def parquet_bomb(scene: Scene) -> None:
    """Columns that are short on disk and long in memory, where little of that is named."""
    kind = scene.rng.choice(("strings", "lists", "rows", *_LONG))
    scene.put("a.parquet", scene.world.remembered.get(kind) or _bomb(scene, kind))
    scene.take("table.parquet")
    options = ("--label", "answer", "--memory", "50MB", "--columns", "1000")
    ordinary = scene.run("ingest", "table.parquet", "ordinary", *options, own=("ordinary",)).peak
    codes = (0, 2) if kind not in _LONG else (2,) if _LONG[kind][1] else (0,)
    least = 16 << 20  # what pyarrow takes for any file; on a fast machine the ordinary one is over before a look at it
    bounds = {"codes": codes, "blames": "a.parquet", "memory": max(ordinary, least) + (50 << 20)}
    scene.run("ingest", "a.parquet", "out", *options, own=("out",), **bounds)


def _bomb(scene: Scene, kind: str) -> bytes:
    import pyarrow
    import pyarrow.parquet

    n = 3000
    columns = {"answer": pyarrow.array(["a", "b"] * (n // 2))}
    if kind == "strings":
        columns["x"] = pyarrow.array(["s" * 200_000] * n)
    elif kind in _LONG:
        texts = [f"{i:05}" * (_LONG[kind][0] // 5000) if i < 1000 else "t" for i in range(n)]
        columns["x"] = pyarrow.array(texts)
    elif kind == "lists":
        columns["x"] = pyarrow.array([list(range(1000)) * 20] * n, pyarrow.list_(pyarrow.int32()))
    else:
        columns = {"answer": pyarrow.array(["a"] * 20_000_000), "x": pyarrow.array(np.zeros(20_000_000))}
    sink = pyarrow.BufferOutputStream()
    dictionary = kind.endswith("dictionary") or kind not in _LONG
    pyarrow.parquet.write_table(pyarrow.table(columns), sink, compression="zstd", use_dictionary=dictionary)
    scene.world.remembered[kind] = sink.getvalue().to_pybytes()
    return scene.world.remembered[kind]
