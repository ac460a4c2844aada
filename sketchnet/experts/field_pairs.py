"""Which pairs of a table's fields say more together than their parts do."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from sketchnet import random
from sketchnet.experts.field_statistics import CountedFolds, FieldStatistics, distinct, log_odds
from sketchnet.experts.rows import Sample
from sketchnet.kernels.cpu.column_ids import ColumnNumbers

_PAIRS = 66  # at most: all of twelve fields
_FIELDS, _ROWS = 32, 1 << 14  # between so many fields, and on so many rows, pairs are compared
_SHRINKAGE = 10.0  # rows that answer as the fields do apart, beside those of a pair


def choose_pairs(statistics: FieldStatistics, sample: Sample, seed: int) -> np.ndarray:
    """Return the pairs of fields that trees may use: all if they are few, else those that say most.

    `statistics` have no pairs.
    """
    pairs = np.array(list(combinations(range(statistics.n_fields), 2)), np.int64).reshape(-1, 2)
    if len(pairs) <= _PAIRS:
        return pairs
    if sample.rows.n_rows > _ROWS:
        order = random.shuffled(sample.rows.n_rows, seed, random.STREAM_FIELD_ROWS)
        sample = sample.take(np.sort(order[:_ROWS]))
    scores = _PairScores(statistics, sample, seed)
    strong = np.isin(pairs, scores.strongest_fields()).all(axis=1)
    pairs = pairs[strong]
    gains = np.array([scores.gain(*pair) for pair in pairs])
    return pairs[np.sort(np.argsort(-gains, kind="stable")[:_PAIRS])]


class _PairScores:
    """How much the loss falls if the answer of two fields, added up, is drawn to what their values mean together.

    Both are counted in other folds.
    """

    def __init__(self, statistics: FieldStatistics, sample: Sample, seed: int):
        self._numbers = statistics.kind == "regression"
        self._counted, self._n_columns = CountedFolds(statistics, sample, seed, 0), len(statistics.fields)
        features, width = statistics.learn(sample, seed), 1 + statistics.n_outputs
        self._answers = [features[:, field * width : (field + 1) * width - 1] for field in range(statistics.n_fields)]

    def strongest_fields(self) -> np.ndarray:
        losses = [self._loss(self._means(answers)) for answers in self._answers]
        return np.argsort(losses, kind="stable")[:_FIELDS]

    def gain(self, a: int, b: int) -> float:
        counted, prior = self._counted, self._counted.prior
        apart = self._means(self._answers[a] + self._answers[b] - (prior if self._numbers else log_odds(prior)))
        keys = counted.values[a] * self._n_columns + counted.values[b]
        values = distinct(keys)
        weights, sums, _ = counted.in_other_folds(ColumnNumbers(values).look_up(keys), len(values))
        together = (sums + _SHRINKAGE * apart) / (weights + _SHRINKAGE)[:, None]
        return self._loss(apart) - self._loss(together)

    def _means(self, answers: np.ndarray) -> np.ndarray:
        return answers if self._numbers else 1 / (1 + np.exp(-answers))

    def _loss(self, means: np.ndarray) -> float:
        targets = self._counted.targets
        if self._numbers:
            losses = np.square(means - targets)
        else:
            losses = -np.log(np.maximum(np.where(targets > 0, means, 1 - means), 1e-6))
        return float(self._counted.weights @ losses.sum(axis=1))
