"""Projecting on a CUDA device: rows of the host pass through it piece by piece.

Pieces are double-buffered in pinned memory and on side streams: while one is multiplied, the next is brought and the
last one's result is taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    """X @ P, computed on a CUDA device; X is a CsrBatch or a scipy matrix.

    The result is a tensor on the device, float32 or bfloat16, unless `out` takes it: a tensor there, or an array or
    tensor of the host, into which slices of rows are streamed. What is used on the GPU beyond X and the result stays
    within `memory`, 1 GiB unless given.
    """
    gpu, X = _gpu(device), as_csr(X, operator.d)
    with torch.cuda.device(gpu):
        out = _result(operator, X.n_rows, gpu, dtype) if out is None else _checked(out, (X.n_rows, operator.k), gpu)
        on_gpu = isinstance(out, torch.Tensor) and out.is_cuda
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
