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

_CELLS = (b'"', b'""', b"\r", b"\r\n", b"\0", b",", b"\t", b"NA", b"1e999", b"nan", b"\xff", b"\xe2\x80\xae", b"9" * 99)
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
        if plain.n_columns > _WIDEST:  # more than an array of scipy can have
            return
    except Malformed as error:
        codes, blames = (2,), f"a.svm:{error.args[0]}:"
    outcome = scene.run("ingest", "a.svm", "out", *options, codes=codes, blames=blames, own=("out",))
    if outcome.code == 0 and codes == (0,):
        rows, same = read_shards(scene.here / "out"), False
        if rows is not None:
            same = np.array_equal(rows.indptr, plain.indptr) and np.array_equal(rows.indices, plain.indices)
            same &= rows.data.tobytes() == plain.values.tobytes()
            same &= read_labels(scene.here / "out").tobytes() == plain.labels.tobytes()
        scene.check(same, "answer", f"other rows than the plain parser's from {text[:300]!r}")


@attack("svmlight-predict", share=3)
def svmlight_predict(scene: Scene) -> None:
    """As many answers as there are rows."""
    lines = (scene.world.folder / "rows.svm").read_bytes().splitlines(True)[:9]
    text = damaged(b"".join(lines), scene.rng, tuple(TOKENS))
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
    described = json.loads((scene.here / "out/dataset.json").read_text())
    found, encoder = read_shards(scene.here / "out"), described.get("encoder")
    if encoder is None:  # nothing was learnt, for there was no row to learn from
        return not rows and found.shape[0] == 0
    missing, kinds = set(encoder["missing"]), encoder["kinds_"]
    rows = [["" if cell in missing else cell for cell in row] for row in rows]
    wanted = oracle(names, rows, kinds, lambda feature: plain_hash(feature, _HASHED))
    entries = list(zip(found.indices.tolist(), found.data.tolist()))
    return [entries[a:b] for a, b in zip(found.indptr, found.indptr[1:])] == wanted
