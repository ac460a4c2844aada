"""Do weights drawn from random projections make residual networks better than He's? CIFAR-10, stochastic depth.

    python benchmarks/initialisation.py --out results.jsonl [--seeds 10] [--schemes he,srht,...]
    python benchmarks/initialisation.py --time 1,10,20    # seconds an epoch, for so many networks at once

Each finished run is a line of the file, in the form that `python -m reproduction` reads (tab:rp_init_cifar); a further
call does what is missing in it and prints the table, with --markdown for a document. Seeds come outermost, so that a
run cut off leaves whole seeds. The number that schemes are ranked by is the mean test error of the last five epochs.
All 50,000 training images are learnt.

A scheme is a name that sketchnet.nn.init.apply_ knows, with options as in count_sketch:gamma=0.3. Orthogonal weights
get He's deviation too (gain sqrt(2)), and srht_sparse the density for so many training images.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # queues of a GPU; by default streams share eight

import numpy as np
import torch

from reproduction.experiments.experiment import Cell
from reproduction.experiments.recipes.initialisation import LAST, image_config, image_result, images_of
from reproduction.experiments.results import Results
from reproduction.experiments.runner import circumstances
from reproduction.images.training import train_together
from reproduction.ranks import compare, verdict
from sketchnet.errors import InputError, SketchnetError
from sketchnet.storage import workspace

SCHEMES = "he,srht_sparse,srht,orthogonal,achlioptas,li,count_sketch:gamma=0.1,count_sketch:gamma=0.3,rom"
REFERENCE = "he"
LEVEL = 0.05
_TIMED = 2  # epochs, after one that is not


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemes", default=SCHEMES)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--depth", type=int, default=20)
    parser.add_argument("--width", type=int, default=16, help="channels of the first stage")
    parser.add_argument("--survival", type=float, default=0.5, help="of the last block; 1: no stochastic depth")
    parser.add_argument("--data", default="cifar10", choices=("cifar10", "generated"))
    parser.add_argument("--rows", type=int, default=50_000, help="only the first N training images, and N test images")
    parser.add_argument("--together", type=int, default=1, help="networks trained in turn on one GPU")
    parser.add_argument("--torch-norm", action="store_true", help="torch's batch normalisation, not our kernels")
    parser.add_argument("--seconds", type=float, help="begin no run that may not end within this time")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--time", metavar="N,...", help="measure the time of an epoch for so many networks at once")
    parser.add_argument("--out", type=Path, default=Path("results.jsonl"))
    parser.add_argument("--scale", default="full", help="under which the file has the runs")
    parser.add_argument("--markdown", action="store_true", help="print the table for a document")
    asked = parser.parse_args()
    try:
        if asked.time:
            measure_time(asked)
            return
        cells = {label: cell_of(label, asked) for label in asked.schemes.split(",")}
        with workspace(asked.out):
            results = Results(asked.out)
            run_missing(cells, results, asked)
        found = {label: [] for label in cells}
        for label, cell in cells.items():
            for seed in range(asked.seeds):
                record = results.get(asked.scale, cell, seed)
                if record is not None and "errors" in record["found"]:
                    found[label].append(record["found"]["errors"])
        show({label: np.array(errors) for label, errors in found.items() if errors}, asked)
    except SketchnetError as error:
        sys.exit(f"initialisation.py: {error}")


# -- runs


def cell_of(label: str, asked) -> Cell:
    """What `experiments/tab_rp_init_cifar.py` asks for, if all sizes are those by default."""
    scheme, *given = label.split(":")
    options = {}
    for option in given:
        key, equals, value = option.partition("=")
        if not equals:
            raise InputError(f"{label} is no scheme; options are written as in count_sketch:gamma=0.3")
        try:
            options[key] = json.loads(value)
        except json.JSONDecodeError:
            options[key] = value
    settings = {"scheme": scheme, "options": options, "survival": asked.survival, "data": asked.data}
    settings |= {name: getattr(asked, name) for name in ("rows", "depth", "width", "epochs")}
    return Cell("image_network", settings)


def config_of(cell: Cell, seed: int, n_train: int):
    how = dict(cell.settings)
    del how["data"], how["rows"]
    return image_config(how.pop("scheme"), how.pop("options"), seed, n_train, **how)


def run_missing(cells: dict[str, Cell], results: Results, asked) -> None:
    wanted = [(label, seed) for seed in range(asked.seeds) for label in cells]
    missing = [key for key in wanted if results.get(asked.scale, cells[key[0]], key[1]) is None]
    if not missing:
        return
    train, test = images_of(asked.data, asked.rows)
    begun, longest = time.perf_counter(), 0.0
    for first in range(0, len(missing), asked.together):
        keys, start = missing[first : first + asked.together], time.perf_counter()
        if asked.seconds is not None and start - begun + longest > asked.seconds:
            print(f"out of time: {len(missing) - first} of {len(wanted)} runs are missing", file=sys.stderr)
            return
        configs = [config_of(cells[label], seed, len(train.labels)) for label, seed in keys]
        errors = train_together(configs, train, test, asked.device, fused=not asked.torch_norm)
        seconds = time.perf_counter() - start
        longest = max(longest, seconds)
        for (label, seed), of_run in zip(keys, errors):
            how = {**circumstances(asked.device, seconds), "together": len(keys)}
            # A run's own time is its share: the others went on meanwhile.
            results.add(asked.scale, cells[label], seed, image_result(of_run, seconds / len(keys)), how)
            share = f"{first + len(keys)}/{len(missing)}"
            print(f"{share}  {label} seed {seed}: {100 * of_run[-1]:.2f} %, {seconds:.1f} s", file=sys.stderr)


def measure_time(asked) -> None:
    """What an epoch takes, test images included, once the steps are captured."""
    train, test = images_of(asked.data, asked.rows)
    asked.epochs = 1 + _TIMED
    cell = cell_of(REFERENCE, asked)
    for n in (int(n) for n in asked.time.split(",")):
        ends, start = [], time.perf_counter()

        def note(record: dict, n=n, ends=ends) -> None:
            ends.append(time.perf_counter())

        configs = [config_of(cell, seed, len(train.labels)) for seed in range(n)]
        train_together(configs, train, test, asked.device, report=note, fused=not asked.torch_norm)
        epoch = (ends[-1] - ends[n - 1]) / _TIMED  # a record for each network and epoch
        memory = f", {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB" if torch.cuda.is_available() else ""
        begin = ends[n - 1] - start - epoch
        print(f"{n} at once: {epoch / n:.3f} s an epoch and network, {begin:.1f} s to begin{memory}", flush=True)


# -- what came out


def show(results: dict[str, np.ndarray], asked) -> None:
    """The table, and a sentence for each scheme."""
    last = {label: errors[:, -LAST:].mean(axis=1).round(9) for label, errors in results.items()}
    ranked = f"the last {min(LAST, asked.epochs)} of {asked.epochs} epochs"
    print(f"Mean test error (%) of {ranked}, depth {asked.depth}\n")
    compared = {}
    rows = [("scheme", "seeds", "median", "quartiles", "U", "p", "effect")]
    for label, errors in last.items():
        low, high = np.quantile(errors, [0.25, 0.75])
        row = [label, str(len(errors)), f"{np.median(errors):.2f}", f"{low:.2f} - {high:.2f}", "", "", ""]
        if label != REFERENCE and REFERENCE in last:
            c = compared[label] = compare(errors, last[REFERENCE])
            row[4:] = f"{c.u:g}", f"{c.p:.2g}", f"{c.effect:.2f}"
        rows.append(tuple(row))
    print_table(rows, asked.markdown)
    print(
        f"\np: one-sided, for errors smaller than those of {REFERENCE}; effect: the share of pairs in which they are."
    )
    for label, c in compared.items():
        print(f"{'- ' * asked.markdown}{label}: {verdict(c, LEVEL)}")
    if len(compared) > 1:
        strict = LEVEL / len(compared)
        names = ", ".join(label for label, c in compared.items() if c.p < strict) or "none"
        print(f"\nBetter at Bonferroni's level for {len(compared)} tests, {strict:.2g}: {names}.")


def print_table(rows: list[tuple[str, ...]], markdown: bool) -> None:
    if markdown:
        lines = [f"| {' | '.join(row)} |" for row in rows]
        print("\n".join([lines[0], f"|{'---|' * len(rows[0])}", *lines[1:]]))
        return
    for row in rows:
        print(f"{row[0]:<26}{row[1]:>6}{row[2]:>9}{row[3]:>16}{row[4]:>8}{row[5]:>10}{row[6]:>8}")


if __name__ == "__main__":
    main()
