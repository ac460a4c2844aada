"""How fast do networks train and predict, and in how much memory, beside torch and the limits we set ourselves?

    python benchmarks/training.py [--quick] [--json]

Times are the fastest of several runs in a row after a warm-up, for us as for the peers; a run of training steps goes
once over 20 batches, so that columns come back after other columns were used. A prediction is the median of many. Rows
are as of the `url` data set: 115 non-zeros, here in uniformly drawn columns, which is the hardest case for caches.
Torch's peers have 64 outputs, because a table of 3.2 million columns for 1000 would not fit in memory.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from harness import best_time, main, peak_memory, row
from scipy import sparse

from sketchnet.data import CsrBatch, Synthetic, ingest, open_shards
from sketchnet.memory import anonymous_memory
from sketchnet.nn import LearnableProjection, NetworkConfig, SketchNetwork
from sketchnet.training import Model, Task, TrainingConfig
from sketchnet.training.defaults import build_model
from sketchnet.training.examples import Examples, hold_back
from sketchnet.training.loop import train
from sketchnet.training.optimisers import MomentumSGD

N_COLUMNS, NON_ZEROS, BATCH, BATCHES, K, PEER_K = 3_200_000, 115, 256, 20, 1000, 64


def cases(quick: bool):
    yield from layer_steps(quick)
    yield from projection_share(quick)
    yield from one_row(quick)
    yield from training_memory(quick)


def url_like(n: int, d: int = N_COLUMNS, seed: int = 0) -> CsrBatch:
    """Rows of 115 ascending ids, with labels of which a third is 1."""
    rng = np.random.default_rng(seed)
    indices = np.sort(rng.integers(0, d, (n, NON_ZEROS), dtype=np.int32), axis=1).ravel()
    values, labels = rng.random(len(indices), np.float32), (rng.random(n) < 0.33).astype(np.int64)
    return CsrBatch(np.arange(n + 1) * NON_ZEROS, indices, values, d, labels)


# -- a training step of the learnable layer


def layer_steps(quick: bool):
    runs, peer_runs, few = (5, 1, 5) if quick else (10, 3, BATCHES)
    ours, large = our_steps(N_COLUMNS), our_steps(100_000_000)
    seconds, large_seconds = best_time(ours, runs) / BATCHES, best_time(large, runs) / BATCHES
    del ours, large  # tables of a gigabyte
    peer = best_time(torch_csr_steps(few), peer_runs) / few
    name = "torch CSR @ W, 64 outputs, SGD with momentum"
    yield row("step of a learnable Count Sketch, d = 3,200,000", 1e3 * seconds, 1e3 * peer, name, "ms", 150)
    gc.collect()
    peer = best_time(embedding_steps(BATCHES), runs) / BATCHES
    name = "torch EmbeddingBag, 64 outputs, SGD, no momentum"
    yield row("  the same", 1e3 * seconds, 1e3 * peer, name, "ms", 4)
    yield row("  at d = 100,000,000", 1e3 * large_seconds, 1.6e3 * seconds, "limit: 1.6 x the above", "ms", 1)


def our_steps(d: int) -> Callable[[], None]:
    """Forward, backward and update of the layer alone; momentum is exact for columns that wait."""
    layer = LearnableProjection(d, K)
    optimiser = MomentumSGD(layer, TrainingConfig(rate=0.01, momentum=(0.9, 0.9)))  # a layer is a network too
    optimiser.schedule(0, 0.0)
    return steps(layer, optimiser, [(url_like(BATCH, d, seed),) for seed in range(BATCHES)], K)


def torch_csr_steps(n_batches: int) -> Callable[[], None]:
    """What torch offers for sparse rows and momentum: a dense gradient for all columns."""
    table, batches = torch.zeros(N_COLUMNS, PEER_K, requires_grad=True), []
    for seed in range(n_batches):
        arrays = url_like(BATCH, seed=seed).torch()
        with warnings.catch_warnings(action="ignore"):  # CSR tensors are in beta state
            rows = torch.sparse_csr_tensor(
                arrays["indptr"], arrays["indices"].long(), arrays["values"], (BATCH, N_COLUMNS), check_invariants=False
            )
        batches.append((rows,))
    return steps(lambda rows: rows @ table, torch.optim.SGD([table], lr=0.01, momentum=0.9), batches, PEER_K)


def embedding_steps(n_batches: int) -> Callable[[], None]:
    """What people use instead: rows of a table summed, gradients for the batch's columns alone, and no momentum."""
    bag, batches = torch.nn.EmbeddingBag(N_COLUMNS, PEER_K, mode="sum", sparse=True), []
    for seed in range(n_batches):
        arrays = url_like(BATCH, seed=seed).torch()
        batches.append((arrays["indices"].long(), arrays["indptr"][:-1], arrays["values"]))
    return steps(
        lambda indices, offsets, values: bag(indices, offsets, per_sample_weights=values),
        torch.optim.SGD(bag.parameters(), lr=0.01), batches, PEER_K,
    )  # fmt: skip


def steps(layer, optimiser, batches: list[tuple], k: int) -> Callable[[], None]:
    """One training step for each batch, from a gradient of the outputs that is given."""
    gradient = torch.randn(BATCH, k, generator=torch.Generator().manual_seed(0)) / BATCH

    def work():
        for batch in batches:
            out = layer(*batch)
            optimiser.zero_grad()
            out.backward(gradient)
            optimiser.step()

    return work


