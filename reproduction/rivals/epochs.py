"""Learning by epochs, of which held-back rows choose the best."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf


def best_epoch(
    epochs: int,
    learn: Callable[[], None],
    count_wrong: Callable[[], int] | None,
    keep: Callable[[], None],
    deadline: float,
    patience: int = 5,
) -> int:
    """Call `learn` for each epoch and `keep` after those with the fewest wrong rows so far; the last kept one.

    Of epochs with equally many the last is kept: few rows cannot tell them apart, and losses still fall. Without
    `count_wrong` all epochs are learnt. After the deadline none begins, nor after `patience` epochs without a better
    one.
    """
    best, better, fewest = 0, 0, inf
    for epoch in range(1, epochs + 1):
        learn()
        wrong = -epoch if count_wrong is None else count_wrong()
        if wrong < fewest:
            better = epoch
        if wrong <= fewest:
            best, fewest = epoch, wrong
            if count_wrong is not None:
                keep()
        if epoch - better >= patience or time.perf_counter() > deadline:
            break
    return best
