"""Documents of three kinds: half of a document's words are of its kind, the others of no kind."""

import random

import numpy as np

from sketchnet.data import open_shards
from tests.cli.command_line import good

N, KINDS, OWN, COMMON, LENGTH = 150, 3, 8, 16, 24
AUTO = "--task autoencoder --hidden 16 --codes 4 --batch-size 32 --set feature_dropout=0".split()
TINY = [*AUTO, *"--epochs 30 --set rate=0.01 --set pretrain=20".split()]
PLAIN = [*AUTO, *"--no-pretrain --epochs 15 --set rate=0.01".split()]
QUICK = [*AUTO, *"--epochs 4 --set pretrain=3".split()]
RETRIEVAL = "--retrieval --device cpu --json".split()


def documents(draw, n):
    """(kinds, counts of words by document)."""
    kinds = [draw.randrange(KINDS) for _ in range(n)]
    counts = np.zeros((n, KINDS * OWN + COMMON), int)
    for row, kind in zip(counts, kinds):
        for _ in range(LENGTH):
            own = draw.random() < 0.5
            row[kind * OWN + draw.randrange(OWN) if own else KINDS * OWN + draw.randrange(COMMON)] += 1
    return kinds, counts


def svmlight(labels, counts):
    rows = (" ".join(f"{i + 1}:{row[i]}" for i in np.flatnonzero(row)) for row in counts)
    return "".join(f"{label} {row}\n" for label, row in zip(labels, rows))


def plant(folder):
    """Documents in files of every kind, with labels and without."""
    draw = random.Random(0)
    kinds, counts = documents(draw, 2 * N)
    (folder / "train.svm").write_text(svmlight(kinds, counts))
    (folder / "bare.svm").write_text(svmlight([""] * len(kinds), counts))
    kinds, counts = documents(draw, N)
    (folder / "test.svm").write_text(svmlight([10 - 15 * kind for kind in kinds], counts))  # 10, -5 and -20
    (folder / "test-bare.svm").write_text(svmlight([""] * N, counts))
    sets = [",".join(map(str, sorted({kind, *draw.sample(range(3, 6), 1)}))) for kind in kinds]
    (folder / "sets.svm").write_text(svmlight(sets, counts))
    words = [" ".join(f"w{i}" for i in np.repeat(np.arange(len(row)), row)) for row in counts]
    (folder / "words.tsv").write_text("".join(f"{'abc'[kind]}\t{text}\n" for kind, text in zip(kinds, words)))
    cells = (",".join(map(str, [*row, "abc"[kind]])) for kind, row in zip(kinds, counts))
    names = ",".join([*(f"n{i}" for i in range(counts.shape[1])), "kind"])
    (folder / "table.csv").write_text("\n".join([names, *cells]) + "\n")
    bare = (line.rpartition(",")[0] for line in (folder / "table.csv").read_text().splitlines())
    (folder / "bare.csv").write_text("\n".join(bare) + "\n")
    np.savez(folder / "kinds.npz", kinds=kinds)


def numbers(lines):
    return np.array([line.split("\t") for line in lines.splitlines()], float)


def open_shards_of(folder, name):
    good("ingest", name, "shards", cwd=folder)
    return open_shards(folder / "shards")
