"""Subsampled randomised Hadamard transform, in its usual form and in the dissertation's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from math import ceil, log, log2, sqrt
from numbers import Real

import numpy as np

from sketchnet import random
from sketchnet.checks import check_integer
from sketchnet.data.csr import CsrBatch, check_finite, check_source
from sketchnet.errors import InputError
from sketchnet.memory import DEFAULT_BUDGET, format_memory
from sketchnet.projection.operator import Operator, Scheme
from sketchnet.projection.slicing import Plan, Unit, longest_row, plan_rows, spans


@dataclass(frozen=True)
class SRHT(Scheme):
    """P = D H S up to scale: D random signs, H the Walsh-Hadamard matrix of size 2**m, the data padded with zeros.

    form="subsampled": S picks k different rows of H, so P_ij = sqrt(1/k) * D_i * (-1)**popcount(i & r_j). With k = d =
    2**m this is an isometry. Tropp, "Improved analysis of the subsampled randomized Hadamard transform", 2011.

    form="sparse": P = sqrt(1/k) * D H S with H normalised, as in the dissertation (Ailon and Chazelle 2006). S has
    independent entries that are non-zero with probability `density`, then N(0, 1/density) or, with entries="sign",
    +-sqrt(1/density) (Matousek 2008). The dissertation's density is ln(n)**2 / d for n rows of data.
    """

    form: str = "subsampled"
    density: float | None = None
    entries: str = "normal"

    name = "srht"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.form not in ("subsampled", "sparse"):
            raise InputError(f'form={self.form!r} is not possible for SRHT; it is "subsampled" or "sparse"')
        if self.entries not in ("normal", "sign"):
            raise InputError(f'entries={self.entries!r} is not possible for SRHT; it is "normal" or "sign"')
        if self.form == "sparse":
            if not (isinstance(self.density, Real) and 0 < self.density <= 1):
                raise InputError(
                    f"density={self.density!r} is not possible for SRHT's sparse form; it is in (0, 1], "
                    "in the dissertation ln(n)**2 / d for n rows"
                )
            object.__setattr__(self, "density", float(self.density))
        if self.form == "subsampled" and (self.density is not None or self.entries != "normal"):
            raise InputError('density and entries belong to form="sparse" of SRHT')

    @staticmethod
    def thesis_density(n: int, d: int) -> float:
        """The dissertation's density of S for n rows of d columns: ln(n)**2 / d, at most 1."""
        return min(1.0, log(max(n, 3)) ** 2 / max(d, 1))

    def sample(self, d: int, seed: int = 0) -> SRHTOperator:
        return SRHTOperator(self, d, seed)


