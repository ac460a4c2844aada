"""Do weights drawn from random projections make residual networks better than He's? CIFAR-10, stochastic depth.

    python benchmarks/initialisation.py --out runs.jsonl [--seeds 10] [--schemes he,srht,...] [--figure F.png]
    python benchmarks/initialisation.py --prepare cifar10.npz    # for --images, on a machine without the data set

Each finished run is a line of the file; a further call does what is missing in it and prints the table. Seeds come
outermost, so that a run cut off leaves whole seeds. The number that schemes are ranked by is the mean test error of the
last epochs. The rank-sum test asks for independent runs, so no two schemes share an order of images or gates: the
numbers of a run depend on its seed and its scheme. All 50,000 training images are learnt.

A scheme is a name that sketchnet.nn.init.apply_ knows, with options as in count_sketch:gamma=0.3. Orthogonal weights
get He's deviation too (gain sqrt(2)), and srht_sparse the density for so many training images.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import zlib
from dataclasses import asdict
from math import sqrt
from pathlib import Path

import numpy as np
import torch

import sketchnet
from sketchnet.data.compression import atomic_writing
from sketchnet.data.datasets import list_datasets, load_dataset
from sketchnet.data.datasets.files import members, read_bytes
from sketchnet.errors import InputError, SketchnetError
from sketchnet.evaluation.ranks import compare, verdict
from sketchnet.report.initialisation_figure import draw_initialisation
from sketchnet.training.images import ImageConfig, Images, train_together

SCHEMES = "he,srht,srht_sparse,orthogonal,achlioptas,li,count_sketch:gamma=0.1,count_sketch:gamma=0.3,rom"
REFERENCE = "he"
LEVEL = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemes", default=SCHEMES)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--depth", type=int, default=20)
    parser.add_argument("--width", type=int, default=16, help="channels of the first stage")
    parser.add_argument("--rows", type=int, help="only the first N training images, and N test images")
    parser.add_argument("--last", type=int, default=5, help="epochs whose mean error is ranked")
    parser.add_argument("--together", type=int, default=1, help="networks trained in turn on one card")
    parser.add_argument("--seconds", type=float, help="begin no run that may not end within this time")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--images", type=Path, help="a file that --prepare wrote")
    parser.add_argument("--prepare", type=Path, metavar="FILE", help="write the images into one .npz file, and end")
    parser.add_argument("--out", type=Path, default=Path("runs.jsonl"))
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args()
    try:
        train, test = from_npz(asked.images) if asked.images else cifar10()
        if asked.prepare:
            prepare(asked.prepare, train, test)
            return
        train, test = (Images(*(x[: asked.rows] for x in images)) for images in (train, test))
        wanted = {
            (label, seed): config_of(label, seed, asked, len(train.labels))
            for seed in range(asked.seeds)
            for label in asked.schemes.split(",")
        }
        run_missing(wanted, train, test, asked)
        results = {label: [] for label, _ in wanted}
        for key, errors in finished(asked.out, wanted, len(train.labels)).items():
            results[key[0]].append(errors)
        show({label: np.array(errors) for label, errors in results.items() if errors}, asked)
    except SketchnetError as error:
        sys.exit(f"initialisation.py: {error}")


# -- images


def cifar10() -> tuple[Images, Images]:
    """As bytes: `load_dataset` has them normalised, and a part of them held back."""
    info = next(info for info in list_datasets() if info.name == "cifar10")
    if not info.present:
        load_dataset("cifar10")  # from its publisher
        info = next(info for info in list_datasets() if info.name == "cifar10")
    names = [f"data_batch_{batch}.bin" for batch in range(1, 6)]
    archive = info.path / "cifar-10-binary.tar.gz"
    if archive.exists():
        found = {parts[-1]: data for parts, data in members(archive, lambda parts: parts[-1].endswith(".bin"))}
    else:
        found = {name: read_bytes(info.path / name) for name in (*names, "test_batch.bin")}
    return _records([found[name] for name in names]), _records([found["test_batch.bin"]])


def _records(files: list[bytes]) -> Images:
    """A byte of the label, then 3 x 32 x 32 pixels."""
    records = np.concatenate([np.frombuffer(data, np.uint8).reshape(-1, 3073) for data in files])
    return Images(records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].astype(np.int64))


def prepare(path: Path, train: Images, test: Images) -> None:
    parts = {"train": train, "test": test}
    arrays = {f"{name}_{field}": getattr(part, field) for name, part in parts.items() for field in Images._fields}
    with atomic_writing(path) as file:
        np.savez_compressed(file, **arrays)


def from_npz(path: Path) -> tuple[Images, Images]:
    try:
        with np.load(path) as file:
            return tuple(Images(*(file[f"{name}_{field}"] for field in Images._fields)) for name in ("train", "test"))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} is no file that --prepare wrote: {error}") from None


# -- runs


def config_of(label: str, seed: int, asked, n_train: int) -> ImageConfig:
    name, *given = label.split(":")
    options = {"srht_sparse": {"n_examples": n_train}, "orthogonal": {"gain": sqrt(2)}}.get(name, {})
    for option in given:
        key, equals, value = option.partition("=")
        if not equals:
            raise InputError(f"{label} is no scheme; options are written as in count_sketch:gamma=0.3")
        try:
            options = {**options, key: json.loads(value)}
        except json.JSONDecodeError:
            options = {**options, key: value}
    numbers = zlib.crc32(f"{label} {seed}".encode())
    sizes = {"depth": asked.depth, "width": asked.width, "epochs": asked.epochs}
    return ImageConfig(**sizes, scheme=name, options=options, seed=numbers)


def run_missing(wanted: dict, train: Images, test: Images, asked) -> None:
    done = finished(asked.out, wanted, len(train.labels))
    missing = [key for key in wanted if key not in done]
    begun, longest = time.perf_counter(), 0.0
    for first in range(0, len(missing), asked.together):
        keys, start = missing[first : first + asked.together], time.perf_counter()
        if asked.seconds is not None and start - begun + longest > asked.seconds:
            print(f"out of time: {len(missing) - first} of {len(wanted)} runs are missing", file=sys.stderr)
            return
        errors = train_together([wanted[key] for key in keys], train, test, asked.device)
        seconds = time.perf_counter() - start
        longest = max(longest, seconds)
        for key, of_run in zip(keys, errors):
            record = identity(key, wanted[key], len(train.labels))
            append(asked.out, {**record, "errors": of_run, **circumstances(seconds, len(keys), asked.device)})
            share = f"{first + len(keys)}/{len(missing)}"
            print(f"{share}  {key[0]} seed {key[1]}: {100 * of_run[-1]:.2f} %, {seconds:.1f} s", file=sys.stderr)


def identity(key: tuple[str, int], config: ImageConfig, n_train: int) -> dict:
    """What a run is known by when the file is read again."""
    settings = json.loads(json.dumps(asdict(config)))  # as it will be read: lists for tuples
    return {"scheme": key[0], "seed": key[1], "n_train": n_train, "config": settings}


def circumstances(seconds: float, together: int, device: str) -> dict:
    machine = torch.cuda.get_device_name(device) if device.startswith("cuda") else "cpu"
    versions = {"sketchnet": sketchnet.__version__, "torch": torch.__version__, "python": sys.version.split()[0]}
    return {"seconds": round(seconds, 2), "together": together, "device": machine, "versions": versions}


def append(path: Path, record: dict) -> None:
    """A whole line, on the disk. A line that was cut off before keeps its place, and is skipped."""
    with open(path, "a+b") as file:
        file.seek(0, os.SEEK_END)
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(json.dumps(record).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def finished(path: Path, wanted: dict, n_train: int) -> dict[tuple[str, int], list[float]]:
    """Errors by epoch of the wanted runs that the file has; those with other settings do not count."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        key = record.get("scheme"), record.get("seed")
        known = identity(key, wanted[key], n_train) if key in wanted else None
        if known is not None and {name: record.get(name) for name in known} == known:
            found[key] = record["errors"]
    return found


