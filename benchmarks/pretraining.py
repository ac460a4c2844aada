"""Does pretraining help networks on fixed projections, as the dissertation says?

    python benchmarks/pretraining.py [CASE ...] [--seeds 3] [--device auto]

Cases: synthetic (full size, density 1e-5, Gaussian to 1000, 1000-3000-3000-1, with and without pretraining), and
mnist_gaussian, mnist_achlioptas, mnist_srht (784 to 400, 1000-1000, dropout; all training rows are learnt, with the
settings of benchmarks/accuracy.py). Prints the test error beside the dissertation's.
"""

from __future__ import annotations

import argparse
import json
import time

from accuracy import MNIST, digits

from reproduction.experiments.recipes.synthetic import synthetic_network
from sketchnet import SketchClassifier

PUBLISHED = {"synthetic": 21.10, "gaussian": 1.06, "achlioptas": 0.94, "srht": 1.04}
CASES = ("synthetic", "mnist_gaussian", "mnist_achlioptas", "mnist_srht")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rows", type=int, default=1_250_000, help="of synthetic data")
    asked = parser.parse_args()
    for case in asked.cases:
        run = synthetic(asked.rows) if case == "synthetic" else mnist(case.removeprefix("mnist_"))
        for seed in range(asked.seeds):
            for pretrain in (True, False):
                begun = time.perf_counter()
                found = {"case": case, "seed": seed, "pretrained": pretrain, **run(seed, pretrain, asked.device)}
                print(json.dumps({**found, "seconds": round(time.perf_counter() - begun, 1)}), flush=True)


def synthetic(n: int):
    data = {"n": n, "d": 1_000_000, "density": 1e-5, "significant": 0.2}
    network = {"scheme": "gaussian", "learn": False, "hidden": [3000, 3000]}
    network |= {"epochs": 10, "batch_size": 4096, "patience": 3}

    def run(seed: int, pretrain: bool, device: str) -> dict:
        found = synthetic_network(seed=seed, device=device, **data, **network, pretrain=pretrain)
        return {"error": round(found["error"], 2), "published": PUBLISHED["synthetic"]}

    return run


def mnist(scheme: str):
    (X, y), test = digits()

    def run(seed: int, pretrain: bool, device: str) -> dict:
        settings = {**MNIST, "scheme": scheme, "learn_projection": False, "pretrain": pretrain, "random_state": seed}
        model = SketchClassifier(device=device, **settings).fit(X, y)
        return {"error": round(100 * (1 - model.score(*test)), 2), "published": PUBLISHED[scheme]}

    return run


if __name__ == "__main__":
    main()
