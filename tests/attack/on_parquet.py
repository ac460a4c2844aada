"""Parquet files: damaged, and such as are short on disk and long in memory."""

from __future__ import annotations

import numpy as np

from tests.attack.attack import Scene, attack
from tests.attack.damage import damaged


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
    kind = scene.rng.choice(("strings", "other strings", "lists", "rows"))
    scene.put("a.parquet", scene.world.remembered.get(kind) or _bomb(scene, kind))
    scene.take("table.parquet")
    options = ("--label", "answer", "--memory", "50MB", "--columns", "1000")
    ordinary = scene.run("ingest", "table.parquet", "ordinary", *options, own=("ordinary",)).peak
    # pyarrow unpacks the distinct texts of a row group at once, and copies them twice: 115 MB of them here.
    whole = 3 * 115_000_000 if kind == "other strings" else 0
    scene.run("ingest", "a.parquet", "out", *options, own=("out",), memory=ordinary + (50 << 20) + whole)


def _bomb(scene: Scene, kind: str) -> bytes:
    import pyarrow
    import pyarrow.parquet

    n = 3000
    columns = {"answer": pyarrow.array(["a", "b"] * (n // 2))}
    if kind == "strings":
        columns["x"] = pyarrow.array(["s" * 200_000] * n)
    elif kind == "other strings":
        columns["x"] = pyarrow.array([f"{i}" * 40_000 if i < 1000 else "t" for i in range(n)])
    elif kind == "lists":
        columns["x"] = pyarrow.array([list(range(1000)) * 20] * n, pyarrow.list_(pyarrow.int32()))
    else:
        columns = {"answer": pyarrow.array(["a"] * 20_000_000), "x": pyarrow.array(np.zeros(20_000_000))}
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink, compression="zstd")
    scene.world.remembered[kind] = sink.getvalue().to_pybytes()
    return scene.world.remembered[kind]
