"""The training rows as a network takes them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from sketchnet import random
from sketchnet.data.batches import epoch_order, iterate_batches, iterate_numbered
from sketchnet.nn import SketchNetwork
from sketchnet.normalisation import Moments
from sketchnet.training.config import TrainingConfig
from sketchnet.training.examples import Examples

_ROWS = 256  # projected at a time: still in the cache when their moments are taken
BY_MOMENTS = ("standard", "max_abs")  # normalisations by all projected rows
_PENDING = 8  # pieces whose moments may wait


class TrainingRows:
    """Projected once where that is possible and fits the budget, else read anew in every epoch."""

    def __init__(self, network: SketchNetwork, examples: Examples, config: TrainingConfig, budget: int, note):
        self._network, self._data, self._config = network, examples.data, config
        settings = network.config
        self._projected = None
        fits = self._data.n_rows * settings.n_components * 4 <= budget
        moments = Moments(settings.n_components) if settings.normalise in BY_MOMENTS else None
        if settings.learn or not (moments or (fits and self._can_cache)):
            return
        with reducing(note) as normalising, ThreadPoolExecutor(1) as pool:
            rows, done, pending = None, 0, deque[Any]()
            if fits and self._can_cache:
                rows = np.empty((self._data.n_rows, settings.n_components), np.float32)
                self._projected = torch.from_numpy(rows)
            for batch in iterate_batches(self._data, _ROWS, shuffle=False):
                piece = network.project(batch, None if rows is None else rows[done : done + batch.n_rows])
                if moments is not None:  # while the next rows are projected
                    pending.append(pool.submit(moments.update, piece.numpy()))
                if len(pending) > _PENDING:
                    with normalising():
                        pending.popleft().result()
                done += batch.n_rows
            if moments is not None:
                with normalising():
                    for update in pending:
                        update.result()
                    network.set_moments(moments)

    @property
    def _can_cache(self) -> bool:
        settings = self._network.config
        return not (settings.learn or settings.feature_dropout)

    def batches(self, epoch: int, skip: int) -> Iterator[tuple]:
        """(row numbers, batch) in the epoch's order, from batch number `skip` on."""
        config = self._config
        if self._projected is None:
            yield from iterate_numbered(self._data, config.batch_size, seed=config.seed, epoch=epoch, skip=skip)
            return
        for number, rows in enumerate(epoch_order(self._data, config.batch_size, seed=config.seed, epoch=epoch)):
            if number >= skip:
                yield rows, self._projected[torch.from_numpy(rows)]

    def outputs(self, batch, step: int, mine: slice) -> torch.Tensor:
        """Of some rows of a batch."""
        if self._projected is not None:
            return self._network.forward_projected(batch[mine])
        settings, key = self._network.config, None
        if settings.feature_dropout > 0:
            key = random.hash_key(self._config.seed, random.STREAM_FEATURE_DROPOUT, step)
        return self._network(self._network.read(batch, key, mine))


def scale_input(network: SketchNetwork, data, note: Callable[[dict], None]) -> None:
    """Learn the columns' largest absolute values, if the network divides by them."""
    if network.config.scale_input == "max_abs":
        with timed("scale", note):
            network.input_scale.zero_()
            for batch in iterate_batches(data, _ROWS, shuffle=False):
                network.see_input(batch)
            network.input_scale[network.input_scale == 0] = 1


@contextmanager
def reducing(note: Callable[[dict], None], settle: Callable[[], None] = lambda: None) -> Iterator[Callable]:
    """Note two stages that take turns: "normalise" is the time within what this gives, if there is any, and "reduce"
    the rest. `settle` waits for what was begun elsewhere.
    """
    begun, apart = time.perf_counter(), 0.0

    @contextmanager
    def normalising() -> Iterator[None]:
        nonlocal apart
        settle()
        start = time.perf_counter()
        yield
        settle()
        apart += time.perf_counter() - start

    yield normalising
    settle()
    note({"stage": "reduce", "seconds": round(time.perf_counter() - begun - apart, 3)})
    if apart:
        note({"stage": "normalise", "seconds": round(apart, 3)})


@contextmanager
def timed(stage: str, note: Callable[[dict], None]) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    note({"stage": stage, "seconds": round(time.perf_counter() - begun, 3)})
