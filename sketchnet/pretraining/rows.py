"""Rows that an RBM learns from, epoch by epoch: dense ones in memory, sparse ones, and outputs of an RBM below.

All have `n_rows`, `n_columns`, `n_batches`, `batches(epoch, skip)`, which gives an epoch's batches from number `skip`
on, `order(epoch)`, which gives the row numbers of each, and `in_order()`, which gives batches in the rows' own order.
An epoch's order is a function of (seed, epoch).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice

import numpy as np
import torch

from sketchnet.data.batches import Part, epoch_order, iterate_batches
from sketchnet.data.csr import CsrBatch
from sketchnet.data.shard_set import ShardSet
from sketchnet.errors import InputError

_AT_ONCE = 1000  # rows of a batch in the rows' own order
_NUMBERS = 1 << 24  # and how many numbers, at most, if rows are sparse: they will be dense


class DenseRows:
    """A tensor (n_rows, n_columns), on the device on which it is wanted. `order` gives the row numbers of an epoch's
    batches; by default they are those of the same rows if they were sparse.
    """

    def __init__(self, rows: torch.Tensor, batch_size: int, seed: int, order: Callable[[int], Iterator] | None = None):
        self.rows = rows
        self.order = order or (lambda epoch: epoch_order(self, batch_size, seed=seed, epoch=epoch))
        (self.n_rows, self.n_columns), self.n_batches = rows.shape, -(-len(rows) // batch_size)

    @cached_property
    def n_entries(self) -> int:
        return int(torch.count_nonzero(self.rows))

    def batches(self, epoch: int, skip: int = 0) -> Iterator[torch.Tensor]:
        parts = list(self.order(epoch))
        numbers = torch.from_numpy(np.concatenate(parts)).to(self.rows.device)  # once an epoch: no waiting in between
        for part in islice(numbers.split([len(part) for part in parts]), skip, None):
            yield self.rows.index_select(0, part)

    def in_order(self) -> Iterator[torch.Tensor]:
        return iter(self.rows.split(_AT_ONCE))


class SparseRows:
    """Rows of a `ShardSet` or a `CsrBatch`, shuffled and read as for the training of networks.

    `width` is how wide they will be when they are dense, if not as wide as they are: a projection may come first.
    """

    def __init__(self, data: ShardSet | CsrBatch | Part, batch_size: int, seed: int, width: int | None = None):
        self._data, self._batch_size, self._seed = data, batch_size, seed
        self.n_rows, self.n_columns, self.n_batches = data.n_rows, data.n_columns, -(-data.n_rows // batch_size)
        self._at_once = max(1, min(_AT_ONCE, _NUMBERS // max(1, width or data.n_columns)))

    def order(self, epoch: int) -> Iterator[np.ndarray]:
        return epoch_order(self._data, self._batch_size, seed=self._seed, epoch=epoch)

    def batches(self, epoch: int, skip: int = 0) -> Iterator[CsrBatch]:
        return iterate_batches(self._data, self._batch_size, seed=self._seed, epoch=epoch, skip=skip)

    def in_order(self) -> Iterator[CsrBatch]:
        return iterate_batches(self._data, self._at_once, shuffle=False)


class LiftedRows:
    """What a function makes of batches of rows: so many columns, computed anew for every batch."""

    def __init__(self, rows, function: Callable, width: int):
        self._rows, self._function, self.order = rows, function, rows.order
        self.n_rows, self.n_columns, self.n_batches = rows.n_rows, width, rows.n_batches

    def batches(self, epoch: int, skip: int = 0) -> Iterator[torch.Tensor]:
        return map(self._function, self._rows.batches(epoch, skip))

    def in_order(self) -> Iterator[torch.Tensor]:
        return map(self._function, self._rows.in_order())


def make_rows(data, batch_size: int = 100, seed: int = 0, device: torch.device | str = "cpu"):
    """Rows of an array or tensor (moved to `device`), of a `CsrBatch` or of a `ShardSet`."""
    if isinstance(data, CsrBatch | ShardSet | Part):
        rows = SparseRows(data, batch_size, seed)
    else:
        tensor = data if isinstance(data, torch.Tensor) else torch.from_numpy(np.require(data, requirements=["C", "W"]))
        if tensor.ndim != 2:
            raise InputError(f"the rows have {tensor.ndim} dimensions; they must have two, rows and columns")
        rows = DenseRows(tensor.to(device, torch.float32), batch_size, seed)
    if rows.n_rows == 0:
        raise InputError("there are no rows to learn from")
    return rows


def lift(rows, function: Callable, width: int, batch_size: int, seed: int, budget: float, device):
    """What a function makes of rows: kept on the device if they take at most `budget` bytes, else computed anew.

    Either way an epoch has the same batches, so the budget changes results by rounding at most.
    """
    lifted = LiftedRows(rows, function, width)
    if 4 * lifted.n_rows * lifted.n_columns > budget:
        return lifted
    kept = torch.empty(lifted.n_rows, width, device=device)
    done = 0
    for batch in lifted.in_order():
        kept[done : done + len(batch)] = batch
        done += len(batch)
    return DenseRows(kept, batch_size, seed, rows.order)
