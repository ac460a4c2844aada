"""How fast is svmlight text read, beside scikit-learn and, where it is installed, svmloader?"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from harness import best_time, race, row
from sklearn.datasets import load_svmlight_file

from sketchnet.data.svmlight import SvmlightReader, read_svmlight

N_COLUMNS, NON_ZEROS = 3_200_000, 115


def write_url_like(path: Path, n_bytes: int, seed: int = 0) -> None:
    """Rows as of the `url` data set: 115 ascending ids of 3.2 million, values of six significant digits."""
    rng = np.random.default_rng(seed)
    with open(path, "wb") as file:
        while file.tell() < n_bytes:
            lines = []
            for _ in range(500):
                ids = np.unique(rng.integers(1, N_COLUMNS + 1, NON_ZEROS)).tolist()
                features = " ".join(map("%d:%.6g".__mod__, zip(ids, rng.random(len(ids)).tolist())))
                lines.append(f"{'+1' if rng.random() < 0.33 else '-1'} {features}\n")
            file.write("".join(lines).encode())


def svmlight_rows(quick: bool) -> Iterator[dict]:
    """Rows of the benchmark table, as `harness.main` takes them."""
    size = 30_000_000 if quick else 300_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "url_like.svm"
        write_url_like(path, size)
        megabytes = path.stat().st_size / 1e6
        ours, theirs = race(lambda: read_svmlight(path), lambda: load_svmlight_file(str(path), dtype=np.float32))
        _assert_equal(path)
        yield row(f"read svmlight, {megabytes:.0f} MB ({megabytes / ours:.0f} MB/s)", ours, theirs, "sklearn", "s", 20)
        stream = best_time(lambda: sum(chunk.n_rows for chunk in SvmlightReader(path)))
        yield row("  the same in chunks of 16 MB", stream, theirs, "sklearn", "s")
        try:
            svmloader = importlib.import_module("svmloader")
        except ImportError:
            return  # a rival only where someone installed it
        rival = best_time(lambda: svmloader.load_svmfile(str(path), "f", zero_based=False))
        yield row("  the same", ours, rival, "svmloader", "s", 2)


def _assert_equal(path: Path) -> None:
    X, y = load_svmlight_file(str(path), dtype=np.float32)
    ours = read_svmlight(path)
    for a, b in ((ours.indptr, X.indptr), (ours.indices, X.indices), (ours.values, X.data), (ours.labels, y)):
        if not np.array_equal(a, b):
            raise SystemExit("the readers disagree, so their times mean nothing")
