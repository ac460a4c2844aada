"""Which rows are held back: a share of them, or of few rows each once in turn."""

from __future__ import annotations

import numpy as np

from sketchnet import random
from sketchnet.errors import InputError

FOLDS = 5
_FEW_ROWS, _FEW_STEPS = 10_000, 3e7  # rows, and entries times outputs, up to which each row is held back once
_FEWEST = 30  # rows from which anything can be told

_REFITTED, _KEPT = 0.2, 0.1  # shares: rows that all experts learn from in the end can be spared meanwhile

Split = tuple[np.ndarray, np.ndarray]  # numbers of the rows that are learnt from, and of those that are held back


def check_share(name: str, value) -> None:
    if not isinstance(value, int | float) or not 0 <= value < 1:
        raise InputError(f"{name}={value!r} is not possible; it is from 0 to below 1")


def usual_share(refitted: bool) -> float:
    """Return what share of the rows is held back, if nobody says."""
    return _REFITTED if refitted else _KEPT


def split_rows(
    n_rows: int, work: int, share: float, seed: int, groups: np.ndarray | None = None, last: float | None = None
) -> list[Split]:
    """Return the splits for so many rows; none where nothing is to be held back.

    `work` is non-zeros times outputs. Rows of one of the `groups` stay together. `last`: that share of the rows, the
    last ones, is held back, as where they are in the order of time.
    """
    rows = np.arange(n_rows)
    if last:
        cut = n_rows - int(n_rows * last)
        return [(rows[:cut], rows[cut:])] if 0 < cut < n_rows else []
    if share == 0 or n_rows < _FEWEST:
        return []
    owners = rows if groups is None else np.unique(groups, return_inverse=True)[1]
    n_owners = int(owners.max()) + 1
    if n_owners < 2:
        return []
    place = np.empty(n_owners, np.int64)
    place[random.shuffled(n_owners, seed, random.STREAM_VALID)] = np.arange(n_owners)
    if n_rows <= _FEW_ROWS and work <= _FEW_STEPS:
        fold = place[owners] % min(FOLDS, n_owners)
        return [(rows[fold != number], rows[fold == number]) for number in range(int(fold.max()) + 1)]
    held = place[owners] < min(n_owners - 1, max(1, round(n_owners * share)))
    return [(rows[~held], rows[held])]
