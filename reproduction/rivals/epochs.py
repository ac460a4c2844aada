"""Learning by epochs, of which held-back rows choose the best."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf


def best_epoch(
    epochs: int,
    learn: Callable[[], None],
    find_loss: Callable[[], float] | None,
    keep: Callable[[], None],
    deadline: float,
    patience: int = 5,
) -> int:
    """Call `learn` for each epoch and `keep` after those with the least loss (wrong rows) so far; the last kept one.

    Of epochs with the same loss the last is kept: few rows cannot tell them apart, and they still learn. Without
    `find_loss` all epochs are learnt. After the deadline none begins, nor after `patience` epochs without a better
    one.
    """
    best, better, least = 0, 0, inf
    for epoch in range(1, epochs + 1):
        learn()
        loss = -epoch if find_loss is None else find_loss()
        if loss < least:
            better = epoch
        if loss <= least:
            best, least = epoch, loss
            if find_loss is not None:
                keep()
        if epoch - better >= patience or time.perf_counter() > deadline:
            break
    return best
