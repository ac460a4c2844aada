"""Several processes that train one network, as `torchrun` starts them: each computes its share of every batch.

All hold the whole network and make the same updates, because gradients, and the sums behind batch norm, are added up
over the shares. So the network is that of one process with the whole batch, to rounding. What must be decided or
written once, the first process decides or writes.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
from torch import distributed, nn

from sketchnet.nn.dropout import Dropout
from sketchnet.nn.norm import BatchNorm
from sketchnet.nn.share import Share

_PATIENCE = timedelta(days=7)  # while the first reads files, or blends


class Processes:
    """This process, number `rank` of `count`."""

    def __init__(self, rank: int = 0, count: int = 1):
        self.rank, self.count = rank, count
        self._layers: list[BatchNorm | Dropout] = []

    @property
    def alone(self) -> bool:
        return self.count == 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @classmethod
    def found(cls) -> Processes:
        """Those that torchrun started, connected; this one alone where it did not."""
        if not distributed.is_available():
            return cls()
        if not distributed.is_initialized():
            if int(os.environ.get("WORLD_SIZE", 1)) == 1:
                return cls()
            how = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
            distributed.init_process_group(how, timeout=_PATIENCE)
            atexit.register(_leave)
        return cls(distributed.get_rank(), distributed.get_world_size())

    def share(self, n: int) -> slice:
        """Of n rows, this process's."""
        return slice(n * self.rank // self.count, n * (self.rank + 1) // self.count)

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """Over all processes, in place."""
        if not self.alone:
            distributed.all_reduce(tensor)
        return tensor

    def any(self, flag: bool) -> bool:
        return bool(self.sum(torch.tensor(float(flag))) > 0)

    def first_says(self, value):
        """What the first process has for it; the others wait for it."""
        said = [value]
        if not self.alone:
            distributed.broadcast_object_list(said)
        return said[0]

    def wait(self) -> None:
        """Until all have come here."""
        if not self.alone:
            distributed.barrier()

    @contextmanager
    def first_goes_ahead(self) -> Iterator[None]:
        """The others do the same when the first has done it, and find it done."""
        for _ in range(self.rank):  # one after the other: what they do may be locked meanwhile
            self.wait()
        yield
        for _ in range(self.rank, self.count):
            self.wait()

    def equalise(self, network: nn.Module) -> None:
        """Give all the first one's weights, where each has computed them: their last digits may differ."""
        if not self.alone:
            for tensor in network.state_dict().values():
                distributed.broadcast(tensor, 0)

    def add_gradients(self, parameters: list[nn.Parameter]) -> None:
        """Replace each gradient by the sum over all processes; of sparse ones, the rows that any has."""
        if self.alone:
            return
        dense = [p.grad for p in parameters if p.grad is not None and not p.grad.is_sparse]
        for kind in dict.fromkeys((gradient.device, gradient.dtype) for gradient in dense):  # a set has no order
            mine = [gradient for gradient in dense if (gradient.device, gradient.dtype) == kind]
            flat = self.sum(torch.cat([gradient.reshape(-1) for gradient in mine]))
            for gradient, part in zip(mine, flat.split([gradient.numel() for gradient in mine])):
                gradient.copy_(part.view_as(gradient))
        for p in parameters:
            if p.grad is not None and p.grad.is_sparse:
                rows, values = self._gather(p.grad._indices()[0]), self._gather(p.grad._values())
                p.grad = torch.sparse_coo_tensor(rows[None], values, p.grad.shape).coalesce()

    def _gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensors of all processes, which have different lengths, one behind the other."""
        lengths = [torch.zeros((), dtype=torch.int64) for _ in range(self.count)]
        distributed.all_gather(lengths, torch.tensor(len(tensor)))
        most = max(map(int, lengths))
        padded = torch.zeros(most, *tensor.shape[1:], dtype=tensor.dtype)
        padded[: len(tensor)] = tensor
        parts = [torch.empty_like(padded) for _ in range(self.count)]
        distributed.all_gather(parts, padded)
        return torch.cat([part[: int(length)] for part, length in zip(parts, lengths)])

    @contextmanager
    def training(self, network: nn.Module) -> Iterator[None]:
        """Let layers know of the other shares, if they look at all rows of a batch or draw numbers for each of them."""
        if not self.alone:
            self._layers = [layer for layer in network.modules() if isinstance(layer, BatchNorm | Dropout)]
        try:
            yield
        finally:
            for layer in self._layers:
                layer.share = None
            self._layers = []

    def take(self, n: int) -> slice:
        """This process's rows of the batch of n rows that comes now."""
        mine = self.share(n)
        for layer in self._layers:
            layer.share = Share(mine.start, n, _Sum.apply)
        return mine


class _Sum(torch.autograd.Function):
    """Over all processes; each has the gradient of its own part of the loss, so these are added up too."""

    @staticmethod
    def forward(ctx, tensor):
        total = tensor.clone()
        distributed.all_reduce(total)
        return total

    # torch gives gradients by place, not by name.
    backward = staticmethod(torch.autograd.function.once_differentiable(forward))  # type: ignore[assignment]


def _leave() -> None:
    """Threads of a connection that is still there when Python ends may take the process down with them."""
    if distributed.is_initialized():
        distributed.destroy_process_group()
