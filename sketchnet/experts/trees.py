"""Boosted trees over what values of fields, and of pairs of fields, meant in other rows, and over numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sketchnet import random
from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.experts.blend import row_losses
from sketchnet.experts.expert import Expert
from sketchnet.experts.field_pairs import choose_pairs
from sketchnet.experts.field_statistics import FieldStatistics
from sketchnet.experts.rows import Sample
from sketchnet.experts.tree_text import join_models, read_trees, write_model
from sketchnet.kernels.cpu.threads import n_threads

_ROUNDS, _PATIENCE = 2000, 20
_RATES = {"quick": (0.1, 0.1), "auto": (0.05, 0.1), "best": (0.03, 0.05)}  # where work is light, and where it is not
_DRAWS = {"quick": 1, "auto": 2, "best": 6}  # of folds; the answer is their mean
_LEAVES, _MANY_LEAVES, _MANY_ROWS = (31, 8), 63, 200_000  # of a tree: one of these, or many if there are many rows
# Work is rows times features times outputs: a round takes about two nanoseconds of it.
_LIGHT, _LIGHT_NUMBERS = 1 << 22, 1 << 19  # with fields, and with numbers alone
_MOST = 1 << 27  # a sample of more rows is taken
_ROW = 1 << 12  # of one row, at most
_CLEARLY = 2.0  # standard errors by which the loss must fall for pairs: on few rows they often hurt
_SHARED = 1 << 25  # numbers that are worth a second thread, which costs where others want the cores
_PIECE = 1 << 14  # rows that are answered at once


class TreesExpert(Expert):
    """Gradient-boosted trees (LightGBM) on `FieldStatistics`.

    Held-back rows choose the number of trees, and whether pairs of fields are used: `order` 1 or 2.
    """

    name = "trees"
    usual = {"order": 1.0, "trees": 100.0, "leaves": 8.0, "rate": 0.1}  # noqa: RUF012

    @classmethod
    def check(cls, sample: Sample, kind: str, n_outputs: int) -> None:
        if not cls.applies(sample, kind, n_outputs):
            few = "rows of tables or of few columns, and for one label a row of not too many classes"
            raise InputError(f"experts='trees' is not possible for such rows; trees are for {few}")

    @classmethod
    def applies(cls, sample: Sample, kind: str, n_outputs: int) -> bool:
        if sample.fields is None or kind == "multilabel":
            return False
        return FieldStatistics(kind, n_outputs, sample.fields).n_features * n_outputs <= _ROW

    def fit(self, train: Sample, valid: Sample) -> np.ndarray:
        statistics, sample = self._prepare(train, 1)
        rate, several = self._plan(statistics, sample)
        n = sample.rows.n_rows
        trial = _Trial(self, valid)
        trial.run(
            statistics, sample, 1, rate, [*_LEAVES] if several else [_LEAVES[0] if n <= _MANY_ROWS else _MANY_LEAVES]
        )
        if statistics.n_fields > 1:
            statistics, sample = self._prepare(train, 2)
            if statistics.n_features * self.n_outputs <= _ROW:
                rate, _ = self._plan(statistics, sample)
                trial.run(statistics, sample, 2, rate, [round(self.chosen["leaves"])])
        return trial.answer

    def refit(self, sample: Sample) -> None:
        order, trees, leaves = (max(1, round(self.chosen[name])) for name in ("order", "trees", "leaves"))
        statistics, sample = self._prepare(sample, min(2, order))
        light = self._work(statistics, sample) <= _LIGHT_NUMBERS
        boosters = []
        for draw in range(_DRAWS[self.effort] if statistics.n_fields or light else 1):
            features = statistics.learn(sample, self.seed, draw)
            boosters.append(self._grow(features, sample, leaves, self.chosen["rate"], trees, draw))
        self._keep(statistics, self._join(boosters, statistics))

    @property
    def n_columns(self) -> int:
        return len(self._statistics.fields)

    def logits(self, rows: CsrBatch) -> np.ndarray:
        out = np.empty((rows.n_rows, self.n_outputs), np.float32)
        for span in _spans(rows):
            features = self._statistics.apply(rows.rows(span))
            out[span] = _answer(self._booster, features, self.n_outputs)
        return out

    def contributions(self, rows: CsrBatch, outputs: np.ndarray) -> np.ndarray:
        """TreeSHAP's share of each feature, divided over the entries of the row that it was made of."""
        parts = [np.empty(0, np.float32)]
        for span in _spans(rows):
            piece = rows.rows(span)
            shares = self._booster.predict(self._statistics.apply(piece), pred_contrib=True, num_threads=n_threads())
            shares = np.asarray(shares).reshape(piece.n_rows, self.n_outputs, -1)
            own = shares[np.arange(piece.n_rows), outputs[span], :-1]
            parts.append(self._statistics.share_out(piece, own))
        return np.concatenate(parts)

    def state(self) -> tuple[dict[str, np.ndarray], dict]:
        text = np.frombuffer(bytearray(self._text.encode()), np.uint8)
        return {**self._statistics.arrays(), "text": text}, {"chosen": self.chosen}

    def restore(self, arrays: dict[str, np.ndarray], settings: dict) -> None:
        arrays, chosen = dict(arrays), settings.get("chosen")
        text = arrays.pop("text", np.empty(0, np.float32))
        if text.dtype != np.uint8 or not isinstance(chosen, dict) or chosen.keys() != self.usual.keys():
            raise InputError("the trees are no text, or what was chosen for them is missing")
        statistics = FieldStatistics.from_arrays(self.kind, self.n_outputs, arrays)
        if not all(isinstance(value, float) and 0 < value < math.inf for value in chosen.values()):
            raise InputError(f"what was chosen for the trees must be positive numbers, not {chosen}")
        trees = read_trees(text.tobytes().decode(errors="replace"), self.n_outputs, statistics.n_features)
        self.chosen = dict(chosen)
        # Written anew from what was checked: LightGBM ends the process over a text that does not fit its own header.
        self._keep(statistics, write_model(trees, self.kind, self.n_outputs, statistics.n_features))

    def _keep(self, statistics: FieldStatistics, text: str) -> None:
        self._statistics, self._text, self._booster = statistics, text, _load(text)

    def _prepare(self, sample: Sample, order: int) -> tuple[FieldStatistics, Sample]:
        """Return statistics that have learnt nothing yet, and as many of the rows as trees can learn from."""
        fields = sample.fields
        if fields is None:
            raise InputError("trees need the fields of a table")
        statistics = FieldStatistics(self.kind, self.n_outputs, fields)
        if order == 2:
            pairs = choose_pairs(statistics, sample, self.seed)
            statistics = FieldStatistics(self.kind, self.n_outputs, fields, pairs)
        n, most = sample.rows.n_rows, _MOST // max(1, statistics.n_features * self.n_outputs)
        if n > most:
            drawn = random.shuffled(n, self.seed, random.STREAM_FIELD_ROWS)[:most]
            sample = sample.take(np.sort(drawn))
        return statistics, sample

    def _plan(self, statistics: FieldStatistics, sample: Sample) -> tuple[float, bool]:
        """Return the learning rate, and whether there is time to try several sizes of trees."""
        light = self._work(statistics, sample) <= (_LIGHT if statistics.n_fields else _LIGHT_NUMBERS)
        return _RATES[self.effort][0 if light else 1], light and self.effort != "quick"

    def _work(self, statistics: FieldStatistics, sample: Sample) -> int:
        return sample.rows.n_rows * statistics.n_features * self.n_outputs

    def _grow(self, features, sample: Sample, leaves: int, rate: float, rounds: int, draw: int, held_back=None) -> Any:
        """Return a booster of so many rounds; with held-back features and their sample, of as many as serve them."""
        import lightgbm

        settings = self._settings(leaves, rate, draw, features)
        weights = None if sample.weights is None else _mean_one(sample)
        rows = lightgbm.Dataset(features, np.asarray(sample.targets), weight=weights, params=settings)
        if held_back is None:
            return lightgbm.train(settings, rows, rounds)
        features, valid = held_back
        weights = None if valid.weights is None else _mean_one(valid)
        checked = rows.create_valid(features, np.asarray(valid.targets), weight=weights)
        stop = lightgbm.early_stopping(_PATIENCE, verbose=False)
        booster = lightgbm.train(settings, rows, rounds, valid_sets=[checked], callbacks=[stop])
        while booster.current_iteration() > max(1, booster.best_iteration):
            booster.rollback_one_iter()
        return booster

    def _settings(self, leaves: int, rate: float, draw: int, features: np.ndarray) -> dict[str, Any]:
        draws = random.words(self.seed, random.STREAM_TREES, draw, 0)[0]
        settings: dict[str, Any] = {"num_class": self.n_outputs} if self.kind == "multiclass" else {}
        return settings | {
            "objective": self.kind,
            "learning_rate": rate,
            "num_leaves": leaves,
            "lambda_l2": 1.0,
            "bagging_fraction": 0.8,
            "bagging_freq": 1,
            "feature_fraction": 0.3 if features.shape[1] > 20 else 0.6,
            "seed": int(draws[0] >> 1),
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": n_threads() if features.size > _SHARED else 1,
            "verbosity": -1,
        }

    def _join(self, boosters: list, statistics: FieldStatistics) -> str:
        texts = [booster.model_to_string() for booster in boosters]
        return join_models(texts, self.kind, self.n_outputs, statistics.n_features)


