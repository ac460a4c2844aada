"""What the values of a table's fields, and of pairs of fields, meant in other rows: columns that trees can split."""

from __future__ import annotations

import numpy as np

from sketchnet import random
from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.experts.rows import Sample
from sketchnet.kernels.cpu.column_ids import ColumnCounts, ColumnNumbers
from sketchnet.kernels.cpu.field_statistics import read_fields, read_numbers, sum_other_folds
from sketchnet.kernels.cpu.threads import over_range, over_rows

_FOLDS = 8
_SHRINKAGE = 3.0  # rows of average target that every value has beside its own


class FieldStatistics:
    """Features of rows: each field's and pair's statistics, then the columns that are numbers, as they are.

    A field or pair of fields, a group, has for every output what the rows with its value have of it (log-odds, or the
    mean of numbers), shrunk to that of all rows, and the logarithm of their weight. Rows that are learnt from are
    described by the rows of other folds.
    """

    def __init__(self, kind: str, n_outputs: int, fields: np.ndarray, pairs: np.ndarray | None = None):
        self.kind, self.n_outputs, self.fields = kind, n_outputs, fields.astype(np.int32)
        self.pairs = np.empty((0, 2), np.int64) if pairs is None else pairs
        self.n_fields = int(fields.max(initial=-1)) + 1
        self.groups = [(field,) for field in range(self.n_fields)] + [tuple(pair) for pair in self.pairs.tolist()]
        self.numbers = np.flatnonzero(fields[:-1] < 0)  # the last column stands for all that were never seen
        self._keys = [np.empty(0, np.int64)] * len(self.groups)
        self._tables = [np.empty((0, 1 + n_outputs), np.float32)] * len(self.groups)
        self._index = [ColumnNumbers(keys) for keys in self._keys]

    @property
    def n_features(self) -> int:
        return len(self.groups) * (1 + self.n_outputs) + len(self.numbers)

    def learn(self, sample: Sample, seed: int, draw: int = 0) -> np.ndarray:
        """Count the sample's values; return the features of its rows, counted in other folds than their own."""
        counted = CountedFolds(self, sample, seed, draw)
        out = np.zeros((len(counted.targets), self.n_features), np.float32)

        def count(start: int, stop: int) -> None:
            for g in range(start, stop):
                keys = self._keys_of(counted.values, g)
                self._keep(g, distinct(keys))
                weights, sums, totals = counted.in_other_folds(self._look_up(g, keys), len(self._keys[g]) + 1)
                self._tables[g] = self._describe(totals[:, 0], totals[:, 1:], counted.prior, 1 - 1 / _FOLDS)
                out[:, self._span(g)] = self._describe(weights, sums, counted.prior)

        over_range(count, len(self.groups), 64 * len(out) * len(self.groups))
        self._add_numbers(sample.rows, out)
        return out

    def apply(self, rows: CsrBatch) -> np.ndarray:
        """Return the features of rows that were not counted."""
        values, out = self.read(rows), np.zeros((rows.n_rows, self.n_features), np.float32)

        def fill(start: int, stop: int) -> None:
            for g in range(start, stop):
                out[:, self._span(g)] = self._tables[g][self._look_up(g, self._keys_of(values, g))]

        over_range(fill, len(self.groups), 16 * len(out) * len(self.groups))
        self._add_numbers(rows, out)
        return out

    def read(self, rows: CsrBatch) -> np.ndarray:
        """Return for each field and row one more than the column that it has, or 0."""
        values = np.zeros((self.n_fields, rows.n_rows), np.int64)
        over_rows(lambda a, b: read_fields(rows.indptr, rows.indices, self.fields, a, b, values), rows.indptr)
        return values

    def share_out(self, rows: CsrBatch, shares: np.ndarray) -> np.ndarray:
        """Return for each entry its part of the shares (rows x features) of the features that it was read for.

        A pair's share is halved; where the row lacks a field, the other has it all. What is due to no entry is lost.
        """
        values, by_field = self.read(rows), np.zeros((self.n_fields, rows.n_rows))
        for g, group in enumerate(self.groups):
            there = values[list(group)] > 0
            parts = shares[:, self._span(g)].sum(axis=1) / np.maximum(1, there.sum(axis=0))
            for field, has in zip(group, there):
                by_field[field] += np.where(has, parts, 0)
        owners = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
        columns = rows.indices.astype(np.int64)
        fields = self.fields[columns]
        out = np.zeros(len(columns), np.float32)
        read = fields >= 0
        read[read] = values[fields[read], owners[read]] == columns[read] + 1
        out[read] = by_field[fields[read], owners[read]]
        places = self._number_places()[columns]
        out[places >= 0] = shares[owners[places >= 0], places[places >= 0]]
        return out

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all that `from_arrays` needs."""
        return {
            "fields": self.fields,
            "pairs": self.pairs.astype(np.int64),
            "sizes": np.array([len(keys) for keys in self._keys], np.int64),
            "keys": np.concatenate([np.empty(0, np.int64), *self._keys]),
            "tables": np.concatenate([np.empty((0, 1 + self.n_outputs), np.float32), *self._tables]),
        }

    @classmethod
    def from_arrays(cls, kind: str, n_outputs: int, arrays: dict[str, np.ndarray]) -> FieldStatistics:
        """Return the statistics whose arrays these are; raise InputError if they cannot be."""
        _check_arrays(arrays, n_outputs)
        new = cls(kind, n_outputs, arrays["fields"], arrays["pairs"])
        sizes = arrays["sizes"]
        if len(sizes) != len(new.groups) or (sizes < 0).any() or (sizes > len(arrays["keys"])).any():
            raise InputError(f"{len(sizes)} sizes of tables do not fit {len(new.groups)} fields and pairs")
        ends = np.cumsum(sizes)
        if sizes.sum() != len(arrays["keys"]) or len(arrays["tables"]) != sizes.sum() + len(sizes):
            raise InputError("the tables of fields do not have a row for each of their values")
        for g, end in enumerate(ends.tolist()):
            new._keep(g, arrays["keys"][end - sizes[g] : end])
            new._tables[g] = np.ascontiguousarray(arrays["tables"][end - sizes[g] + g : end + g + 1])
        return new

    def _keep(self, g: int, keys: np.ndarray) -> None:
        self._keys[g], self._index[g] = keys, ColumnNumbers(keys)

    def _look_up(self, g: int, keys: np.ndarray) -> np.ndarray:
        """Return places in the group's table; the last one is that of a value that was never seen."""
        return self._index[g].look_up(keys)

    def _keys_of(self, values: np.ndarray, g: int) -> np.ndarray:
        """Return a number for each row's value of the group."""
        first, *rest = self.groups[g]
        return values[first] * len(self.fields) + values[rest[0]] if rest else values[first]

    def _span(self, g: int) -> slice:
        return slice(g * (1 + self.n_outputs), (g + 1) * (1 + self.n_outputs))

    def _describe(self, weights, sums, prior, share: float = 1.0) -> np.ndarray:
        """Return the statistics of sums; `share` scales the weight of all rows to that of other folds."""
        means = (sums + _SHRINKAGE * prior) / (weights + _SHRINKAGE)[:, None]
        means = means if self.kind == "regression" else log_odds(means)
        return np.c_[means, np.log1p(weights * share)].astype(np.float32)

    def _add_numbers(self, rows: CsrBatch, out: np.ndarray) -> None:
        if len(self.numbers):
            places = self._number_places()
            over_rows(lambda a, b: read_numbers(*rows.arrays, places, a, b, out), rows.indptr)

    def _number_places(self) -> np.ndarray:
        """Return the feature that each column is, -1 for none."""
        places = np.full(len(self.fields), -1, np.int64)
        places[self.numbers] = self.n_features - len(self.numbers) + np.arange(len(self.numbers))
        return places


