"""How fast does a restricted Boltzmann machine learn, beside scikit-learn and beside its matrix products alone?

    python benchmarks/rbm.py [--quick] [--json]

An epoch of CD-1 over 10,000 rows of 784 binary units (MNIST, grey levels above one half, where the data set is at hand,
else random bits) with 1000 hidden units in batches of 100, float32: the fastest of seven after a warm-up. The products
are the five that a step cannot do without: three between rows and weights, two for the gradient.
"""

from __future__ import annotations

import numpy as np
import torch
from harness import in_turn, main, row
from sklearn.neural_network import BernoulliRBM

from sketchnet.data import load_dataset
from sketchnet.errors import SketchnetError
from sketchnet.nn.products import add_product, affine
from sketchnet.pretraining import RBM, RBMConfig, RBMTrainingConfig, make_rows, train_rbm

BATCH, HIDDEN = 100, 1000
_ROUNDS = 7


def cases(quick: bool):
    torch.set_num_threads(min(torch.get_num_threads(), 2))
    X, name = images(3_000 if quick else 10_000)
    case = f"epoch of {len(X):,} rows, 784-1000, {name}"
    ours, peer, limit = map(min, in_turn(_ROUNDS, our_epoch(X, "cpu"), scikit_epoch(X), products(X, "cpu")))
    yield row(case, ours, peer, "scikit-learn BernoulliRBM", "s", 1.5)
    yield row("  the same", ours, limit, "limit: the matrix products alone", "s")
    if torch.cuda.is_available():
        seconds, limit = map(min, in_turn(_ROUNDS, our_epoch(X, "cuda"), products(X, "cuda")))
        yield row("  on a CUDA device", seconds, ours, "the processor", "s")
        yield row("  the same", seconds, limit, "limit: the matrix products alone", "s")


def images(n: int) -> tuple[np.ndarray, str]:
    try:
        dense = load_dataset("mnist").train.X[:n]
        return (dense > 0.5 * dense.max()).astype(np.float32), "MNIST"
    except (SketchnetError, OSError):
        return (np.random.default_rng(0).random((n, 784)) < 0.15).astype(np.float32), "random bits"


def our_epoch(X: np.ndarray, device: str):
    rows = make_rows(X, BATCH, device=device)

    def work() -> None:
        rbm = RBM(RBMConfig(X.shape[1], HIDDEN)).to(device)
        train_rbm(rbm, rows, RBMTrainingConfig(epochs=1, batch_size=BATCH))  # ends by waiting for the device

    return work


def scikit_epoch(X: np.ndarray):
    return lambda: BernoulliRBM(HIDDEN, batch_size=BATCH, n_iter=1, random_state=0).fit(X)


def products(X: np.ndarray, device: str):
    v, h = torch.rand(BATCH, X.shape[1], device=device), torch.rand(BATCH, HIDDEN, device=device)
    weight = torch.zeros(X.shape[1], HIDDEN, device=device)

    def work() -> None:
        for _ in range(-(-len(X) // BATCH)):
            affine(v, weight)
            affine(h, weight.t())
            affine(v, weight)
            add_product(weight, v.t(), h, beta=0.5, alpha=0.001)
            add_product(weight, v.t(), h, beta=1.0, alpha=-0.001)
        if device == "cuda":
            torch.cuda.synchronize()

    return work


if __name__ == "__main__":
    main(__doc__.splitlines()[0], cases)
