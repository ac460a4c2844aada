"""Document retrieval: how well do codes find documents of the same kind?

Every document in turn is a query and ranks the others by the cosine of the angle between codes, largest first; equal
similarities (in float32) stand in the order of document numbers. With rel(s) the relevance of the document at rank s,

    precision(r) = sum over s <= r of rel(s) / r,    recall(r) = sum over s <= r of rel(s) / sum over all s of rel(s),

both averaged over the queries at each rank; the area under that curve is taken by trapezoids between its points.
Average precision of a query is sum over r of precision(r) * rel(r) / sum of rel. Salakhutdinov and Hinton, "Semantic
hashing" (2009), draw such curves for classes, and for sets of labels with fractions as relevance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sketchnet.checks import check_integer
from sketchnet.errors import InputError
from sketchnet.evaluation.codes import PANEL, check_codes, padded, panels, panels_bytes, unit_rows, unpack
from sketchnet.evaluation.relevance import Classes, LabelSets, relevance
from sketchnet.kernels import backend
from sketchnet.kernels.cpu.threads import n_threads
from sketchnet.kernels.registry import cuda_device, cuda_missing
from sketchnet.memory import format_memory, parse_memory

_AT_ONCE = 2**24  # bytes of keys that are sorted at a time, if the budget allows: more would leave the cache


@dataclass(frozen=True, eq=False)
class RetrievalResult:
    """precision[r - 1] and recall[r - 1] are means over the queries at rank r = 1 ... n - 1.

    Documents to which no other is relevant cannot be queries: `n_left_out` counts them. If all documents are of one
    class, precision is 1 at every rank. The curve begins at rank 1, not at recall 0, and so does `area`.
    """

    precision: np.ndarray
    recall: np.ndarray
    area: float
    mean_average_precision: float
    n_queries: int
    n_left_out: int


def retrieval(
    codes,
    labels,
    *,
    device: str = "cpu",
    memory: str | int | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> RetrievalResult:
    """Precision and recall of codes (n × k numbers), by the formulas above.

    `labels` are classes, one for each document, or a sparse n × labels matrix of zeros and ones; then the relevance of
    two documents is |A ∩ B| / |A ∪ B|. Results are exact, in blocks of queries that fit `memory` (default 512 MiB),
    and on the processor they depend on neither blocks nor threads. `device` is "cpu", "cuda" or "auto".
    """
    codes, budget = check_codes("codes", codes), parse_memory(memory)
    n = len(codes)
    if n < 2:
        raise InputError(f"there is no other document to find: codes have {n} rows, and at least 2 are needed")
    relevant = relevance(labels, n)
    queries = relevant.queries()
    if len(queries) == 0:
        raise InputError("no document is relevant to another: each has a class, or labels, of its own")
    gpu = cuda_device(device, cuda_missing)
    if gpu is None:
        sums, average = _on_processor(codes, relevant, queries, budget, progress)
    else:
        from sketchnet.evaluation.retrieval_on_device import sums_on_device  # here, because it loads torch

        sums, average = sums_on_device(codes, relevant, queries, gpu, budget, progress)
    precision = sums[0] / (len(queries) * np.arange(1.0, n))
    recall = sums[1] / len(queries)
    area = float(np.sum(np.diff(recall) * (precision[1:] + precision[:-1]) / 2))
    return RetrievalResult(precision, recall, area, float(average.mean()), len(queries), n - len(queries))


def nearest(
    codes,
    queries,
    n: int,
    *,
    memory: str | int | None = None,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> tuple[np.ndarray, np.ndarray]:
    """(numbers, similarities): for each query code, the n documents with the largest cosine, the nearest first.

    Equal similarities stand in the order of document numbers. A document that is also a query finds itself.
    """
    codes, queries, budget = check_codes("codes", codes), check_codes("queries", queries), parse_memory(memory)
    if codes.shape[1] != queries.shape[1]:
        raise InputError(f"queries have {queries.shape[1]} numbers each, but codes have {codes.shape[1]}")
    n = check_integer("n", n, 1, len(codes))
    fixed = panels_bytes(*codes.shape) + 12 * n * len(queries)
    at_once = min(PANEL, _rows_at_once(len(codes), codes.shape[1], fixed, budget, 40 * n))
    packed, kernels = panels("codes", codes), backend()
    keys = np.empty((min(at_once, len(queries)), len(codes)), np.uint64)
    numbers, similarities = np.empty((len(queries), n), np.int64), np.empty((len(queries), n), np.float32)
    for first, rows in unit_rows("queries", queries):
        rows = np.pad(rows, ((0, 0), (0, padded(codes.shape[1]) - codes.shape[1])))
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once]
            place, block = slice(first + start, first + start + len(some)), keys[: len(some)]
            kernels.similarity_keys(packed, some, np.full(len(some), -1), block)
            kernels.sort_rows(block, n)
            numbers[place], similarities[place] = _read_keys(block[:, :n])
            progress(place.stop, len(queries))
    return numbers, similarities


def _on_processor(codes, relevant: Classes | LabelSets, queries, budget: int, progress) -> tuple:
    """(sums over queries of what is gained up to each rank, and of its share; average precision of each query)."""
    n, k = codes.shape
    at_once = min(len(queries), rows_at_once(n, k, relevant, budget))
    packed, kernels = panels("codes", codes), backend()
    keys = np.empty((at_once, n), np.uint64)
    sums, average = np.zeros((2, n - 1)), np.empty(len(queries))
    progress(0, len(queries))
    for start in range(0, len(queries), at_once):
        own = queries[start : start + at_once]
        block = keys[: len(own)]
        kernels.similarity_keys(packed, unpack(packed, own), own, block)
        kernels.sort_rows(block, n)
        gains = block.view(np.float64)[:, : n - 1]  # in place of the keys: the query's own stands last
        relevant.gains(kernels, block, own, gains, average[start : start + len(own)])
        kernels.add_gains(gains, sums)
        progress(start + len(own), len(queries))
    return sums, average


def rows_at_once(n: int, k: int, relevant: Classes | LabelSets, budget: int) -> int:
    """Queries that are ranked together, so that all of it stays within the budget."""
    return _rows_at_once(n, k, panels_bytes(n, k) + relevant.n_bytes(n_threads()) + 40 * n, budget)


def _rows_at_once(n: int, k: int, fixed: int, budget: int, more: int = 0) -> int:
    row = 8 * n + 8 * padded(k) + more
    if fixed + row > budget:
        needed = f"{n} documents with codes of {k} numbers take at least {format_memory(fixed + row)}"
        raise InputError(f"memory of {format_memory(budget)} is too little: {needed}")
    # Few long rows would leave threads without work.
    return min((budget - fixed) // row, max(_AT_ONCE // row, 64))


def _read_keys(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The document numbers and similarities that keys are made of. Rounding may lead a little beyond 1."""
    upper = (keys >> np.uint64(32)).astype(np.uint32)
    bits = np.where(upper >> np.uint32(31), upper, np.uint32(2**31 - 1) - upper)
    return (keys & np.uint64(2**32 - 1)).astype(np.int64), np.clip(bits.view(np.float32), -1, 1)
