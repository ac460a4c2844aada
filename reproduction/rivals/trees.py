"""Boosted trees that take categories as such: LightGBM and CatBoost. Of other rows they get chosen columns."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np

from reproduction.rivals.boosting import LightGBM
from reproduction.rivals.columns import FewColumns
from reproduction.rivals.fields import Fields
from reproduction.rivals.rival import Rival, checked_rows, known_rows
from sketchnet.checks import import_extra
from sketchnet.kernels import n_threads

_FEW, _BINS = 2000, 255  # columns up to which numbers deserve as many bins as there can be
_PATIENCE = 50  # rounds without a smaller log loss


class CategoricalLightGBM(LightGBM):
    """`native` decides between its own categories and one-hot columns, where rows have fields."""

    view = "fields"
    takes_several_labels = True
    defaults: ClassVar = {
        "native": False, "width": 5000, "rounds": 1500, "rate": 0.1, "leaves": 31, "share": 0.5, "leaf_rows": 20,
        "l2": 0.0, "smoothing": 10.0,
    }  # fmt: skip
    space: ClassVar = {
        "native": (False, True), "width": (2000, 5000, 20_000), "rate": (0.03, 0.05, 0.1, 0.2),
        "leaves": (8, 31, 127), "share": (0.3, 0.5, 1.0), "leaf_rows": (5, 20, 100), "l2": (0.0, 1.0, 10.0),
        "smoothing": (1.0, 10.0, 100.0),
    }  # fmt: skip

    def _checked(self, X):
        return X if isinstance(X, Fields) else checked_rows(X)

    def _few(self, X, y, settings):
        self._columns = TreeColumns(settings["native"], settings["width"]).fit(X, y)
        return self._columns.transform(X)

    def _categorical(self) -> list[int]:
        return self._columns.categorical

    def _more_parameters(self, settings) -> dict:
        more = {"lambda_l2": settings["l2"], "cat_smooth": settings["smoothing"]}
        few = self._columns.n_columns <= _FEW
        return more | ({"max_bin": _BINS, "min_data_in_bin": 3} if few else {})

    def _learn(self, X, y, settings, valid, deadline) -> None:
        """Several labels: one at a time, on the same columns, each with an equal part of the time that is left."""
        if not self.several_labels_:
            return super()._learn(X, y, settings, valid, deadline)
        few, parameters = self._few(X, y, settings), self._parameters(settings)
        held = None if valid is None else self._columns.transform(valid[0])
        known = settings["rounds"] if isinstance(settings["rounds"], dict) else {}
        other = int(np.median(list(known.values()))) if known else settings["rounds"]
        names = [str(name) for name in self.labels or range(y.shape[1])]
        self._parts = []
        for label, name in enumerate(names):
            now = time.perf_counter()
            own = None if held is None else (held, valid[1][:, label])
            until = now + (deadline - now) / (y.shape[1] - label)
            self._parts.append(self._boost(parameters, (few, y[:, label]), own, known.get(name, other), until))
        settings["rounds"] = {name: best for name, (_, best) in zip(names, self._parts)}

    def _outputs(self, X):
        if not self.several_labels_:
            return super()._outputs(X)
        few = self._columns.transform(X)
        found = [model.predict(few, num_iteration=best, num_threads=n_threads()) for model, best in self._parts]
        return np.column_stack(found)


class CatBoost(Rival):
    """Its own categories where rows have fields. The loss of several labels is one for all of them."""

    name = "CatBoost"
    packages = ("catboost",)
    extra = "rivals"
    view = "fields"
    takes_several_labels = True
    defaults: ClassVar = {"width": 2000, "rounds": 2000, "rate": 0.1, "depth": 6, "l2": 3.0, "noise": 1.0}
    space: ClassVar = {
        "width": (500, 2000, 5000), "rate": (0.03, 0.05, 0.1, 0.2), "depth": (4, 6, 8), "l2": (1.0, 3.0, 10.0),
        "noise": (0.0, 1.0, 5.0),
    }  # fmt: skip

    def _checked(self, X):
        return X if isinstance(X, Fields) else checked_rows(X)

    def _learn(self, X, y, settings, valid, deadline) -> None:
        catboost = import_extra("catboost", self.extra, self.name)
        self._columns = TreeColumns(True, settings["width"]).fit(X, y)

        class Deadline:
            def after_iteration(self, info) -> bool:
                return time.perf_counter() < deadline

        several = self.several_labels_
        loss = "MultiLogloss" if several else "MultiClass" if len(self.classes_) > 2 else "Logloss"
        model = catboost.CatBoostClassifier(
            iterations=settings["rounds"], learning_rate=settings["rate"], depth=settings["depth"],
            l2_leaf_reg=settings["l2"], bagging_temperature=settings["noise"], bootstrap_type="Bayesian",
            loss_function=loss, random_seed=self.seed, thread_count=n_threads(), allow_writing_files=False,
            verbose=False,
        )  # fmt: skip
        how = {"callbacks": [Deadline()]}
        if valid is not None:
            how |= {"eval_set": self._pool(catboost, *known_rows(valid)), "early_stopping_rounds": _PATIENCE}
        self._model = model.fit(self._pool(catboost, X, y), use_best_model=valid is not None, **how)
        settings["rounds"] = max(1, self._model.tree_count_)

    def _pool(self, catboost, X, y=None):
        if isinstance(X, Fields):
            return catboost.Pool(X.frame(), y, cat_features=list(range(X.codes.shape[1])))
        return catboost.Pool(self._columns.transform(X), y)

    def _outputs(self, X):
        catboost = import_extra("catboost", self.extra, self.name)
        found = self._model.predict(self._pool(catboost, X), prediction_type="Probability", thread_count=n_threads())
        return np.asarray(found).reshape(X.shape[0], -1)


class TreeColumns:
    """What trees get of rows: of fields, their numbers or one-hot columns; of others, columns chosen by chi-square."""

    def __init__(self, native: bool, width: int):
        self._native, self._few = native, FewColumns("chi2", width)
        self.categorical: list[int] = []

    def fit(self, X, y) -> TreeColumns:
        self._native = self._native and isinstance(X, Fields)
        if self._native:
            self.categorical, self.n_columns = list(range(X.codes.shape[1])), X.shape[1]
        else:
            self._few.fit(sparse_rows(X), y)
            self.n_columns = self._few.n_columns
        return self

    def transform(self, X):
        if not self._native:
            return self._few.transform(sparse_rows(X))
        return np.column_stack([np.where(X.codes < 0, np.nan, X.codes), X.numbers]).astype(np.float64)


def sparse_rows(X):
    return X.rows if isinstance(X, Fields) else X
