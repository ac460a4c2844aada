"""How fast is data read, hashed, stored and batched, beside scikit-learn and torch?

    python benchmarks/data.py [--quick] [--json]

`urls` is measured where $SKETCHNET_DATA has it. Times are the fastest of three
runs in a row after a warm-up, for us as for the peers.
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from harness import main, peak_memory, race, row
from ngrams_case import ngram_cases
from scipy import sparse
from svmlight_case import svmlight_rows, write_url_like

from sketchnet.data import Synthetic, ingest, iterate_batches, open_shards
from sketchnet.data.sources import SvmlightSource, SyntheticSource


def cases(quick: bool):
    yield from svmlight_rows(quick)
    yield from ngram_cases(quick)
    yield from ingest_memory(quick)
    yield from epochs(quick)
    yield from synthetic(quick)


def ingest_memory(quick: bool):
    """Peak memory of `ingest` from gz does not grow with the file."""
    for megabytes in (10, 30) if quick else (75, 300):
        with tempfile.TemporaryDirectory() as folder:
            write_url_like(Path(folder) / "plain", megabytes * 10**6)
            with open(Path(folder) / "plain", "rb") as plain, gzip.open(Path(folder) / "x.svm.gz", "wb", 1) as packed:
                shutil.copyfileobj(plain, packed, 1 << 20)
            ours = peak_memory(make_ingest, folder)
        yield row(f"ingest of {megabytes} MB of svmlight from gz, peak memory", ours, 477, "limit: 500 MB", "MiB", 1)


def make_ingest(folder):
    write_url_like(Path(folder) / "small.svm", 10**5)
    ingest(SvmlightSource([Path(folder) / "small.svm"]), Path(folder) / "warm")  # compiles
    return lambda: ingest(SvmlightSource([Path(folder) / "x.svm.gz"]), Path(folder) / "out")


class ScipyRows(torch.utils.data.Dataset):
    """What people write today: batches of rows sliced from a scipy matrix in worker processes."""

    def __init__(self, X, y, batch_size):
        self.X, self.y, self.batch_size = X, y, batch_size
        self.order = np.random.default_rng(0).permutation(X.shape[0])

    def __len__(self):
        return len(self.order) // self.batch_size

    def __getitem__(self, i):
        rows = self.order[i * self.batch_size : (i + 1) * self.batch_size]
        X = self.X[rows]
        return tuple(torch.from_numpy(a) for a in (X.indptr, X.indices, X.data, self.y[rows]))


def epochs(quick: bool):
    data = Synthetic(n=100_000 if quick else 400_000, density=1e-4)
    with tempfile.TemporaryDirectory() as folder:
        ingest(SyntheticSource(data, "train"), Path(folder) / "x")
        shards = open_shards(Path(folder) / "x")

        def ours():
            for batch in iterate_batches(shards, 256):
                batch.torch()

        batch = shards[:]
        X = sparse.csr_array((batch.values, batch.indices, batch.indptr), shape=shards.shape)
        rows = ScipyRows(X, shards.labels, 256)

        def loader():
            for _ in torch.utils.data.DataLoader(rows, batch_size=None, num_workers=2):
                pass

        seconds, peer = race(ours, loader)
    rate = shards.n_entries / seconds / 1e6
    name = "torch DataLoader on scipy CSR, 2 workers"
    yield row(f"shuffled epoch, batches of 256 ({rate:.0f} million nnz/s)", seconds, peer, name, "s", 5)
    yield row("  the same", seconds, shards.n_entries / 5e6, "limit: 5 million nnz/s", "s", 1)


def synthetic(quick: bool):
    n = 125_000 if quick else 1_250_000
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        make_synthetic(folder, n)()
        seconds = time.perf_counter() - start
        shutil.rmtree(Path(folder) / "x")
        memory = peak_memory(make_synthetic, folder, n)
    yield row(f"synthetic, {n:,} rows at density 1e-5, to shards", seconds, 60, "limit", "s", 1)
    yield row("  peak memory", memory, 954, "limit: 1 GB", "MiB", 1)


def make_synthetic(folder, n):
    Synthetic(n=100).rows(slice(0, 100))  # compiles
    data = Synthetic(n=n)

    def work():
        for part in ("train", "test"):
            ingest(SyntheticSource(data, part), Path(folder) / "x" / part)

    (Path(folder) / "x").mkdir(exist_ok=True)
    return work


if __name__ == "__main__":
    start = time.perf_counter()
    main(__doc__, cases)
    print(f"{time.perf_counter() - start:.0f} s in all", file=sys.stderr)
