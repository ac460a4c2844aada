"""Rows with their targets, and a part of them held back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sketchnet import random
from sketchnet.data.batches import Part, Rows
from sketchnet.errors import InputError

_FEWEST = 30  # rows that can tell one epoch from another


@dataclass(frozen=True)
class Examples:
    """Rows (a CsrBatch or a data set on disk), their encoded targets, and a weight for each if they differ."""

    data: Rows
    targets: Any  # as the task encodes them: an array, or a sparse matrix of several labels a row
    weights: np.ndarray | None = None

    @cached_property
    def mean_weight(self) -> float:
        return 1.0 if self.weights is None else float(self.weights.mean())


def hold_back(examples: Examples, share: float, seed: int) -> tuple[Examples, Examples | None]:
    """(the rest, a random `share` of the rows); None where those are too few to tell anything, or have no weight."""
    if not 0 <= share < 1:
        raise InputError(f"a validation fraction of {share!r} is not possible; it is from 0 to below 1")
    n = examples.data.n_rows
    order, held = random.shuffled(n, seed, random.STREAM_VALID), int(n * share)
    kept, back = (part_of(examples, np.sort(numbers)) for numbers in (order[held:], order[:held]))
    if held < _FEWEST or (back.weights is not None and back.weights.sum() <= 0):
        return examples, None
    return kept, back


def sample(examples: Examples, n_rows: int, seed: int) -> Examples:
    """`n_rows` random examples, or all of them if there are no more."""
    n = examples.data.n_rows
    if n <= n_rows:
        return examples
    return part_of(examples, np.sort(random.shuffled(n, seed, random.STREAM_VALID)[n - n_rows :]))


def part_of(examples: Examples, numbers: np.ndarray) -> Examples:
    """Return some of the examples, by ascending numbers of rows."""
    weights = None if examples.weights is None else examples.weights[numbers]
    return Examples(Part(examples.data, numbers), examples.targets[numbers], weights)
