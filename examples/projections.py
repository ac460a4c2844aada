"""Every projection on a small version of the dissertation's synthetic data: time, memory, and what distances become.

python examples/projections.py FOLDER      (it needs matplotlib, which the extra `bench` brings)
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table

from sketchnet import RandomProjection
from sketchnet.data import make_synthetic
from sketchnet.memory import PeakMemory, format_memory
from sketchnet.projection import SCHEMES
from sketchnet.projection.quality import distance_distortion, guaranteed_eps

N, D, DENSITY, K = 5000, 1_000_000, 1e-4, 1000


def main(folder: Path) -> None:
    console = Console()
    folder.mkdir(parents=True, exist_ok=True)
    console.print(f"Making {N:,} sparse examples with {D:,} features, {D * DENSITY:.0f} of them non-zero in each ...")
    X, _ = make_synthetic(N, D, DENSITY)
    bound = guaranteed_eps(N, K)
    table = Table(title=f"{D:,} features to {K:,} columns, from a seed alone")
    for heading in ("scheme", "seconds", "memory", "if stored", "mean distortion", "worst"):
        table.add_column(heading, justify="left" if heading == "scheme" else "right")
    distortions = {}
    for scheme in SCHEMES:
        projection = RandomProjection(scheme, n_components=K).fit(X)
        projection.transform(X[:300])  # compiles the kernels
        out = np.ones((N, K), np.float32)
        with PeakMemory() as used:
            start = time.perf_counter()
            projection.operator_.apply(X, out=out)
            seconds = time.perf_counter() - start
        distortions[scheme] = distance_distortion(X, out)
        worst, mean = np.abs(distortions[scheme]).max(), np.abs(distortions[scheme]).mean()
        table.add_row(scheme, f"{seconds:.3f}", format_memory(used.peak), stored(scheme), f"{mean:.3f}", f"{worst:.3f}")
    console.print(table)
    console.print("Memory: beyond data and result. If stored: what the matrix would take.")
    console.print(
        "Distortion: how far squared distances between examples are off, over 10,000 random pairs. The bound of "
        f"Johnson and Lindenstrauss for all {N * (N - 1) // 2:,} pairs and a Gaussian projection is {bound:.3f}."
    )
    figure = folder / "distortion.png"
    draw(distortions, bound, figure)
    console.print(f"Figure: {figure}")


def stored(scheme: str) -> str:
    """What the matrix would take if it were stored."""
    entries = {"count_sketch": 1, "li": K / np.sqrt(D)}.get(scheme)
    return format_memory(4 * D * K if entries is None else 12 * D * entries)


def draw(distortions: dict[str, np.ndarray], bound: float, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    names, values = list(distortions), list(distortions.values())
    for body in axes.violinplot(values, orientation="horizontal", showextrema=False, widths=0.85)["bodies"]:
        body.set_facecolor("#3b6fb6")
        body.set_alpha(0.75)
    for side in (-bound, bound):
        axes.axvline(side, color="#b5473c", linestyle="--", linewidth=1)
    axes.text(bound + 0.01, len(names) + 0.3, "Johnson–Lindenstrauss bound", color="#b5473c", va="bottom", fontsize=9)
    axes.axvline(0, color="black", linewidth=0.6)
    axes.set_yticks(range(1, len(names) + 1), names)
    axes.set_xlabel("relative change of squared distances between examples")
    axes.set_title(f"{D:,} features projected to {K:,} columns", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
