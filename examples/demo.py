"""The dissertation's synthetic data, small: a linear model's error, then a network's, from the command line alone.

python examples/demo.py FOLDER      (`make demo` runs it)
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC

from sketchnet.data import open_shards

ROWS, DENSITY = 60_000, 3e-5


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    print(f"{ROWS:,} examples with a million features, 30 of them non-zero in each:")
    sketchnet(f"synth data -n {ROWS} --density {DENSITY} --overwrite", folder)
    plain, linear = (linear_error(folder / "data", bias) for bias in (False, True))
    print(f"\nLIBLINEAR: {100 * plain:.1f} % of the test examples wrong, {100 * linear:.1f} % with a bias term\n")
    network = "train data/train --out model --test data/test --fixed --hidden 500,500 --epochs 10 --overwrite"
    sketchnet(network, folder)
    print()
    sketchnet("evaluate model data/test", folder)
    draw(folder, linear)
    print(f"\nThe curve: {folder / 'learning.png'}. The model: {folder / 'model'}. One more example, from a pipe:")
    sketchnet("predict model - --base 0 --proba", folder, one_line(folder / "data"))
    print(f"\n{time.perf_counter() - start:.0f} s in all")


def sketchnet(command: str, folder: Path, text: str | None = None) -> None:
    piped = "" if text is None else f"echo '{text[:50]} ...' | "
    print(f"$ {piped}sketchnet {command}", flush=True)
    line = [sys.executable, "-m", "sketchnet", *shlex.split(command)]
    subprocess.run(line, cwd=folder, input=text, text=True, check=True)


def linear_error(folder: Path, bias: bool) -> float:
    """Of the L2-loss support vector machine on max-abs scaled columns; LIBLINEAR's default is without a bias term."""
    train, test = open_shards(folder / "train"), open_shards(folder / "test")
    scaler = MaxAbsScaler()
    model = LinearSVC(C=0.1, fit_intercept=bias).fit(scaler.fit_transform(train[:].scipy()), train.labels)
    return float(np.mean(model.predict(scaler.transform(test[:].scipy())) != test.labels))


def one_line(folder: Path) -> str:
    row = open_shards(folder / "test")[:1]
    return "0 " + " ".join(f"{column}:{value:.4g}" for column, value in zip(row.indices, row.values)) + "\n"


def draw(folder: Path, linear: float) -> None:
    records = [json.loads(line) for line in (folder / "model" / "history.jsonl").read_text().splitlines()]
    epochs = [record for record in records if "epoch" in record]
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    axes.axhline(100 * linear, color="#b5473c", linestyle="--", linewidth=1.5)
    axes.text(1, 100 * linear + 0.7, "linear model (LIBLINEAR with a bias), test", color="#b5473c", fontsize=10)
    axes.plot(
        [record["epoch"] for record in epochs],
        [100 * record["valid_error"] for record in epochs],
        color="#3b6fb6",
        marker="o",
        linewidth=2,
    )
    axes.text(
        epochs[-1]["epoch"], 100 * epochs[-1]["valid_error"] + 1.2, "network, validation", color="#3b6fb6", ha="right"
    )
    axes.set(xlabel="epoch", ylabel="examples wrong, %", ylim=(0, 100 * linear + 6))
    axes.set_title("A million features: Count Sketch to 1000 columns, then two hidden layers", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "learning.png", dpi=150)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
