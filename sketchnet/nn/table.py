"""Tables of weights that belong to columns of the data: a row for each, of which a batch touches a few."""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import prod

import numpy as np
import torch
from torch import nn

from sketchnet.errors import InputError, Setting
from sketchnet.kernels import backend

_PIECE = 1 << 16  # rows looked at together

if not torch.sparse.check_sparse_tensor_invariants.is_enabled():
    torch.sparse.check_sparse_tensor_invariants.disable()  # as they are; but some versions of torch want it said


class TableLayer(nn.Module):
    """A layer with one table, `weight`. Optimisers may lengthen the table's rows to keep their own numbers beside the
    weights (`rows_of`), and update rows late, so that whoever reads weights asks `read`.
    """

    weight: nn.Parameter

    def __init__(self) -> None:
        super().__init__()
        self.late: Callable[[np.ndarray], np.ndarray] | None = None  # how an optimiser that is late reads rows

    def __deepcopy__(self, memo: dict) -> TableLayer:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update({name: copy.deepcopy(value, memo) for name, value in self.__dict__.items()})
        if not self.weight.is_contiguous():  # parameters copy themselves without what stands behind the weights
            rows = torch.from_numpy(rows_of(self.weight).copy())
            twin.weight.data = rows.as_strided(self.weight.shape, self.weight.stride())
        return twin

    def _load_from_state_dict(self, *args, **kwargs) -> None:
        self.catch_up()  # updates of the weights so far must not reach those that come
        super()._load_from_state_dict(*args, **kwargs)

    def catch_up(self) -> None:
        """Bring all rows up to date, where an optimiser is late."""
        if self.late is None:
            return
        for start in range(0, len(self.weight), _PIECE):
            self.late(np.arange(start, min(len(self.weight), start + _PIECE)))

    def read(self, rows: np.ndarray) -> np.ndarray:
        """The weights of the given rows, each in a row of the result."""
        if self.late is not None:
            return self.late(rows)
        return backend().gather(rows_of(self.weight), rows, prod(self.weight.shape[1:]))


def rows_of(weight: torch.Tensor) -> np.ndarray:
    """The table as an array without copying: weights, and behind them what else its rows hold."""
    length = max(1, weight.stride(0))
    return weight.detach().as_strided((len(weight), length), (length, 1)).numpy()


def new_table(*shape: int) -> torch.Tensor:
    """Zeros for the weights of columns. NumPy asks the system for large pages, torch does not: a step that touches
    scattered columns takes half the time with them.
    """
    if is_meta():
        return torch.empty(shape)
    return torch.from_numpy(np.zeros(shape, np.float32))


def copy_table(weights: torch.Tensor, into: torch.Tensor) -> torch.Tensor:
    """Copy weights into zeros. Pieces that are zero are left alone, so that they go on taking no memory."""
    for start in range(0, len(weights), _PIECE):
        piece = weights[start : start + _PIECE]
        if piece.any():
            into[start : start + _PIECE].copy_(piece)
    return into


def is_meta() -> bool:
    """Whether modules are being made for their shapes alone."""
    return torch.empty(0).device.type == "meta"


def check_table(d: int, per_column: float) -> None:
    """A table with weights for every column must be thinkable; the rest is the system's to say."""
    if d * per_column > 2**34:
        hashed = Setting("hashed_columns", 1 << 24)
        raise InputError(
            f"{d:,} columns would need {d * per_column:.3g} weights; ask for a hashed table of a chosen size, such as "
            f"{hashed}",
            hashed,
        )


def sparse_gradient(weight: torch.Tensor, rows: np.ndarray, values: np.ndarray) -> torch.Tensor:
    """A gradient that is zero outside the given rows, which are distinct."""
    ids = torch.from_numpy(rows)
    weight.__dict__["distinct_rows"] = ids.data_ptr()  # by which `distinct_gradient` knows them again
    return torch.sparse_coo_tensor(ids[None], torch.from_numpy(values), weight.shape)


def distinct_gradient(weight: torch.Tensor) -> torch.Tensor:
    """The weight's gradient with distinct rows. Where torch has added several up, rows may stand in it more than once;
    to sort out every gradient would take longer than a step.
    """
    gradient = weight.grad
    assert gradient is not None
    if gradient.is_coalesced() or gradient._indices().data_ptr() == getattr(weight, "distinct_rows", None):
        return gradient
    return gradient.coalesce()
