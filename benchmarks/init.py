"""How fast are weights drawn?

    python benchmarks/init.py [--quick]

A linear layer of 4096 x 4096 (1024 x 1024 with --quick) by each scheme of sketchnet.nn.init, beside torch's orthogonal
initialisation (a QR decomposition), which structured orthogonal weights are to replace, and beside torch's normal one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import harness
import torch

from sketchnet.nn import init

# name, function, and how many times faster than orthogonal_ it is wanted to be
OURS = [
    ("srht_, subsampled", init.srht_, 10),
    ("srht_, sparse, 50,000 examples", partial(init.srht_, form="sparse", n_examples=50_000), 10),
    ("rom_, 3 blocks", init.rom_, 10),
    ("gaussian_", init.gaussian_, None),
    ("achlioptas_", init.achlioptas_, None),
    ("li_", init.li_, None),
    ("count_sketch_", init.count_sketch_, None),
]


def cases(quick: bool) -> Iterable[dict]:
    size = 1024 if quick else 4096
    weight = torch.empty(size, size)
    orthogonal = harness.best_time(lambda: torch.nn.init.orthogonal_(weight))
    for name, fill, wanted in OURS:
        ours = harness.best_time(partial(fill, weight, seed=0))
        yield harness.row(f"{name}, {size} x {size}", ours, orthogonal, "torch orthogonal_", "s", wanted)
    normal = harness.best_time(lambda: torch.nn.init.kaiming_normal_(weight))
    ours = harness.best_time(partial(init.gaussian_, weight, seed=0))
    yield harness.row(f"gaussian_, {size} x {size}", ours, normal, "torch kaiming_normal_", "s")


if __name__ == "__main__":
    harness.main(__doc__.splitlines()[0], cases)