# -- what came out


def show(results: dict[str, np.ndarray], asked) -> None:
    """The table, a sentence for each scheme, and the figure."""
    # Rounded, because sums of the same errors in another order are ties too.
    last = {label: (100 * errors[:, -asked.last :].mean(axis=1)).round(9) for label, errors in results.items()}
    ranked = f"the last {min(asked.last, asked.epochs)} of {asked.epochs} epochs"
    print(f"mean test error (%) of {ranked}, depth {asked.depth}")
    print(f"\n{'scheme':<26}{'seeds':>6}{'median':>9}{'quartiles':>16}{'U':>8}{'p':>10}{'effect':>8}")
    compared = {}
    for label, errors in last.items():
        low, high = np.quantile(errors, [0.25, 0.75])
        line = f"{label:<26}{len(errors):>6}{np.median(errors):>9.3f}{f'{low:.2f} - {high:.2f}':>16}"
        if label != REFERENCE and REFERENCE in last:
            c = compared[label] = compare(errors, last[REFERENCE])
            line += f"{c.u:>8g}{c.p:>10.2g}{c.effect:>8.2f}"
        print(line)
    print(f"\np: one-sided, for errors smaller than those of {REFERENCE}; effect: the share of pairs in which they are")
    for label, c in compared.items():
        print(f"{label}: {verdict(c, LEVEL)}")
    if len(compared) > 1:
        strict = LEVEL / len(compared)
        names = ", ".join(label for label, c in compared.items() if c.p < strict) or "none"
        print(f"Better at Bonferroni's level for {len(compared)} tests, {strict:.2g}: {names}.")
    if asked.figure and compared:
        draw_initialisation(results, REFERENCE, asked.figure)


if __name__ == "__main__":
    main()