# -- a fixed sketch beside the network behind it


def projection_share(quick: bool):
    """Projecting and normalising, as the training loop reports it, against the epoch that follows."""
    n = 20_000 if quick else 100_000
    rows = Synthetic(n, 1_000_000, 1e-5).rows(slice(0, n))
    projections, epochs = [], []
    for run in range(2 if quick else 4):  # the first is the warm-up
        config = NetworkConfig(1_000_000, 1, learn=False, normalise="standard", hidden=(1000, 1000))
        model = Model(SketchNetwork(config), Task("binary", (0, 1)), TrainingConfig(epochs=1, batch_size=BATCH))
        begun = time.perf_counter()
        train(model, Examples(rows, rows.labels), None)
        seconds = time.perf_counter() - begun
        projection = sum(r["seconds"] for r in model.history if r.get("stage") in ("reduce", "normalise"))
        if run:
            projections.append(projection)
            epochs.append(seconds - projection)
    case = f"fixed Count Sketch and moments of {n:,} rows, d = 10^6"
    yield row(case, min(projections), 0.05 * min(epochs), "limit: 5 % of an epoch, 1000-1000-1000-1", "s", 1)


# -- one row


def one_row(quick: bool):
    network = NetworkConfig(N_COLUMNS, 1, hidden=(1000, 1000))
    model = Model(SketchNetwork(network), Task("binary", (0, 1)), TrainingConfig())
    rows = url_like(500 if quick else 2000)
    singles = [rows.rows(slice(i, i + 1)) for i in range(rows.n_rows)]
    ours = median_time(model.outputs, singles)
    yield row("outputs for one row, d = 3,200,000, 1000-1000-1000-1", 1e3 * ours, 1, "limit", "ms", 1)
    try:
        from sketchnet import SketchClassifier
    except ImportError:
        return
    X = rows.scipy()
    classifier = SketchClassifier(epochs=1, hidden=(1000, 1000)).fit(X[:100], rows.labels[:100])
    ours = median_time(classifier.predict, [sparse.csr_matrix(X[[i]]) for i in range(rows.n_rows)])
    yield row("  predicted by SketchClassifier", 1e3 * ours, 1, "limit", "ms", 1)


def median_time(work: Callable[[object], object], inputs: list) -> float:
    """Seconds of the median call, after a tenth of the calls as a warm-up."""
    times = []
    for argument in inputs[: len(inputs) // 10] + inputs:
        start = time.perf_counter()
        work(argument)
        times.append(time.perf_counter() - start)
    return float(np.median(times[len(inputs) // 10 :]))


# -- memory


class UrlLike:
    """A source of url-like rows for `ingest`."""

    def __init__(self, n_rows: int, rows_per_chunk: int = 1 << 14):
        self._n_rows, self._rows_per_chunk = n_rows, rows_per_chunk

    def job(self) -> dict:
        return {"url_like": self._n_rows, "rows_per_chunk": self._rows_per_chunk}

    def chunks(self, state: dict | None) -> Iterator[tuple[CsrBatch, dict]]:
        for start in range(state["row"] if state else 0, self._n_rows, self._rows_per_chunk):
            stop = min(start + self._rows_per_chunk, self._n_rows)
            yield url_like(stop - start, seed=start), {"row": stop}

    def description(self, state: dict | None) -> dict:
        return {"classes": ["0", "1"]}

    def done(self, state: dict) -> float:
        return state["row"] / self._n_rows

    def where(self, state: dict) -> str:
        return ""


def training_memory(quick: bool):
    """Peak memory of training from shards, what importing the library takes included."""
    n_bytes = 200 * 10**6 if quick else 5 * 10**9
    with tempfile.TemporaryDirectory() as folder:
        shards = Path(folder) / "shards"
        ingest(UrlLike(n_bytes // (8 * NON_ZEROS + 16)), shards, n_columns=N_COLUMNS)
        gigabytes = sum(path.stat().st_size for path in shards.rglob("*.npy")) / 1e9
        ours = peak_memory(make_training, folder) + float((Path(folder) / "start").read_text())
    yield row(f"training on {gigabytes:.1f} GB of shards, peak memory", ours, 1907, "limit: 2 GB", "MiB", 1)


def make_training(folder):
    """What `sketchnet train SHARDS --epochs 1 --hidden 64 --batch-size 2048 --out MODEL` does."""

    def work(data: str = "shards"):
        shards = open_shards(Path(folder) / data)
        task = Task.of_labels(shards.labels)
        examples, valid = hold_back(Examples(shards, task.encode(shards.labels)), 0.1, 0)
        settings = {"hidden": (64,), "epochs": 1, "batch_size": 2048}
        model = build_model(task, examples.data, settings, 0)
        train(model, examples, valid, folder=Path(folder) / f"{data}-model")

    ingest(UrlLike(1000), Path(folder) / "few", n_columns=N_COLUMNS)
    work("few")  # compiles
    gc.collect()
    (Path(folder) / "start").write_text(str(anonymous_memory() / 2**20))
    return work


if __name__ == "__main__":
    start = time.perf_counter()
    main(__doc__, cases)
    print(f"{time.perf_counter() - start:.0f} s in all", file=sys.stderr)
