"""The dissertation's synthetic data, small: sketchnet's default beside what else one could do, from the command line.

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
from sklearn.svm import LinearSVC

from sketchnet.data import open_shards

ROWS, DENSITY, SIGNIFICANT = 60_000, 3e-5, 0.2
BLUE, GREY, RED = "#3b6fb6", "#8a8f98", "#b5473c"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    print(f"{ROWS:,} examples with a million features, 30 of them non-zero in each:")
    sketchnet(f"synth data -n {ROWS} --density {DENSITY} --overwrite", folder)
    train, test = (open_shards(folder / "data" / part) for part in ("train", "test"))
    rows = (train[:].scipy(), train.labels), (test[:].scipy(), test.labels)
    errors = {"linear model (LIBLINEAR)": linear_error(*rows), "threshold on a row's norm": norm_error(*rows)}
    for name, error in errors.items():
        print(f"{name}: {100 * error:.1f} % of the test examples wrong")
    print()
    sketchnet("train data/train --out model --test data/test --overwrite", folder)
    print()
    measured = sketchnet("evaluate model data/test --json", folder, quiet=True)
    errors["sketchnet, as it comes"] = json.loads(measured)["error"]
    errors["the best that anyone could do"] = least_error(*rows)
    draw(errors, folder / "errors.png")
    sketchnet("report model --data data/test --out model.html", folder)
    for name, error in errors.items():
        print(f"{name:32} {100 * error:5.1f} %")
    print(f"\nThe picture: {folder / 'errors.png'}. The page: {folder / 'model.html'}. One more example, from a pipe:")
    sketchnet("predict model - --base 0 --proba", folder, one_line(folder / "data"))
    print(f"\n{time.perf_counter() - start:.0f} s in all")


def sketchnet(command: str, folder: Path, text: str | None = None, quiet: bool = False) -> str:
    piped = "" if text is None else f"echo '{text[:50]} ...' | "
    print(f"$ {piped}sketchnet {command}", flush=True)
    line = [sys.executable, "-m", "sketchnet", *shlex.split(command)]
    pipe = subprocess.PIPE if quiet else None
    return subprocess.run(line, cwd=folder, input=text, text=True, check=True, stdout=pipe).stdout or ""


def linear_error(train, test) -> float:
    """Of the L2-loss support vector machine, whose C has the least error on a fifth of the rows."""
    rows, labels = train[0].tocsr(), train[1]
    cut = len(labels) * 4 // 5

    def wrong(C: float) -> float:
        return 1 - LinearSVC(C=C, dual=True).fit(rows[:cut], labels[:cut]).score(rows[cut:], labels[cut:])

    best = min((1e-5, 1e-4, 1e-3, 1e-2, 1e-1), key=wrong)
    return 1 - LinearSVC(C=best, dual=True).fit(rows, labels).score(*test)


def norm_error(train, test) -> float:
    """Of the best single threshold on the squared norm: rows of one class have larger values."""
    norms, others = (np.asarray(part[0].multiply(part[0]).sum(axis=1)).ravel() for part in (train, test))
    order = np.argsort(norms)
    labels = train[1][order] == 1
    wrong = np.cumsum(labels) + np.sum(~labels) - np.cumsum(~labels)  # with the threshold after each of the rows
    return float(np.mean((others > norms[order[np.argmin(wrong)]]) != test[1]))


def least_error(train, test) -> float:
    """Of who knows by which law the rows were made, and learns from them only which features are significant."""

    def surplus(values):  # log density of N(3, 2) over that of N(0, 1)
        return -np.log(2) / 2 - (values - 3) ** 2 / 4 + values**2 / 2

    rows = train[0].tocsr()
    of_one = np.repeat(train[1] == 1, np.diff(rows.indptr))
    evidence = np.bincount(rows.indices[of_one], surplus(rows.data[of_one]), minlength=rows.shape[1])
    sure = 1 / (1 + np.exp(-(evidence + np.log(SIGNIFICANT / (1 - SIGNIFICANT)))))
    rows = test[0].tocsr()
    terms = np.log1p(sure[rows.indices] * np.expm1(surplus(rows.data)))
    scores = np.bincount(np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), terms, minlength=rows.shape[0])
    return float(np.mean((scores > 0) != test[1]))


def one_line(folder: Path) -> str:
    row = open_shards(folder / "test")[:1]
    return "0 " + " ".join(f"{column}:{value:.4g}" for column, value in zip(row.indices, row.values)) + "\n"


def draw(errors: dict[str, float], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(8, 2.8), layout="constrained")
    names, sizes = list(errors), [100 * error for error in errors.values()]
    colours = [BLUE if name.startswith("sketchnet") else RED if "linear" in name else GREY for name in names]
    bars = axes.barh(names, sizes, color=colours, height=0.6)
    axes.bar_label(bars, [f"{size:.1f} %" for size in sizes], padding=4)
    axes.invert_yaxis()
    axes.set(xlabel="test examples wrong, %", xlim=(0, max(sizes) * 1.12))
    axes.set_title(f"{ROWS:,} examples, a million features, 30 in each", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
