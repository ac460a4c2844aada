"""What a named data set is, and how its rows are divided."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sketchnet import random


@dataclass(frozen=True)
class Split:
    """Examples and their labels.

    X is a dense float32 array, a float32 scipy CSR array, or a list of strings. y is an integer array, or for
    several labels an example a scipy CSR array of 0 and 1, one column a class.
    """

    X: Any
    y: Any

    def __len__(self) -> int:
        return len(self.X) if isinstance(self.X, list) else self.X.shape[0]

    def take(self, rows: np.ndarray) -> Split:
        """The examples at these positions, in this order."""
        X = [self.X[row] for row in rows] if isinstance(self.X, list) else self.X[rows]
        return Split(X, self.y[rows])


@dataclass(frozen=True)
class Dataset:
    """A training, a validation and a test part. The validation part was taken out of the training part."""

    name: str
    train: Split
    valid: Split
    test: Split
    n_classes: int
    feature_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class DatasetInfo:
    """A row of the dissertation's table of data sets, and where its files are on this machine.

    `n_train` counts the validation part too. `density` is a number, or what the table says instead of one. `path` is
    the folder of the files, or None; `present` says whether loading needs no download.
    """

    name: str
    what: str
    n_train: int
    n_test: int
    n_features: int | None
    n_classes: int
    density: float | str | None
    present: bool = False
    path: Path | None = None


def shuffled(n: int, random_state: int) -> np.ndarray:
    """The numbers below n in a random order that depends on n and the seed alone, on every machine."""
    return random.shuffled(n, random_state, random.STREAM_SPLIT)


def split_rows(n: int, sizes: list[int], random_state: int) -> list[np.ndarray]:
    """Random disjoint parts of the rows below n, of these sizes, then what remains; each in rising order."""
    order = shuffled(n, random_state)
    return [np.sort(part) for part in np.split(order, np.cumsum(sizes))]


def share(n: int, size: int, of: int) -> int:
    """How many of n rows to take where the published data takes `size` of its `of`: the very `size` for complete files.

    Smaller files, such as a sample of the published ones, give a part in the same proportion.
    """
    return (n * size + of // 2) // of


def hold_out(train: Split, size: int, of: int, random_state: int) -> tuple[Split, Split]:
    """(what remains, validation part): a random `size` of every `of` examples."""
    valid, rest = split_rows(len(train), [share(len(train), size, of)], random_state)
    return train.take(rest), train.take(valid)
