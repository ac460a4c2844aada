"""Text files: svmlight and tables, damaged at random, and read again as plainly as can be."""

from __future__ import annotations

import csv
import io
import json
import random

import numpy as np

from tests.attack.attack import Scene, attack
from tests.attack.damage import damaged
from tests.attack.plain import read_labels, read_shards
from tests.data.plain_svmlight import Malformed, parse_plainly
from tests.data.plain_tables import oracle, plain_hash
from tests.data.svmlight_texts import EXAMPLE
from tests.data.test_svmlight_fuzz import SEEDS, TOKENS, mutated

_CELLS = (
    b'"',
    b'""',
    b"\r",
    b"\r\n",
    b"\0",
    b",",
    b"\t",
    b"NA",
    b"1e999",
    b"nan",
    b"\xff",
    b"\xe2\x80\xae",
    b"9" * 400,
    b"\n,\n",
)
_HASHED = 1 << 20
_WIDEST = 2**63 - 1


def _svmlight(rng: random.Random) -> bytes:
    kind = rng.randrange(4)
    if kind < 2:
        return mutated(rng)
    content = EXAMPLE if kind == 2 else b"\n".join(rng.sample(SEEDS, 2)).replace(b"\xef\xbb\xbf", b"")
    return damaged(content * rng.choice((1, 40)), rng, tuple(TOKENS))


@attack("svmlight", share=12)
def svmlight(scene: Scene) -> None:
    """The rows of the plain parser, or an error that names the file and the line where that finds one."""
    text = _svmlight(scene.rng)
    scene.put("a.svm", text)
    base, labels = scene.rng.choice(("0", "1")), scene.rng.choice(("single", "multi"))
    options = ("--base", base, "--labels", labels)
    if text[:2] == b"\x1f\x8b" or text[:3] == b"BZh":
        return
    try:
        plain, _ = parse_plainly(text, np.float32, base=int(base), labels=labels)
        codes, blames = (0,), ""
        if plain.n_columns > _WIDEST:
            codes, blames = (2,), "a.svm"
    except Malformed as error:
        codes, blames = (2,), f"a.svm:{error.args[0]}:"
    outcome = scene.run("ingest", "a.svm", "out", *options, codes=codes, blames=blames, own=("out",))
    if outcome.code == 0 and codes == (0,):
        rows, found = read_shards(scene.here / "out"), read_labels(scene.here / "out")
        same = rows is not None and (rows.indptr.tolist(), rows.indices.tolist()) == (
            plain.indptr.tolist(),
            plain.indices.tolist(),
        )
        same = same and rows.data.tobytes() == plain.values.tobytes() and found.tobytes() == plain.labels.tobytes()
        scene.check(same, "answer", f"other rows than the plain parser's from {text[:300]!r}")


@attack("svmlight-predict", share=3)
def svmlight_predict(scene: Scene) -> None:
    """As many answers as there are rows."""
    text = damaged(
        b"".join((scene.world.folder / "rows.svm").read_bytes().splitlines(True)[:9]), scene.rng, tuple(TOKENS)
    )
    scene.put("a.svm", text)
    scene.take("rows")
    outcome = scene.run("predict", "rows", "a.svm", blames="a.svm")
    if outcome.code == 0:
        lines = outcome.out.splitlines()
        rows = [line for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.split(b"#")[0].strip()]
        scene.check(len(lines) == len(rows), "answer", f"{len(lines)} answers for {len(rows)} rows")
        scene.check(set(lines) <= {b"1", b"-1"}, "answer", f"{set(lines)}")


@attack("table", share=6)
def table(scene: Scene) -> None:
    """A hashed table: each row's features as an oracle has them, cell by cell."""
    rng, tabs = scene.rng, scene.rng.random() < 0.3
    lines = (scene.world.folder / "table.csv").read_bytes().splitlines(True)[: rng.choice((3, 12, 60))]
    content = b"".join(lines).replace(b",", b"\t" if tabs else b",")
    content = damaged(content, rng, _CELLS) if rng.random() < 0.8 else content.replace(b"\n", b"\r\n")
    name = "a.tsv" if tabs else "a.csv"
    scene.put(name, content)
    options = ("--label", "answer", "--columns", str(_HASHED), "--header")
    outcome = scene.run("ingest", name, "out", *options, blames=name, own=("out",))
    if outcome.code == 0:
        scene.check(
            _as_the_oracle_says(scene, content, tabs), "answer", f"other features than the oracle's: {content!r}"
        )


def _as_the_oracle_says(scene: Scene, content: bytes, tabs: bool) -> bool:
    """By Python's own reader of CSV. Which columns are numbers, and what is missing, is taken from what was learnt."""
    text = content.decode("utf-8-sig")
    parsed = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if tabs else ",", strict=True)
    names, *rows = [row for row in parsed if row]
    encoder = json.loads((scene.here / "out/dataset.json").read_text())["encoder"]
    missing, kinds = set(encoder["missing"]), encoder["kinds_"]
    rows = [["" if cell in missing else cell for cell in row] for row in rows]
    wanted = oracle(names, rows, kinds, lambda feature: plain_hash(feature, _HASHED))
    found = read_shards(scene.here / "out")
    pairs = [
        list(zip(found.indices[a:b].tolist(), found.data[a:b].tolist())) for a, b in zip(found.indptr, found.indptr[1:])
    ]
    return pairs == wanted


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
    import pyarrow
    import pyarrow.parquet

    kind, n = scene.rng.choice(("strings", "lists", "rows", "wide strings")), 3000
    columns = {"answer": pyarrow.array(["a", "b"] * (n // 2))}
    if kind == "strings":
        columns["x"] = pyarrow.DictionaryArray.from_arrays(
            pyarrow.array([0] * n, pyarrow.int32()), ["s" * 200_000]
        ).cast("string")
    elif kind == "wide strings":
        columns["x"] = pyarrow.array(
            ["s" * 100_000] * 1000 + [f"{i}" * 40_000 for i in range(1000)] + ["t"] * (n - 2000)
        )
    elif kind == "lists":
        columns["x"] = pyarrow.array([list(range(1000)) * 20] * n, pyarrow.list_(pyarrow.int32()))
    else:
        columns = {"answer": pyarrow.array(["a"] * 20_000_000), "x": pyarrow.array(np.zeros(20_000_000))}
    pyarrow.parquet.write_table(pyarrow.table(columns), scene.here / "a.parquet", compression="zstd")
    scene.take("table.parquet")
    options = ("--label", "answer", "--memory", "50MB", "--columns", "1000")
    ordinary = scene.run("ingest", "table.parquet", "ordinary", *options, own=("ordinary",)).peak
    scene.run("ingest", "a.parquet", "out", *options, own=("out",), memory=ordinary + (50 << 20))
