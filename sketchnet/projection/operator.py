"""What every scheme shares: the frozen law, and the operator that is a law sampled for a width and a seed."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import numpy as np

from sketchnet import random
from sketchnet.checks import check_integer
from sketchnet.data.csr import CsrBatch, check_finite, sparse_rows
from sketchnet.errors import InputError
from sketchnet.kernels import backend as kernel_backend
from sketchnet.memory import parse_memory
from sketchnet.projection.device_choice import gpu_for
from sketchnet.projection.rows import checked_parts, joined_dtype, places
from sketchnet.projection.slicing import Plan, spans

_MOST_IDS = 2**40  # that a block may be asked for: far more than fit, but not so many that NumPy fails oddly


@dataclass(frozen=True)
class Scheme(ABC):
    """The law of a random d x k matrix P with E|xP|^2 = |x|^2 for every x. `sample` fixes d and the seed."""

    k: int

    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_integer("k", self.k, 1, 2**31))

    @abstractmethod
    def sample(self, d: int, seed: int = 0) -> Operator:
        """The operator for `d` columns. Its matrix is a function of (scheme, d, seed) and is never stored."""


class Operator(ABC):
    """A projection matrix P, d x k, known by its scheme, width and seed alone.

    `scale` multiplies entries that are drawn with unit variance (or as signs); it depends on the full k and d, never
    on the slice in hand.
    """

    sparse = False  # whether rows of P are sparse, so that sparse output makes sense

    @property
    def per_entry(self) -> float:
        """Products for each non-zero of the data."""
        return self.k

    def __init__(self, scheme: Scheme, d: int, seed: int, scale: float):
        self.scheme = scheme
        self.d = check_integer("d", d, 1, 2**63)
        self.seed = check_integer("seed", seed, 0, 2**64 - 1)
        self.scale = scale
        self.k = scheme.k

    def __repr__(self) -> str:
        return f"{self.scheme!r}.sample(d={self.d}, seed={self.seed})"

    def __reduce__(self):
        # Pickles hold the law, width and seed, none of what was derived from them.
        return self.scheme.sample, (self.d, self.seed)

    def config(self) -> dict:
        """All that determines P, in plain types."""
        scheme = {"name": self.scheme.name, **dataclasses.asdict(self.scheme)}
        return {"scheme": scheme, "d": self.d, "seed": self.seed, "layout": random.LAYOUT_VERSION}

    # -- the matrix itself

    def block(self, rows, cols=slice(None), *, dtype=np.float32, backend: str = "cpu") -> np.ndarray:
        """The entries P[rows, cols]; `rows` and `cols` are slices, ranges or arrays of ids."""
        rows, cols = as_ids(rows, self.d, "row"), as_ids(cols, self.k, "column")
        if len(rows) == 0 or len(cols) == 0:
            return np.zeros((len(rows), len(cols)), dtype)
        first, last = int(cols.min()), int(cols.max())
        entries = self.entries(rows, slice(first, last + 1), kernel_backend(backend))
        return (entries[:, cols - first] * self.scale).astype(dtype)

    def solve_gram(self, Y: np.ndarray, memory: str | int | None = None) -> np.ndarray:
        """Y (P^T P)^+ in float64; the k x k matrix is summed over row slices of P."""
        gram = np.zeros((self.k, self.k))
        for span in spans(self.d, max(1, parse_memory(memory) // (32 * self.k))):
            rows = self.block(span, dtype=np.float64)
            gram += rows.T @ rows
        rounding = self.k * np.finfo(np.float64).eps
        return Y.astype(np.float64) @ np.linalg.pinv(gram, rcond=rounding, hermitian=True)

    # -- projecting

    def apply(
        self,
        X,
        *,
        dtype=None,
        out=None,
        sparse_output: bool = False,
        memory: str | int | None = None,
        backend="cpu",
        device: str | None = None,
    ):
        """X @ P for X with d columns: sparse or dense, of NumPy, scipy or torch, a `CsrBatch`, or a data set on disk (a
        `ShardSet`, or its folder), which is projected shard by shard.

        The result is a dense array, float32 if X is float32 and float64 otherwise unless `dtype` or `out` say so. With
        `sparse_output` the sparse schemes return a scipy CSR array. `memory` bounds what is used beyond X and the
        result. Repeated ids in a row add up; NaN, infinity and ids outside [0, d) are errors. With `device="cuda"` rows
        pass through a GPU, and `memory` bounds what is used there; "auto" takes one if there is one and it pays.
        """
        kernels, budget = kernel_backend(backend), parse_memory(memory)
        parts = checked_parts(X, self.d)
        dtype = output_dtype(joined_dtype(parts), dtype if out is None else out.dtype)
        gpu = gpu_for(device, parts, self.k, dtype, sparse_output, self.per_entry)
        if sparse_output:
            if not self.sparse:
                raise InputError(f"sparse_output needs a sparse scheme (count_sketch, li), not {self.scheme.name}")
            if out is not None:
                raise InputError("out takes dense results; leave it out with sparse_output")
            return self._apply_to_sparse(parts, dtype, budget, kernels)
        n = places(parts)[-1].stop
        if out is None:
            out = np.empty((n, self.k), dtype)
        elif out.shape != (n, self.k):
            raise InputError(f"out has shape {out.shape}; the result has shape {(n, self.k)}")
        elif not out.flags.writeable:
            raise InputError("out is read-only")
        for part, span in zip(parts, places(parts)):
            if gpu is not None:
                from sketchnet.projection.on_device import project_into  # here: the processor does not need torch

                project_into(self, part, out[span], gpu, memory)
            elif isinstance(part, CsrBatch):
                for _ in self.run(part, out[span], self.plan(part, budget), kernels):
                    pass
            else:
                self._apply_to_dense(part, out[span], budget, kernels)
        return out

    @abstractmethod
    def plan(self, X: CsrBatch, budget: int) -> Plan:
        """The units in which `run` projects X within `budget` bytes."""

    @abstractmethod
    def run(self, X: CsrBatch, out: np.ndarray, plan: Plan, kernels: ModuleType, done: int = 0) -> Iterator[int]:
        """Project X unit by unit into `out`, leaving out the first `done`; yields how many units are done."""

    @abstractmethod
    def entries(self, rows: np.ndarray, columns: slice, kernels: ModuleType) -> np.ndarray:
        """P[rows, columns] / scale."""

    def _apply_to_sparse(self, parts: list, dtype, budget: int, kernels: ModuleType):
        """X @ P as a scipy CSR array, where rows of P are sparse."""
        raise NotImplementedError

    def _apply_to_dense(self, X: np.ndarray, out: np.ndarray, budget: int, kernels: ModuleType) -> None:
        check_finite(X)
        for span in spans(len(X), max(1, budget // (2 * 24 * self.d))):  # ids, values and their like: half the budget
            part = sparse_rows(X[span])
            for _ in self.run(part, out[span], self.plan(part, budget), kernels):
                pass


def as_ids(ids, limit: int, what: str) -> np.ndarray:
    """Ids given as a slice, range, integer or array, as an int64 array within [0, limit)."""
    if isinstance(ids, slice):
        ids = range(*ids.indices(limit))
    if isinstance(ids, range):
        return _written_out(ids, limit, what)
    ids = np.atleast_1d(np.asarray(ids))
    if ids.ndim != 1 or (ids.dtype.kind not in "iu" and ids.size):
        raise InputError(f"{what} ids must be a one-dimensional array of integers, not {ids.ndim}-d of {ids.dtype}")
    if ids.size:
        _check_within(int(ids.min()), int(ids.max()), limit, what)
    return ids.astype(np.int64)


def _written_out(ids: range, limit: int, what: str) -> np.ndarray:
    """NumPy's arange of a range would be floats where that ends at 2**63, though its last id is less."""
    count = max(0, -((ids.start - ids.stop) // ids.step))  # len() may not be able to tell
    if count == 0:
        return np.empty(0, np.int64)
    _check_within(min(ids[0], ids[-1]), max(ids[0], ids[-1]), limit, what)
    if count > _MOST_IDS:
        raise InputError(f"{count} {what} ids are too many for one block; ask for at most {_MOST_IDS} at a time")
    return ids.start + (ids.step if count > 1 else 0) * np.arange(count)


def _check_within(least: int, most: int, limit: int, what: str) -> None:
    if least < 0 or most >= limit:
        raise InputError(f"{what} ids run from {least} to {most}; allowed are 0 to {limit - 1}")


def output_dtype(given: np.dtype, dtype=None) -> np.dtype:
    """Return float32 for float32 and float64 for all else, as scikit-learn does, unless the caller asks for a type."""
    dtype = np.dtype(dtype or (np.float32 if given == np.float32 else np.float64))
    if dtype not in (np.float32, np.float64):
        raise InputError(f"dtype {dtype} is not possible; results are float32 or float64")
    return dtype
