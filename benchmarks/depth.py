"""What becomes of the variance of activations with depth?

    python benchmarks/depth.py [--figure docs/images/depth.png] [--layers 110] [--width 512] [--seeds 5]

A plain network of linear layers and rectifiers, without shortcuts or batch normalisation, which would hide it. For each
scheme, the variance of each layer's outputs over that of the first layer's, medians over the seeds. A factor of 1.1 a
layer would make it 33,000 in the end, 0.9 would make it 0.00001. He's deviation keeps the mean of the squares over all
draws; the median of a product of so many random factors lies below its mean, the more the narrower the layers are:
about exp(-2.5 * layers / width) for normal weights, 0.58 here. --convolutions takes 3 x 3 ones instead, on images of
8 x 8 that go round at the border; 64 channels are as narrow as layers of 64.
"""

from __future__ import annotations

import argparse
from math import sqrt
from pathlib import Path

import numpy as np
import torch
from torch import nn

from sketchnet.data.compression import atomic_writing
from sketchnet.nn import init
from sketchnet.nn.diagnostics import isometry

# Those whose weights get He's deviation. Count Sketch's deviation is its gamma's, so it is no scheme for such networks.
SCHEMES: dict[str, dict] = {
    "he": {},
    "gaussian": {},
    "achlioptas": {},
    "li": {},
    "srht": {},
    "srht_sparse": {"n_examples": 50_000},
    "rom": {},
    "orthogonal": {"gain": sqrt(2)},
}


def plain_network(layers: int, width: int, convolutions: bool) -> nn.Sequential:
    parts = []
    for _ in range(layers):
        if convolutions:
            parts.append(nn.Conv2d(width, width, 3, padding=1, padding_mode="circular", bias=False))
        else:
            parts.append(nn.Linear(width, width, bias=False))
        parts.append(nn.ReLU())
    return nn.Sequential(*parts)


def variances(scheme: str, layers: int, width: int, seed: int, convolutions: bool) -> np.ndarray:
    """Of the outputs of each layer, over the first one's."""
    net = plain_network(layers, width, convolutions)
    init.apply_(net, scheme, seed=seed, **SCHEMES[scheme])
    shape = (8, width, 8, 8) if convolutions else (64, width)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    found = np.array([layer.variance for layer in isometry(net, x)])
    return found / found[0]


def draw(found: dict[str, np.ndarray], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for number, (scheme, by_layer) in enumerate(found.items()):
        line = "-" if number % 2 == 0 else "--"
        axes.plot(np.arange(1, len(by_layer) + 1), by_layer, line, label=scheme)
    axes.axhline(1, color="black", linewidth=0.8, linestyle=":")
    axes.set(yscale="log", ylim=(0.01, 100), xlabel="layer", ylabel="variance, first layer = 1")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, ncols=4, loc="upper center", fontsize="small")
    with atomic_writing(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--layers", type=int, default=110)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--convolutions", action="store_true")
    asked = parser.parse_args()
    found = {}
    print(f"{'scheme':<14}{'least':>10}{'most':>10}{'last layer':>12}   (medians over {asked.seeds} seeds)")
    for scheme in SCHEMES:
        runs = [variances(scheme, asked.layers, asked.width, seed, asked.convolutions) for seed in range(asked.seeds)]
        found[scheme] = by_layer = np.median(runs, axis=0)
        print(f"{scheme:<14}{by_layer.min():>10.3g}{by_layer.max():>10.3g}{by_layer[-1]:>12.3g}", flush=True)
    if asked.figure:
        draw(found, asked.figure)


if __name__ == "__main__":
    main()
