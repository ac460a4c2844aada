"""Vowpal Wabbit, on files in its own format: linear, and with a layer of hidden units (`--nn`)."""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from math import ceil, log2
from pathlib import Path
from typing import ClassVar

import numpy as np

from reproduction.rivals.rival import Rival, library
from sketchnet import random

_CHUNK = 1 << 18  # entries turned to text at a time
_SHORT, _PAIR_BITS = 30, 22
_MOST_BITS = 27  # a table of 2**27 weights and what is kept beside each takes 2 GiB, where it is used


class VowpalWabbit(Rival):
    name = "VW"
    packages = ("vowpalwabbit",)
    gives = "margins"
    takes_several_labels = True
    defaults: ClassVar = {"loss": "logistic", "passes": 10, "rate": 0.5, "l2": 0.0, "hidden": 0, "pairs": False}
    space: ClassVar = {
        "loss": ("logistic", "hinge"), "passes": (1, 3, 10, 30), "rate": (0.1, 0.5, 2.0), "l2": (0.0, 1e-7, 1e-6),
        "pairs": (False, True),
    }  # fmt: skip

    def grid(self, X, y) -> list[dict]:
        grid = [{"rate": 0.5}, {"rate": 2.0}, {"loss": "hinge"}, {"loss": "hinge", "rate": 2.0}, {"passes": 30}]
        return [*grid, {"passes": 3}, {"l2": 1e-7}, {"loss": "hinge", "l2": 1e-7}, {"passes": 30, "rate": 2.0}]

    def __init__(self, **settings):
        super().__init__(**settings)
        self._folder = Path(tempfile.mkdtemp(prefix="sketchnet-vw-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._written = None

    def _learn(self, X, y, settings, valid, deadline) -> None:
        classes = len(self.classes_)
        path = self._folder
        # Pairs of columns are for short rows, and share places as they come.
        pairs = settings["pairs"] and X.nnz <= _SHORT * X.shape[0]
        bits = max(_PAIR_BITS if pairs else 0, _bits(X.shape[1], classes, settings["hidden"]))
        cache = path / f"train-{bits}.cache"
        if self._written is None or not _same(self._written, (X, y)):
            for old in path.glob("train*"):
                old.unlink()
            # Rows are often sorted by class, which online learning does not forgive.
            order = random.shuffled(X.shape[0], self.seed, random.STREAM_SHUFFLE)
            labels = _costs(y) if self.several_labels_ else y + 1 if classes > 2 else 2 * y - 1
            self._write(path / "train.txt", X[order], labels[order])
            self._written = X, y
        how = f"--loss_function {settings['loss']} -l {settings['rate']} --l2 {settings['l2']} -b {bits}"
        how += " -q ::" if pairs else ""
        if self.several_labels_:
            how += f" --csoaa {classes}"
        elif classes > 2:
            how += f" --oaa {classes}"
        how += f" --nn {settings['hidden']} --inpass --random_seed {self.seed}" if settings["hidden"] else ""
        repeats = f"--passes {settings['passes']} --holdout_off --cache_file {cache}"
        self._run(f"-d {path / 'train.txt'} {repeats} {how} -f {path / 'model.vw'}")

    def _decide(self, X) -> np.ndarray:
        if self.several_labels_:
            return super()._decide(X)
        path = self._folder
        self._write(path / "rows.txt", X, None)
        self._run(f"-t -i {path / 'model.vw'} -d {path / 'rows.txt'} -p {path / 'found.txt'}")
        found = np.loadtxt(path / "found.txt", ndmin=1)
        return found.astype(np.int64) - 1 if len(self.classes_) > 2 else (found > 0).astype(np.int64)

    def _outputs(self, X) -> np.ndarray:
        path = self._folder
        # Costs are told of labels that a row names.
        names = _costs(np.zeros((X.shape[0], len(self.classes_)))) if self.several_labels_ else None
        self._write(path / "rows.txt", X, names)
        self._run(f"-t -i {path / 'model.vw'} -d {path / 'rows.txt'} -r {path / 'raw.txt'}")
        with open(path / "raw.txt", encoding="ascii") as file:
            margins = [[float(word.rpartition(":")[2]) for word in line.split()] for line in file if line.strip()]
        found = np.array(margins).reshape(X.shape[0], -1)
        return -found if self.several_labels_ else found

    def _run(self, arguments: str) -> None:
        library("vowpalwabbit", self.name).Workspace(f"{arguments} --quiet").finish()

    def _write(self, path: Path, X, labels: np.ndarray | None) -> None:
        begun, begun_cpu = time.perf_counter(), time.process_time()
        ends = X.indptr.tolist()
        step = max(1, _CHUNK * X.shape[0] // (X.nnz + 1))
        with open(path, "w", encoding="ascii") as file:
            for start in range(0, X.shape[0], step):
                stop = min(X.shape[0], start + step)
                part = slice(ends[start], ends[stop])
                words = list(map("%d:%.7g".__mod__, zip(X.indices[part].tolist(), X.data[part].tolist())))
                for row in range(start, stop):
                    label = "" if labels is None else labels[row]
                    entries = words[ends[row] - part.start : ends[row + 1] - part.start]
                    file.write(f"{label} | {' '.join(entries)}\n")
        self.conversion += time.perf_counter() - begun
        self.conversion_cpu += time.process_time() - begun_cpu


class VowpalWabbitNetwork(VowpalWabbit):
    name = "VW --nn"
    defaults: ClassVar = VowpalWabbit.defaults | {"hidden": 5}

    def grid(self, X, y) -> list[dict]:
        grid = [{}, {"hidden": 2}, {"rate": 2.0}, {"hidden": 10}, {"hidden": 20, "passes": 20}]
        return [*grid, {"hidden": 2, "rate": 2.0}, {"loss": "hinge"}, {"passes": 3}]


def _bits(n_columns: int, classes: int, hidden: int) -> int:
    """Of the table of weights: enough for no two to share a place, up to a limit.

    The weights of a column, one for each class and hidden unit, take as many places as the next power of two.
    """
    outputs = ceil(log2(classes)) if classes > 2 else 0
    return min(_MOST_BITS, max(18, ceil(log2(n_columns)) + outputs + ceil(log2(hidden + 1))))


def _costs(y: np.ndarray) -> np.ndarray:
    """By row, as one text, the cost of each label: -1 for a label that it has, else 1. Labels of their own
    (`--multilabel_oaa`) have no margins that could be read.
    """
    return np.array([" ".join(f"{at}:{-1 if has else 1}" for at, has in enumerate(row, 1)) for row in y])


def _same(written: tuple, given: tuple) -> bool:
    """Rows in the same memory, with the same classes: the file that was written can be read again."""
    (X, y), (Z, z) = written, given
    return X.shape == Z.shape and np.shares_memory(X.data, Z.data) and np.array_equal(y, z)