class SRHTOperator(Operator):
    scheme: SRHT

    def __init__(self, scheme: SRHT, d: int, seed: int):
        d, density = check_integer("d", d, 1, 2**63), scheme.density  # which the subsampled form has none of
        # Rows of H are drawn without replacement, so there must be k of them.
        self.size = 1 << ((max(d, scheme.k) if density is None else d) - 1).bit_length()
        scale = sqrt(1 / scheme.k) if density is None else sqrt(1 / (scheme.k * self.size * density))
        super().__init__(scheme, d, seed, scale)
        self._per_column = 1.0 if density is None else density * self.size

    @cached_property
    def key(self):
        return random.hash_key(self.seed, random.STREAM_DIAGONAL)

    @cached_property
    def _frequencies(self) -> np.ndarray:
        """k distinct rows of H, by Fisher and Yates' shuffle stopped after k steps.

        Only the places that the shuffle has touched are stored, so the cost is k whatever the size. 128 random bits a
        step make the choice uniform to one part in 2**65.
        """
        moved: dict[int, int] = {}
        chosen = np.empty(self.k, np.uint64)
        for j in range(self.k):
            if j % 1024 == 0:  # a piece at a time: Python's lists are large
                ids = np.arange(j, min(self.k, j + 1024))
                words = random.words(self.seed, random.STREAM_FREQUENCY, ids, 0).tolist()
            w0, w1, w2, w3 = words[j % 1024]
            other = j + ((w0 | w1 << 32 | w2 << 64 | w3 << 96) * (self.size - j) >> 128)
            chosen[j] = moved.get(other, other)
            moved[other] = moved.get(j, j)
        return chosen

    @cached_property
    def thresholds(self) -> np.ndarray:
        assert self.scheme.density is not None
        return random.skip_thresholds(Decimal(self.scheme.density), self.size)

    def picks(self, columns: slice, kernels):
        """Which frequencies make up each column: CSR arrays (offsets, frequencies, weights)."""
        number = np.uint32 if self.size <= 2**32 else np.uint64
        count = columns.stop - columns.start
        if self.scheme.form == "subsampled":
            return np.arange(count + 1), self._frequencies[columns].astype(number), np.ones(count, np.float32)
        ids = np.arange(columns.start, columns.stop)
        drawn = self.size, self.thresholds, self._per_column
        offsets, codes = kernels.draw_skips(self.seed, random.STREAM_S_SKIP, ids, *drawn)
        at, weights = np.where(codes < 0, ~codes, codes), np.where(codes < 0, -1, 1).astype(np.float32)
        if self.scheme.entries == "normal":
            lengths = np.diff(offsets)
            normals = np.empty((count, -(-int(lengths.max()) // 4) * 4), np.float32)
            kernels.draw_normals(self.seed, random.STREAM_S_VALUE, ids, 0, normals)
            weights = normals[np.arange(normals.shape[1]) < lengths[:, None]]
        return offsets, at.astype(number), weights

    @property
    def _parity_limit(self) -> int:
        """Rows with more non-zeros than this are cheaper by the fast transform (both do about as much a step)."""
        return min(2**62, int(self.size * max(1.0, log2(self.size)) / (self.k * self._per_column)))

    @property
    def _few(self) -> bool:
        """Whether the wanted frequencies are so few that the transform may leave its lowest levels to them."""
        return self.size >= 16 and 4 * self.k * self._per_column <= self.size

    def column_spans(self, budget: int) -> list[slice]:
        """Column slices of S that fit: about 32 bytes a non-zero while it is drawn, in half the budget."""
        width = int(budget / 2 / (32 * max(1.0, self._per_column)))
        if width == 0:
            raise InputError(
                f"a column of S has {self._per_column:.0f} non-zeros, too many for a memory budget of "
                f"{format_memory(budget)}; at least {ceil(self._per_column / 16)} KiB are needed"
            )
        return spans(self.k, width)

    def _threads(self, budget: int, itemsize: int) -> int:
        """How many threads may transform at once: each needs room for a whole padded row, in half the budget."""
        threads = int(budget / 2 // (self.size * itemsize))
        if threads == 0:
            raise InputError(
                f"transforming a row of {self.size} columns needs a memory budget of at least "
                f"{ceil(2 * self.size * itemsize / 1024)} KiB, not {format_memory(budget)}"
            )
        return threads

    def plan(self, X: CsrBatch, budget: int) -> Plan:
        if longest_row(X.indptr) > self._parity_limit:
            self._threads(budget, 8)
        rows = plan_rows(X.indptr, self.d, self.k, 0, budget)
        units = [Unit(unit.rows, span) for span in self.column_spans(budget) for unit in rows.units]
        return Plan(units, compact=False, budget=budget)

    def run(self, X, out, plan, kernels, done=0) -> Iterator[int]:
        at, limit = None, self._parity_limit
        threads = self._threads(plan.budget, out.itemsize) if longest_row(X.indptr) > limit else None
        for number, unit in enumerate(plan.units[done:], start=done + 1):
            if unit.columns != at:
                at, picks = unit.columns, self.picks(unit.columns, kernels)
            rows, how = X.rows(unit.rows).arrays, (self.key, self.size, limit, self._few)
            kernels.hadamard_sparse(*rows, *how, *picks, self.scale, out[unit.rows], unit.columns, threads)
            yield number

    def entries(self, rows, columns, kernels) -> np.ndarray:
        out = np.empty((len(rows), columns.stop - columns.start))
        identity = np.arange(len(rows) + 1), rows, np.ones(len(rows))
        how, at_once = (self.key, self.size, 2, False), self.column_spans(DEFAULT_BUDGET)[0].stop
        for span in spans(out.shape[1], at_once):
            picks = self.picks(slice(columns.start + span.start, columns.start + span.stop), kernels)
            kernels.hadamard_sparse(*identity, *how, *picks, 1.0, out, span)
        return out

    def _apply_to_dense(self, X, out, budget, kernels) -> None:
        if self.d <= self._parity_limit:
            return super()._apply_to_dense(X, out, budget, kernels)
        if self.scheme.form == "sparse":  # a column of S may be empty, so bad values need not show in the result
            check_finite(X)
        threads = self._threads(budget, out.itemsize)
        for span in self.column_spans(budget):
            how, picks = (self.key, self.size, self._few), self.picks(span, kernels)
            kernels.hadamard_dense(X, *how, *picks, self.scale, out, span, threads)
        check_source(X, out)
