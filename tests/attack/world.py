"""Sound files, data sets and models, made once in the process that all attacks are forked off, which warms it up."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
from scipy import sparse

from tests.cli.command_line import good
from tests.cli.planted import FIELDS, plant

TINY = "--components 16 --hidden 8 --epochs 2 --batch-size 64".split()
PACKINGS = (".gz", ".bz2", ".xz", ".zst")
COLUMNS = 50  # of rows.svm


class World:
    """`folder` has the files. Nobody writes there once they are made: attacks copy."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.remembered: dict = {}  # what attacks compute once, by their own keys

    def make(self) -> World:
        """Make the files; numba's kernels and torch are loaded on the way, in one thread, so that forking is safe."""
        import torch

        torch.set_num_threads(1)
        plant(self.folder)
        (self.folder / "big.svm").write_text(_many_rows(12_000))
        self._write_tables()
        self._write_packed()
        self._run("ingest", "rows.svm", "set")
        self._run("ingest", "table.csv", "table-set", "--label", "answer")
        self._run("train", "rows.svm", "--out", "rows", *TINY)
        self._run("train", "table.csv", "--label", "answer", "--out", "table", *TINY)
        text = ("--text", *FIELDS, "--ngrams", "1-3", "--columns", "10000")
        self._run("train", "urls.tsv", *text, "--out", "urls", *TINY)
        codes = "--task autoencoder --epochs 1 --codes 4 --hidden 8 --no-pretrain".split()
        self._run("train", "rows.svm", "--out", "codes", *codes)
        self._warm_up()
        return self

    def _run(self, *args: str) -> None:
        good(*args, cwd=self.folder)

    def _write_tables(self) -> None:
        import pyarrow.csv
        import pyarrow.parquet

        pyarrow.set_cpu_count(1)
        pyarrow.set_io_thread_count(1)
        table = pyarrow.csv.read_csv(self.folder / "table.csv")
        pyarrow.parquet.write_table(table, self.folder / "table.parquet", row_group_size=100)

    def _write_packed(self) -> None:
        """Our own packed files, and npz files of the same rows as scipy writes them."""
        from sketchnet.data import read_svmlight, write_svmlight

        rows = read_svmlight(self.folder / "rows.svm")
        for suffix in PACKINGS:
            write_svmlight(self.folder / f"rows.svm{suffix}", rows)
        arrays = rows.values, rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
        matrix = sparse.csr_matrix(arrays, shape=(rows.n_rows, COLUMNS))
        sparse.save_npz(self.folder / "rows.npz", matrix, compressed=False)
        sparse.save_npz(self.folder / "packed.npz", matrix, compressed=True)
        sparse.save_npz(self.folder / "identity.npz", sparse.identity(COLUMNS, np.float32, "csr"), compressed=False)

    def _warm_up(self) -> None:
        """Every verb once; what that writes goes."""
        before = set(self.folder.iterdir())
        self._run("predict", "rows", "rows.svm.zst", "--output", "o.tsv")
        self._run("predict", "table", "table.parquet", "--json")
        self._run("predict", "urls", "urls.tsv", *FIELDS, "--proba")
        self._run("evaluate", "rows", "rows.svm")
        self._run("explain", "table", "table.csv")
        self._run("explain", "rows", "rows.npz")
        self._run("encode", "codes", "set", "--output", "o.npy")
        self._run("report", "rows", "--data", "rows.svm", "--out", "o.html")
        self._run("project", "identity.npz", "p.npy", "--scheme", "gaussian", "-k", "4")
        self.gaussian = np.load(self.folder / "p.npy")  # what that multiplies rows of COLUMNS columns by
        self._run("project", "big.svm", "q.npy", "-k", "4")
        self._run("synth", "s", "-n", "500", "-d", "1000", "--density", "0.01")
        for path in set(self.folder.iterdir()) - before:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _many_rows(n: int) -> str:
    """Enough for several shards where memory is short."""
    draw = random.Random(1)
    lines = (" ".join(f"{i}:{draw.randrange(1, 9)}" for i in sorted(draw.sample(range(1, 500), 16))) for _ in range(n))
    return "".join(f"{number % 2} {line}\n" for number, line in enumerate(lines))
