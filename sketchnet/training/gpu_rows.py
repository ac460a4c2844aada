"""The training rows on a CUDA device: all of them, or, where they do not fit, window after window of each epoch.

A captured step reads from addresses that never change. So rows lie in tensors that are made once, `csr` for projections
that learn and `projected` for those that do not, and a batch is a row of `order`, the numbers of its rows in the data,
and of `places`, where those rows lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from sketchnet.data.batches import epoch_order, iterate_batches, iterate_numbered
from sketchnet.data.csr import CsrBatch
from sketchnet.data.gather import concatenate
from sketchnet.kernels import backend
from sketchnet.nn import NetworkConfig, SketchNetwork
from sketchnet.normalisation import Moments
from sketchnet.training.config import TrainingConfig
from sketchnet.training.rows import BY_MOMENTS, reducing

_ROWS = 1 << 16  # brought to the GPU at a time
_WINDOW = 1 << 28  # bytes of sparse rows, or of projected ones, in a window
NARROW = torch.bfloat16  # the type of rows that are normalised once: products take no other


def make_rows(network: SketchNetwork, data, config: TrainingConfig, room: float, note):
    """All rows if they fit into `room` bytes, else windows of them."""
    kind = ResidentRows if size_of(network, data) <= room else StreamedRows
    return kind(network, data, config, note)


def size_of(network: SketchNetwork, data) -> float:
    """The most that all rows take on the GPU: sparse ones twice, while they are joined."""
    if network.config.learn:
        spread = max(1.0, network.projection.operator.per_entry)
        return 2 * (spread * data.n_entries * _entry(network) + 8 * data.n_rows)
    return data.n_rows * _projected(network.config)


def _ids(network: SketchNetwork) -> np.dtype:
    """Of columns, or of the weights that they meet."""
    most = max(network.config.width, len(network.projection.weight) if network.config.learn else 0)
    return np.dtype(np.int32 if most < 2**31 else np.int64)


def _entry(network: SketchNetwork) -> int:
    return 4 + _ids(network).itemsize


def _projected(settings: NetworkConfig) -> int:
    return 6 * settings.n_components  # in float32, and then in bfloat16


def upload(network: SketchNetwork, batch: CsrBatch) -> tuple[torch.Tensor, ...]:
    """Checked CSR arrays on the GPU; offsets count from zero."""
    batch, device = _as_kernels_want(network, batch), network.device
    return tuple(torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in batch.arrays)


def _as_kernels_want(network: SketchNetwork, batch: CsrBatch) -> CsrBatch:
    batch = network.columns(batch)
    if network.config.learn:
        batch = network.projection.spread(batch)
    offsets = (batch.indptr - batch.indptr[0]).astype(np.int64)
    return CsrBatch(offsets, batch.indices.astype(_ids(network)), batch.values.astype(np.float32), batch.n_columns)


def _settle() -> None:
    """Wait for the GPU."""
    torch.cuda.current_stream().synchronize()


class _Rows:
    csr: Any  # tensors, where the projection learns
    projected: Any  # a tensor, where it does not

    def __init__(self, network: SketchNetwork, data, config: TrainingConfig):
        self._network, self._data, self._config, self._device = network, data, config, network.device
        self.batch, self.n_batches = min(config.batch_size, data.n_rows), -(-data.n_rows // config.batch_size)
        self.order = self._numbers()
        self.csr = self.projected = None
        self._pool = ThreadPoolExecutor(1)

    def _numbers(self) -> torch.Tensor:
        return torch.zeros(self.n_batches, self.batch, dtype=torch.int64, device=self._device)

    def _normalised(self, projected: torch.Tensor) -> torch.Tensor:
        """As the first layer takes them, unless they are normalised anew in each step, from all of their digits."""
        network = self._network
        if network.config.normalise == "batch":
            return projected
        out = torch.empty_like(projected, dtype=NARROW)
        backend("gpu").normalise(projected, network.shift, network.scale, out)
        return out

    def _take_moments(self, into: torch.Tensor | None, normalising) -> None:
        """Project all rows, keep them if there is room for them, and tell the network their moments."""
        from sketchnet.projection.on_device import project_on_device

        network, settings, done = self._network, self._network.config, 0
        moments = Moments(settings.n_components) if settings.normalise in BY_MOMENTS else None
        for batch in iterate_batches(self._data, _ROWS, shuffle=False):
            columns = network.columns(batch)
            where = {"device": self._device} if into is None else {"out": into[done : done + batch.n_rows]}
            projected, done = project_on_device(network.projection.operator, columns, **where), done + batch.n_rows
            if moments is not None:
                with normalising():
                    moments.merge(batch.n_rows, *(x.cpu().numpy() for x in backend("gpu").moments(projected)))
        if moments is not None:
            network.set_moments(moments)

    def close(self) -> None:
        self._pool.shutdown()
        self.csr = self.projected = None


class ResidentRows(_Rows):
    def __init__(self, network: SketchNetwork, data, config: TrainingConfig, note):
        super().__init__(network, data, config)
        self.places = self.order
        self._orders: dict = {}  # orders of rows are made an epoch ahead
        if network.config.learn:
            self.csr = self._bring()
            return
        with reducing(note, _settle) as normalising:
            projected = torch.empty(data.n_rows, network.config.n_components, device=self._device)
            self._take_moments(projected, normalising)
            with normalising() if network.config.normalise in BY_MOMENTS else nullcontext():
                self.projected = self._normalised(projected)

    def _bring(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        parts = [upload(self._network, batch) for batch in iterate_batches(self._data, _ROWS, shuffle=False)]
        ends = np.cumsum([0, *(len(indices) for _, indices, _ in parts)])
        offsets = [indptr[:-1] + int(end) for (indptr, _, _), end in zip(parts, ends)]
        offsets.append(torch.tensor([int(ends[-1])], device=self._device))
        return (
            torch.cat(offsets),
            torch.cat([ids for _, ids, _ in parts]),
            torch.cat([values for _, _, values in parts]),
        )

    def windows(self, epoch: int, skip: int) -> Iterator[tuple[int, int]]:
        """(first batch, the one behind the last) of what lies on the GPU, from batch `skip` on."""
        self._order_ahead(epoch)
        order = torch.from_numpy(self._orders.pop(epoch).result())
        self.order.view(-1)[: len(order)].copy_(order)
        if epoch + 1 < self._config.epochs:
            self._order_ahead(epoch + 1)
        yield skip, self.n_batches

    def _order_ahead(self, epoch: int) -> None:
        """Begin to make an epoch's order."""

        def order() -> np.ndarray:
            return np.concatenate(list(epoch_order(self._data, config.batch_size, seed=config.seed, epoch=epoch)))

        config = self._config
        if epoch not in self._orders:
            self._orders = {epoch: self._pool.submit(order)}