class CountedFolds:
    """A sample whose values are counted by fold."""

    def __init__(self, statistics: FieldStatistics, sample: Sample, seed: int, draw: int):
        self.targets = _target_columns(statistics.kind, sample.targets, statistics.n_outputs)
        n = len(self.targets)
        self.weights = np.ones(n) if sample.weights is None else sample.weights * (n / sample.weights.sum())
        self.prior = self.weights @ self.targets / self.weights.sum()
        self.folds, self.values = draw_folds(sample, seed, draw), statistics.read(sample.rows)

    def in_other_folds(self, codes: np.ndarray, n_codes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the weight of the rows with the same code, their sums of targets, and both for each code in all."""
        totals = np.zeros((n_codes, 1 + self.targets.shape[1]))
        weights, sums = np.empty(len(codes)), np.empty(self.targets.shape)
        sum_other_folds(codes, self.folds, _FOLDS, self.weights, self.targets, totals, weights, sums)
        return weights, sums, totals


def draw_folds(sample: Sample, seed: int, draw: int) -> np.ndarray:
    """Return the fold of each row: folds of equal size, or groups of rows shared out equally."""
    groups = np.arange(sample.rows.n_rows)
    if sample.groups is not None:
        groups = np.unique(sample.groups, return_inverse=True)[1]
    n = int(groups.max(initial=-1)) + 1
    folds = np.empty(n, np.int64)
    folds[random.shuffled(n, seed, random.STREAM_FIELD_FOLDS, draw)] = np.arange(n) % _FOLDS
    return folds[groups]


def distinct(keys: np.ndarray) -> np.ndarray:
    """Return each number that occurs once, the most frequent first."""
    counts = ColumnCounts()
    counts.add(keys)
    return counts.by_frequency()


def log_odds(means: np.ndarray) -> np.ndarray:
    """Return the logarithm of means / (1 - means), of means that are not quite 0 or 1."""
    means = np.clip(means, 1e-6, 1 - 1e-6)
    return np.log(means / (1 - means))


def _target_columns(kind: str, targets, n_outputs: int) -> np.ndarray:
    """Return the numbers whose means are statistics: one an output."""
    targets = np.asarray(targets)
    if kind == "multiclass":
        return (targets[:, None] == np.arange(n_outputs)).astype(np.float64)
    return targets[:, None].astype(np.float64)


def _check_arrays(arrays: dict[str, np.ndarray], n_outputs: int) -> None:
    """Raise InputError unless the arrays of statistics have possible shapes, dtypes and numbers."""
    shapes = {
        "fields": (np.int32, (-1,)),
        "pairs": (np.int64, (-1, 2)),
        "sizes": (np.int64, (-1,)),
        "keys": (np.int64, (-1,)),
        "tables": (np.float32, (-1, 1 + n_outputs)),
    }
    for name, (dtype, shape) in shapes.items():
        array = arrays.get(name)
        if array is None or array.dtype != dtype or array.ndim != len(shape) or array.shape[1:] != shape[1:]:
            raise InputError(f"the array {name!r} of the trees must be of {np.dtype(dtype)} and shape {shape}")
    fields, pairs, keys = arrays["fields"], arrays["pairs"], arrays["keys"]
    if len(fields) == 0 or fields.min() < -1 or fields[-1] != -1 or fields.max() >= len(fields):
        raise InputError("the numbers of fields are out of range")
    if len(pairs) and (pairs.min() < 0 or pairs.max() > fields.max()):
        raise InputError("a pair names a field that does not exist")
    if len(keys) and (keys.min() < 0 or keys.max() >= len(fields) ** 2):
        raise InputError("a value of a field is out of range")
    if not np.isfinite(arrays["tables"]).all():
        raise InputError("the tables of fields have numbers that are not finite")
