"""Retrieval curves with torch, for a CUDA device. Same sums as the kernels, to rounding."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from sketchnet.errors import InputError
from sketchnet.evaluation.codes import unit_rows
from sketchnet.evaluation.relevance import Classes, LabelSets
from sketchnet.memory import format_memory

_PER_PAIR = 72  # bytes for a query and a document: similarities, two sorts' worth of them and of numbers, sums


def sums_on_device(codes, relevant: Classes | LabelSets, queries, device: str, budget: int, progress) -> tuple:
    """(sums over queries of what is gained up to each rank, and of its share; average precision of each query).

    The budget bounds the device's memory. Similarities are computed in float64 and then rounded: it costs little beside
    the sort, and does not depend on whether float32 products may be cut to TF32.
    """
    n, k = codes.shape
    fixed = 12 * n * k + 48 * n
    n_labels = len(relevant.starts) if isinstance(relevant, LabelSets) else 0
    at_once = (budget - fixed) // (_PER_PAIR * n + 4 * n_labels)
    if at_once < 1:
        raise InputError(f"memory of {format_memory(budget)} is too little for {n} documents on {device!r}")
    unit = torch.empty((n, k), dtype=torch.float64, device=device)
    for first, rows in unit_rows("codes", codes):
        unit[first : first + len(rows)] = torch.from_numpy(rows).to(device)
    relevance_of = _within_classes(relevant, device) if isinstance(relevant, Classes) else _of_sets(relevant, device)
    ranks = torch.arange(1, n, dtype=torch.float64, device=device)
    sums, average = torch.zeros((2, n - 1), dtype=torch.float64, device=device), []
    progress(0, len(queries))
    for start in range(0, len(queries), at_once):
        own = torch.from_numpy(queries[start : start + at_once]).to(device)
        similarity = (unit[own] @ unit.T).float()
        similarity += 0.0  # -0 becomes 0, its equal
        similarity[torch.arange(len(own), device=device), own] = -torch.inf
        order = similarity.sort(dim=1, descending=True, stable=True).indices[:, :-1]
        del similarity
        gained = relevance_of(own, order)
        del order
        gains = gained.cumsum(dim=1)
        totals = gains[:, -1:]
        average.append(((gains / ranks).mul_(gained).sum(dim=1) / totals[:, 0]).cpu().numpy())
        sums[0] += gains.sum(dim=0)
        sums[1] += (gains / totals).sum(dim=0)
        progress(start + len(own), len(queries))
    return sums.cpu().numpy(), np.concatenate(average)


def _within_classes(relevant: Classes, device: str):
    classes = torch.from_numpy(relevant.numbers).to(device)
    return lambda own, order: (classes[order] == classes[own][:, None]).double()


def _of_sets(relevant: LabelSets, device: str):
    """Of each document the sum over its labels of whether the queries have them: the number in common."""
    n_labels = len(relevant.starts) - 1
    sizes = torch.from_numpy(np.diff(relevant.indptr)).to(device)
    labels = torch.from_numpy(relevant.labels).to(device, torch.int64)
    starts = sizes.cumsum(dim=0) - sizes

    def of(own, order):
        columns = torch.zeros((n_labels, len(own)), device=device)
        lengths = sizes[own]
        row = torch.repeat_interleave(torch.arange(len(own), device=device), lengths)
        before = lengths.cumsum(dim=0) - lengths
        entry = torch.arange(len(row), device=device) - before[row] + starts[own][row]
        columns[labels[entry], row] = 1
        shared = functional.embedding_bag(labels, columns, starts, mode="sum").T
        union = (sizes[own][:, None] + sizes - shared).clamp_(min=1)  # two empty sets have nothing in common
        return (shared.double() / union).gather(1, order)

    return of
