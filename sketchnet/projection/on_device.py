"""Projecting on a CUDA device: rows that lie there, or rows of the host that pass through it piece by piece.

Pieces are double-buffered in pinned memory and on side streams: while one is multiplied, the next is brought and the
last one's result is taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from math import ceil
from typing import Any

import numpy as np
import torch

from sketchnet import random
from sketchnet.data.csr import CsrBatch, as_csr, check_finite, sparse_rows
from sketchnet.errors import InputError
from sketchnet.kernels import backend
from sketchnet.kernels.registry import gpu_missing
from sketchnet.memory import DEFAULT_BUDGET, format_memory, parse_memory
from sketchnet.projection.achlioptas import AchlioptasOperator
from sketchnet.projection.count_sketch import CountSketchOperator
from sketchnet.projection.device_choice import WIDEST
from sketchnet.projection.gaussian import GaussianOperator
from sketchnet.projection.li import LiOperator
from sketchnet.projection.operator import Operator
from sketchnet.projection.slicing import longest_row, row_slices, spans
from sketchnet.projection.srht import SRHTOperator

_ROOM = 2**30  # bytes on the GPU for pieces under way; more would not make them faster


@dataclass(frozen=True)
class DeviceRows:
    """Sparse rows on a CUDA device, as in CsrBatch: offsets int64, ids int32 or int64, values float32; checked."""

    indptr: torch.Tensor
    indices: torch.Tensor
    values: torch.Tensor
    n_columns: int

    def __post_init__(self) -> None:
        dtypes = self.indptr.dtype, self.indices.dtype, self.values.dtype
        if dtypes not in [(torch.int64, ids, torch.float32) for ids in (torch.int32, torch.int64)]:
            raise InputError(f"offsets, ids and values have dtypes {dtypes}; they must be int64, int32 or 64, float32")
        if len({tensor.device for tensor in self.arrays}) > 1 or not self.values.is_cuda:
            raise InputError("offsets, ids and values must lie on one CUDA device")
        if not all(tensor.ndim == 1 and tensor.is_contiguous() for tensor in self.arrays):
            raise InputError("offsets, ids and values must be contiguous lines of numbers")
        if len(self.values) != len(self.indices):
            raise InputError(f"there are {len(self.indices)} column ids but {len(self.values)} values")
        if len(self.indptr) == 0 or int(self.indptr[-1] - self.indptr[0]) > len(self.indices):
            raise InputError(f"the row offsets do not fit {len(self.indices)} stored entries")
        if self.n_rows and bool((self.indptr[1:] < self.indptr[:-1]).any()):
            raise InputError("the row offsets must not fall")
        if len(self.indices):
            least, most = self.indices.aminmax()
            if least < 0 or most >= self.n_columns:
                raise InputError(f"column ids run from {least} to {most}; allowed are 0 to {self.n_columns - 1}")
            if not all(torch.isfinite(bound) for bound in self.values.aminmax()):
                raise InputError("Input X contains NaN or infinity")

    @classmethod
    def of(cls, batch, device: str | torch.device = "cuda") -> DeviceRows:
        """The rows of a CsrBatch or a scipy matrix, copied to the device."""
        batch = as_csr(batch, batch.n_columns if isinstance(batch, CsrBatch) else batch.shape[1])
        arrays = batch.indptr.astype(np.int64), batch.indices.copy(), batch.values.astype(np.float32)
        indptr, indices, values = (torch.from_numpy(array).to(device) for array in arrays)
        return cls(indptr, indices, values, batch.n_columns)

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def arrays(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.indptr, self.indices, self.values


def _gpu(device: str | torch.device) -> torch.device:
    device = torch.device(device)
    missing = gpu_missing(device.index) if device.type == "cuda" else "that is no CUDA device"
    if missing:
        raise InputError(f"device {str(device)!r} is not possible here: {missing}")
    return torch.device("cuda", torch.cuda.current_device()) if device.index is None else device


# -- products on the GPU: kernel(indptr, indices, values, out)


@singledispatch
def product_on(operator: Operator, gpu: torch.device) -> Callable:
    raise InputError(f"{operator.scheme.name} has no kernels for CUDA devices")


@product_on.register
def _(operator: CountSketchOperator, gpu):
    kernels = backend("gpu")
    return lambda indptr, indices, values, out: kernels.count_sketch(indptr, indices, values, operator.key, out)


@product_on.register
def _(operator: GaussianOperator, gpu):
    kernels, how = backend("gpu"), (operator.seed, random.STREAM_NORMAL, operator.scale)
    return lambda indptr, indices, values, out: kernels.multiply_normals(indptr, indices, values, *how, out)


@product_on.register
def _(operator: AchlioptasOperator, gpu):
    kernels, how = backend("gpu"), (operator.seed, random.STREAM_SIGN, operator.scheme.s, operator.scale)
    return lambda indptr, indices, values, out: kernels.multiply_signs(indptr, indices, values, *how, out)


@product_on.register
def _(operator: LiOperator, gpu):
    thresholds = torch.from_numpy(operator.thresholds.view(np.int64)).to(gpu)
    kernels, how = backend("gpu"), (operator.seed, random.STREAM_SKIP, thresholds, operator.scale)
    return lambda indptr, indices, values, out: kernels.multiply_skips(indptr, indices, values, *how, out)


@product_on.register
def _(operator: SRHTOperator, gpu):
    kernels, columns = backend("gpu"), operator.column_spans(DEFAULT_BUDGET)

    def picks(span):
        offsets, at, weights = operator.picks(span, backend())
        at = at.view(np.int32 if at.dtype == np.uint32 else np.int64)
        return [torch.from_numpy(array).to(gpu) for array in (offsets, at, weights)]

    kept = picks(columns[0]) if len(columns) == 1 else None  # several do not fit at once

    def product(indptr, indices, values, out):
        for span in columns:
            how = operator.key, *(kept or picks(span)), operator.scale
            kernels.hadamard_sparse(indptr, indices, values, *how, out, span)

    return product


# -- pieces


def device_slices(X: CsrBatch, k: int, memory: str | int | None, itemsize: int = 4) -> list[slice]:
    """Row slices of X of which two fit, with their results of `itemsize` bytes a number, into `memory` on the GPU."""
    room = _ROOM if memory is None else min(_ROOM, parse_memory(memory))
    entry, longest = X.indices.itemsize + 4, longest_row(X.indptr)
    needed = 4 * entry * longest
    if needed > room and memory is not None:
        raise InputError(
            f"a row has {longest} entries, too many for {format_memory(room)} on the GPU; "
            f"at least {ceil(needed / 1024)} KiB are needed"
        )
    room = max(room, needed)
    return row_slices(X.indptr, max(1, room // 4 // (k * itemsize + 8)), room // 4, entry)


class Slot:
    """Buffers of one of the two pieces under way, and the events after which they may be used again."""

    def __init__(self, n_rows: int, n_entries: int, ids: np.dtype, gpu: torch.device):
        ids = torch.int32 if ids == np.int32 else torch.int64
        parts = (n_rows + 1, torch.int64), (n_entries, ids), (n_entries, torch.float32)
        self.staged = [torch.empty(n, dtype=dtype, pin_memory=True) for n, dtype in parts]
        self.brought = [torch.empty(n, dtype=dtype, device=gpu) for n, dtype in parts]
        self.uploaded, self.computed, self.taken = torch.cuda.Event(), torch.cuda.Event(), torch.cuda.Event()

    def bring(self, part: CsrBatch, upload: torch.cuda.Stream) -> list[torch.Tensor]:
        """Start copying a piece to the GPU by way of pinned memory; its tensors there."""
        self.uploaded.synchronize()  # the piece before last has left
        tensors = []
        upload.wait_event(self.computed)
        with torch.cuda.stream(upload):
            for array, staged, brought in zip(part.arrays, self.staged, self.brought):
                np.copyto(staged.numpy()[: len(array)], array, casting="unsafe")
                tensors.append(brought[: len(array)].copy_(staged[: len(array)], non_blocking=True))
            self.uploaded.record(upload)
        return tensors


def pieces(
    operator: Operator, X: CsrBatch, slices: list[slice], gpu: torch.device, dtype=torch.float32, into=None
) -> Iterator[tuple[slice, torch.Tensor, Slot]]:
    """Results of row slices, one after the other, as tensors on the GPU: parts of `into`, or of two buffers in turn.

    A buffer is overwritten when the next result but one is asked for, in the order of the current stream; who reads it
    on another stream records the slot's `taken` there.
    """
    current, upload = torch.cuda.current_stream(gpu), torch.cuda.Stream(gpu)
    most_rows = max((span.stop - span.start for span in slices), default=0)
    most_entries = max((int(X.indptr[span.stop]) - int(X.indptr[span.start]) for span in slices), default=0)
    product, n_slots = product_on(operator, gpu), min(2, len(slices))
    slots = [Slot(most_rows, most_entries, X.indices.dtype, gpu) for _ in range(n_slots)]
    buffers = torch.empty((0 if into is not None else n_slots, most_rows, operator.k), dtype=dtype, device=gpu)
    upload.wait_stream(current)  # whose earlier work may still use the memory that these buffers were given
    try:
        for number, span in enumerate(slices):
            slot = slots[number % 2]
            tensors = slot.bring(X.rows(span), upload)
            result = buffers[number % 2, : span.stop - span.start] if into is None else into[span]
            current.wait_event(slot.uploaded)
            current.wait_event(slot.taken)
            product(*tensors, result)
            slot.computed.record(current)
            yield span, result, slot
    finally:  # if it is left early, whoever is given these buffers next waits for what is under way
        current.wait_stream(upload)
        for slot in slots:
            current.wait_event(slot.taken)


def run_on_device(
    operator: Operator, X: CsrBatch, slices: list[slice], device, out: np.ndarray | torch.Tensor, done: int = 0
) -> Iterator[int]:
    """Project X slice by slice into `out` on the host, leaving out the first `done`; yields how many are done."""
    gpu = _gpu(device)
    target = torch.from_numpy(out) if isinstance(out, np.ndarray) else out
    with torch.cuda.device(gpu):
        most = max((span.stop - span.start for span in slices), default=0)
        landed = torch.empty((2, most, operator.k), dtype=target.dtype, pin_memory=True)
        download, last = torch.cuda.Stream(gpu), None
        for number, (span, result, slot) in enumerate(pieces(operator, X, slices[done:], gpu, target.dtype)):
            arrived = landed[number % 2, : len(result)]
            download.wait_event(slot.computed)
            with torch.cuda.stream(download):
                arrived.copy_(result, non_blocking=True)
                slot.taken.record(download)
            if last is not None:
                yield _put(target, *last, done + number)
            last = span, arrived, slot.taken
        if last is not None:
            yield _put(target, *last, len(slices))


def _put(target: torch.Tensor, span: slice, arrived: torch.Tensor, taken: torch.cuda.Event, number: int) -> int:
    taken.synchronize()
    target[span].copy_(arrived)
    return number


# -- the whole


def project_on_device(
    operator: Operator, X, *, device="cuda", dtype=torch.float32, out=None, memory: str | int | None = None
) -> Any:
    """X @ P, computed on a CUDA device; X is a CsrBatch, a scipy matrix or DeviceRows.

    The result is a tensor on the device, float32 or bfloat16, unless `out` takes it: a tensor there, or an array or
    tensor of the host, into which slices of rows are streamed. What is used on the GPU beyond X and the result stays
    within `memory`, 1 GiB unless given.
    """
    gpu = X.values.device if isinstance(X, DeviceRows) else _gpu(device)
    if isinstance(X, DeviceRows) and X.n_columns != operator.d:
        raise InputError(f"X has {X.n_columns} columns, but the projection was made for {operator.d}")
    X = X if isinstance(X, DeviceRows) else as_csr(X, operator.d)
    with torch.cuda.device(gpu):
        out = _result(operator, X.n_rows, gpu, dtype) if out is None else _checked(out, (X.n_rows, operator.k), gpu)
        on_gpu = isinstance(out, torch.Tensor) and out.is_cuda
        if isinstance(X, DeviceRows):
            if on_gpu:
                product_on(operator, gpu)(*X.arrays, out)
            else:
                _to_host(operator, X, out, gpu, memory)
        else:
            how = operator, X, device_slices(X, operator.k, memory, out.itemsize), gpu
            for _ in pieces(*how, into=out) if on_gpu else run_on_device(*how, out):
                pass
    return out


def project_into(operator: Operator, X, out: np.ndarray, device: str, memory: str | int | None) -> None:
    """What `Operator.apply` does on a GPU: checked rows, sparse or dense, into an array of the host."""
    if isinstance(X, CsrBatch):
        for _ in run_on_device(operator, X, device_slices(X, operator.k, memory), device, out):
            pass
        return
    check_finite(X)
    for span in spans(len(X), max(1, DEFAULT_BUDGET // (2 * 24 * operator.d))):
        project_into(operator, sparse_rows(X[span]), out[span], device, memory)


def _to_host(operator: Operator, X: DeviceRows, out, gpu: torch.device, memory) -> None:
    """Rows that lie on the GPU, to the host; nothing is brought, so one buffer does."""
    target, product = torch.from_numpy(out) if isinstance(out, np.ndarray) else out, product_on(operator, gpu)
    room = _ROOM if memory is None else min(_ROOM, parse_memory(memory))
    for span in spans(X.n_rows, max(1, room // (operator.k * target.itemsize))):
        indptr = X.indptr[span.start : span.stop + 1]
        entries = slice(*(indptr[[0, -1]] - X.indptr[0]).tolist())
        result = torch.empty((span.stop - span.start, operator.k), dtype=target.dtype, device=gpu)
        product(indptr, X.indices[entries], X.values[entries], result)
        target[span].copy_(result)


def _result(operator: Operator, n: int, gpu: torch.device, dtype) -> torch.Tensor:
    if dtype not in (torch.float32, torch.bfloat16):
        raise InputError(f"dtype {dtype} is not possible; results on a CUDA device are float32 or bfloat16")
    if operator.k > WIDEST:
        raise InputError(f"k={operator.k} is too large; results on a CUDA device have at most {WIDEST} columns")
    try:
        return torch.empty((n, operator.k), dtype=dtype, device=gpu)
    except torch.cuda.OutOfMemoryError:
        size = format_memory(n * operator.k * dtype.itemsize)
        raise InputError(f"a result of {size} does not fit on the GPU; give an array of the host as `out`") from None


def _checked(out, shape: tuple[int, int], gpu: torch.device):
    if tuple(out.shape) != shape:
        raise InputError(f"out has shape {tuple(out.shape)}; the result has shape {shape}")
    if isinstance(out, np.ndarray) and (out.dtype != np.float32 or not out.flags.writeable):
        raise InputError(f"out is {out.dtype}; it must be writeable and float32")
    if isinstance(out, torch.Tensor):
        if out.dtype not in (torch.float32, torch.bfloat16) or (out.is_cuda and out.stride(1) != 1):
            raise InputError(f"out is {out.dtype}; it must be float32 or bfloat16, its rows in one piece")
        if out.is_cuda and out.device != gpu:
            raise InputError(f"out lies on {out.device}, X is projected on {gpu}")
    return out