class _Trial:
    """What held-back rows say of several ways to grow trees: the expert keeps the best."""

    def __init__(self, expert: TreesExpert, valid: Sample):
        self._expert, self._valid = expert, valid
        self._losses: np.ndarray | None = None
        self.answer = np.empty(0, np.float32)

    def run(self, statistics: FieldStatistics, sample: Sample, order: int, rate: float, sizes: list[int]) -> None:
        """Grow trees of each size; those with statistics of pairs must be clearly better than those without."""
        expert, valid = self._expert, self._valid
        features, held_back = statistics.learn(sample, expert.seed), statistics.apply(valid.rows)
        for leaves in sizes:
            booster = expert._grow(features, sample, leaves, rate, _ROUNDS, 0, (held_back, valid))
            text = expert._join([booster], statistics)
            answer = _answer(_load(text), held_back, expert.n_outputs)
            losses = row_losses(expert.kind, answer, valid.targets) * _mean_one(valid)
            if not self._is_better(losses, clearly=order > 1):
                continue
            self._losses, self.answer = losses, answer
            expert._keep(statistics, text)
            chosen = {"order": order, "trees": booster.current_iteration(), "leaves": leaves, "rate": rate}
            expert.chosen = {name: float(value) for name, value in chosen.items()}

    def _is_better(self, losses: np.ndarray, clearly: bool) -> bool:
        """Return whether the mean loss falls; clearly: beyond what chance does."""
        if self._losses is None:
            return True
        falls = self._losses - losses
        return bool(falls.mean() > (_CLEARLY * falls.std() / math.sqrt(len(falls)) if clearly else 0))


def _answer(booster, features: np.ndarray, n_outputs: int) -> np.ndarray:
    answers = booster.predict(features, raw_score=True, num_threads=n_threads())
    return np.asarray(answers, np.float32).reshape(len(features), n_outputs)


def _load(text: str) -> Any:
    import lightgbm

    return lightgbm.Booster(model_str=text)


def _spans(rows: CsrBatch) -> list[slice]:
    return [slice(start, min(start + _PIECE, rows.n_rows)) for start in range(0, rows.n_rows, _PIECE)]


def _mean_one(sample: Sample) -> np.ndarray:
    """Return the weights of the rows, scaled."""
    n = sample.rows.n_rows
    return np.ones(n) if sample.weights is None else sample.weights * (n / sample.weights.sum())
