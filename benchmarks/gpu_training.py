"""How fast do networks train on a GPU, beside what its matrix units allow and beside plain PyTorch?

    python benchmarks/gpu_training.py [--quick] [--json]

Seconds for a million examples, from the second epoch of a run on: products in bfloat16, dropout, AdamW. The
physical limit counts the products' operations at the rate of a large square product on the same GPU. `finished` takes
synthetic data on disk to a network chosen by its validation error, everything included.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from harness import best_time, main, name_device, row

from sketchnet.data import CsrBatch, Synthetic, ingest, open_shards
from sketchnet.data.sources import SyntheticSource
from sketchnet.nn import NetworkConfig, SketchNetwork
from sketchnet.training import Task, TrainingConfig
from sketchnet.training.captured import CapturedSteps
from sketchnet.training.defaults import build_model
from sketchnet.training.examples import Examples, hold_back
from sketchnet.training.loop import train
from sketchnet.training.processes import Processes
from sketchnet.training.steps import evaluate

D, K, HIDDEN = 1_000_000, 1000, (3000, 3000)
THESIS_ERROR, THESIS_SECONDS = 22.19, 4000  # of the fixed Count Sketch network; of training its Gaussian one, about


def cases(quick: bool):
    name_device()
    n = 200_000 if quick else 1_000_000
    limit = products(n) / matrix_rate() * 1e6 / n
    rows, labels = sparse_rows(n), np.random.default_rng(1).integers(0, 2, n)
    fixed = {}
    for batch, wanted in ((1024, 0.40), (4096, 0.22)):
        fixed[batch] = seconds_a_million(rows, labels, batch, learn=False)
        title = f"training 1000-3000-3000-1, batches of {batch}"
        yield row(title, fixed[batch], wanted, "wanted at most", "s", 1)
        yield row("  the same", fixed[batch], limit, "physical limit: matrix products", "s")
        yield row("  the same", fixed[batch], plain_torch(n, batch), "plain PyTorch, eager, autocast", "s")
    learnt = seconds_a_million(rows, labels, 1024, learn=True)
    yield row("  1024, a learnable Count Sketch in front", learnt, 1.3 * fixed[1024], "1.3 x the fixed one", "s", 1)
    for name, learn, whole in (("fixed", False, fixed[1024]), ("learnable", True, learnt)):
        parts = seconds_a_million(rows, labels, 1024, learn, streamed=True)
        yield row(f"  1024, {name}, rows streamed to the GPU", parts, whole, "all rows on the GPU", "s")
    yield from finished(quick)


def products(n: int) -> float:
    """Operations of all matrix products for n examples: forward, and backward for weights and inputs."""
    weights = K * HIDDEN[0] + HIDDEN[0] * HIDDEN[1] + HIDDEN[1]
    return n * 2.0 * (3 * weights - K * HIDDEN[0])  # nobody asks for the gradient of the projected rows


def matrix_rate() -> float:
    a, b = torch.randn(2, 8192, 8192, device="cuda", dtype=torch.bfloat16)

    def work():
        for _ in range(10):
            a @ b
        torch.cuda.synchronize()

    return 10 * 2 * 8192.0**3 / best_time(work, 3)


def sparse_rows(n: int) -> CsrBatch:
    rng = np.random.default_rng(0)
    indices = rng.integers(0, D, 10 * n, dtype=np.int32)
    return CsrBatch(np.arange(n + 1) * 10, indices, rng.standard_normal(10 * n, np.float32), D)


def seconds_a_million(rows: CsrBatch, labels: np.ndarray, batch: int, learn: bool, streamed: bool = False) -> float:
    normalise = "batch" if learn else "standard"
    config = NetworkConfig(D, 1, hidden=HIDDEN, dropout=0.5, learn=learn, normalise=normalise)
    network = SketchNetwork(config).to(torch.device("cuda"))
    training = TrainingConfig(epochs=3, batch_size=batch, sparse_rate=0.01)
    examples, task = Examples(rows, labels), Task("binary", (0, 1))
    room, silent = 0 if streamed else float("inf"), lambda record: None
    steps = CapturedSteps(network, task, examples, training, room, silent, Processes())
    times = []
    for epoch in range(3):
        start = time.perf_counter()
        for _ in steps.epoch(epoch, 0):
            pass
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    steps.close()
    return min(times[1:]) * 1e6 / rows.n_rows


def plain_torch(n: int, batch: int) -> float:
    """What a PyTorch user writes: rows on the GPU, autocast, torch's layers, fused AdamW."""
    n = min(n, 200 * batch)
    rows, targets = torch.randn(n, K, device="cuda"), torch.randint(2, (n,), device="cuda").float()
    nn = torch.nn
    layers = [nn.Linear(K, HIDDEN[0]), nn.ReLU(), nn.Dropout(), nn.Linear(*HIDDEN), nn.ReLU(), nn.Dropout()]
    network = nn.Sequential(*layers, nn.Linear(HIDDEN[1], 1)).cuda()
    optimiser = torch.optim.AdamW(network.parameters(), fused=True)

    def work():
        order = torch.randperm(n, device="cuda")
        for start in range(0, n, batch):
            chosen = order[start : start + batch]
            with torch.autocast("cuda", torch.bfloat16):
                outputs = network(rows[chosen])
            loss = nn.functional.binary_cross_entropy_with_logits(outputs[:, 0].float(), targets[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        torch.cuda.synchronize()

    return best_time(work, 3) * 1e6 / n


def finished(quick: bool):
    n = 125_000 if quick else 1_250_000
    with tempfile.TemporaryDirectory() as folder:
        shards = Path(folder) / "shards"
        for part in ("train", "test"):
            ingest(SyntheticSource(Synthetic(n, D, 1e-5), part), shards / part, n_columns=D)
        start, task = time.perf_counter(), Task("binary", (0, 1))
        learnt, test = (open_shards(shards / part) for part in ("train", "test"))
        learnt, test = (Examples(data, task.encode(data.labels)) for data in (learnt, test))
        learnt, valid = hold_back(learnt, 0.1, 0)
        settings = {"learn": False, "epochs": 10, "batch_size": 1024, "patience": 3}
        model = build_model(task, learnt.data, settings, 0)
        model.network.to(torch.device("cuda"))
        train(model, learnt, valid)
        model.network.eval()
        error = 100 * evaluate(model.network, task, test)[0]
        seconds = time.perf_counter() - start
    best = min(record["valid_error"] for record in model.history if "valid_error" in record)
    title = f"synthetic, {n:,} rows: from shards to a fixed Count Sketch network"
    yield row(title, seconds, 30, "wanted at most", "s", 1)
    yield row("  its test error", error, THESIS_ERROR, f"the dissertation's (validation: {100 * best:.2f} %)", "%", 1)
    yield row("  the same", seconds, THESIS_SECONDS, "the dissertation's Gaussian network, about (K40)", "s")


if __name__ == "__main__":
    main(__doc__, cases)