class StreamedRows(_Rows):
    """While the steps of a window run, a thread brings the next one by way of pinned memory.

    Steps find a window's sparse rows where they found the last one's; rows of fixed projections are projected again.
    """

    def __init__(self, network: SketchNetwork, data, config: TrainingConfig, note):
        from sketchnet.projection.on_device import Slot, product_on

        super().__init__(network, data, config)
        settings = network.config
        self.places = self._numbers()
        batches = iterate_batches(data, _ROWS, shuffle=False)
        if settings.learn and not network.projection.one_each:  # otherwise offsets alone are read
            batches = (_as_kernels_want(network, batch) for batch in batches)
        lengths = np.sort(np.concatenate([np.diff(batch.indptr) for batch in batches]))
        fitting = _WINDOW // (self.batch * (_entry(network) if settings.learn else _projected(settings)))
        self._most_rows = self.batch * min(self.n_batches, max(1, fitting))
        self._most_entries = max(int(lengths[-self.batch :].sum()), min(int(lengths.sum()), _WINDOW // _entry(network)))
        self._slots = [Slot(self._most_rows, self._most_entries, _ids(network), self._device) for _ in range(2)]
        if settings.learn:
            self.csr = tuple(torch.zeros_like(tensor) for tensor in self._slots[0].brought)
            return
        with reducing(note, _settle) as normalising:
            self._take_moments(None, normalising)
        self._product = product_on(network.projection.operator, self._device)
        self._wide = torch.zeros(self._most_rows, settings.n_components, device=self._device)
        self.projected = self._normalised(self._wide)

    def windows(self, epoch: int, skip: int) -> Iterator[tuple[int, int]]:
        current, stream = torch.cuda.current_stream(), torch.cuda.Stream()
        stream.wait_stream(current)
        config, first = self._config, skip
        batches = iterate_numbered(self._data, config.batch_size, seed=config.seed, epoch=epoch, skip=skip)
        pieces = self._pieces(batches)
        ready, number = self._pool.submit(self._stage, pieces, 0, stream), 0
        try:
            while first < self.n_batches:
                (numbers, n_rows, slot, tensors), number = ready.result(), number + 1
                ready = self._pool.submit(self._stage, pieces, number % 2, stream)
                current.wait_event(slot.uploaded)
                self._take(tensors, n_rows)
                slot.computed.record(current)
                count = -(-n_rows // self.batch)
                self.order[first : first + count].view(-1)[:n_rows].copy_(numbers)
                spots = torch.arange(count * self.batch, device=self._device)
                self.places[first : first + count].copy_(spots.view(count, -1))
                yield first, first + count
                first += count
        finally:
            wait([ready])  # a generator cannot be closed while it runs
            batches.close()
            current.wait_stream(stream)  # if it is left early, a copy may be under way

    def _take(self, tensors, n_rows: int) -> None:
        """Put a window where steps look for it."""
        if self.csr is not None:
            for mine, tensor in zip(self.csr, tensors):
                mine[: len(tensor)].copy_(tensor)
            return
        self._product(*tensors, self._wide[:n_rows])
        if self.projected is not self._wide:
            network = self._network
            backend("gpu").normalise(self._wide[:n_rows], network.shift, network.scale, self.projected[:n_rows])

    def _pieces(self, batches) -> Iterator[tuple[list[np.ndarray], list[CsrBatch]]]:
        """As many batches as fit a window, again and again."""
        numbers, held, n_rows, n_entries = list[np.ndarray](), list[CsrBatch](), 0, 0
        for rows, given in batches:
            batch = _as_kernels_want(self._network, given)
            entries = int(batch.indptr[-1])
            if held and (n_rows + len(rows) > self._most_rows or n_entries + entries > self._most_entries):
                yield numbers, held
                numbers, held, n_rows, n_entries = list[np.ndarray](), list[CsrBatch](), 0, 0
            numbers.append(rows)
            held.append(batch)
            n_rows, n_entries = n_rows + len(rows), n_entries + entries
        if held:
            yield numbers, held

    def _stage(self, pieces, number: int, stream):
        """(numbers of rows, how many, slot, its tensors) of the next window, on its way to the GPU."""
        slot, (numbers, held) = self._slots[number], next(pieces, ([], []))
        if not held:
            return None, 0, slot, None
        tensors = slot.bring(concatenate(held, held[0].n_columns), stream)
        return torch.from_numpy(np.concatenate(numbers)), sum(b.n_rows for b in held), slot, tensors
