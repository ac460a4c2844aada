"""Boosted trees on fewer columns: XGBoost and LightGBM. Held-back rows choose the number of rounds, by log loss."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np

from reproduction.rivals.columns import FewColumns
from reproduction.rivals.rival import Rival, known_rows, library
from sketchnet.kernels import n_threads

_BINS = 16  # entries of rows of text differ little: more bins cost time alone
_PATIENCE = 30  # rounds without a smaller log loss


class Boosting(Rival):
    def _few(self, X, y, settings):
        self._columns = FewColumns(settings["columns"], settings["width"], self.seed).fit(X, y)
        return self._columns.transform(X)

    def _held_back(self, valid):
        X, y = known_rows(valid)
        return self._columns.transform(X), y


class XGBoost(Boosting):
    name = "XGBoost"
    packages = ("xgboost",)
    defaults: ClassVar = {
        "columns": "chi2", "width": 5000, "rounds": 600, "rate": 0.2, "depth": 6, "share": 0.3, "child_weight": 1.0,
    }  # fmt: skip

    def grid(self, X, y) -> list[dict]:
        grid = [{}, {"width": 20_000}, {"columns": "hashed", "width": 2**14}, {"depth": 10}, {"rate": 0.1}]
        return [*grid, {"child_weight": 0.1}, {"depth": 3}, {"columns": "hashed", "width": 2**16}]

    def _learn(self, X, y, settings, valid, deadline) -> None:
        xgboost = library("xgboost", self.name)
        few = self._few(X, y, settings)
        classes = len(self.classes_)
        parameters = {
            "tree_method": "hist", "max_bin": _BINS, "eta": settings["rate"], "max_depth": settings["depth"],
            "colsample_bynode": settings["share"], "min_child_weight": settings["child_weight"], "seed": self.seed,
            "nthread": n_threads(), "verbosity": 0,
        }  # fmt: skip
        if classes > 2:
            parameters |= {"objective": "multi:softmax", "num_class": classes, "eval_metric": "mlogloss"}
        else:
            parameters |= {"objective": "binary:logistic", "eval_metric": "logloss"}

        class Deadline(xgboost.callback.TrainingCallback):
            def after_iteration(self, model, epoch, evals_log) -> bool:
                return time.perf_counter() > deadline

        rows = xgboost.QuantileDMatrix(few, y, max_bin=_BINS, nthread=n_threads())
        how = {"callbacks": [Deadline()], "verbose_eval": False}
        if valid is not None:
            held, labels = self._held_back(valid)
            how["evals"] = [(xgboost.QuantileDMatrix(held, labels, ref=rows, max_bin=_BINS), "valid")]
            # The first callback that stops keeps later ones from being asked, and this one has the best round to note.
            how["callbacks"].insert(0, xgboost.callback.EarlyStopping(rounds=_PATIENCE, save_best=True))
        self._model = xgboost.train(parameters, rows, settings["rounds"], **how)
        settings["rounds"] = self._model.num_boosted_rounds()

    def _decide(self, X) -> np.ndarray:
        rows = library("xgboost", self.name).DMatrix(self._columns.transform(X), nthread=n_threads())
        found = self._model.predict(rows)
        return (found > 0.5 if len(self.classes_) == 2 else found).astype(np.int64)


class LightGBM(Boosting):
    name = "LightGBM"
    packages = ("lightgbm",)
    defaults: ClassVar = {
        "columns": "chi2", "width": 5000, "rounds": 600, "rate": 0.1, "leaves": 31, "share": 0.3, "leaf_rows": 5,
    }  # fmt: skip

    def grid(self, X, y) -> list[dict]:
        grid = [{}, {"width": 20_000}, {"leaves": 8}, {"columns": "hashed", "width": 2**14}, {"leaf_rows": 20}]
        return [*grid, {"width": 20_000, "leaves": 8}, {"rate": 0.05}, {"leaves": 127}]

    def _learn(self, X, y, settings, valid, deadline) -> None:
        few = self._few(X, y, settings)
        held = None if valid is None else self._held_back(valid)
        parameters = self._parameters(settings)
        self._model, self._best = self._boost(parameters, (few, y), held, settings["rounds"], deadline)
        settings["rounds"] = self._best

    def _parameters(self, settings: dict) -> dict:
        classes = 2 if self.several_labels_ else len(self.classes_)
        parameters = {
            "learning_rate": settings["rate"], "num_leaves": settings["leaves"], "max_bin": _BINS,
            "feature_fraction": settings["share"], "min_data_in_leaf": settings["leaf_rows"], "seed": self.seed,
            "num_threads": n_threads(), "verbosity": -1, "force_col_wise": True, "deterministic": True,
            "min_data_in_bin": 1, "feature_pre_filter": False,
        } | self._more_parameters(settings)  # fmt: skip
        several = {"objective": "multiclass", "num_class": classes}
        return parameters | (several if classes > 2 else {"objective": "binary"})

    def _boost(self, parameters: dict, rows: tuple, held, rounds: int, deadline: float):
        """(the trees, the number of rounds with the least held-back loss, or of all)."""
        lightgbm = library("lightgbm", self.name)

        def stop_at_deadline(state) -> None:
            if time.perf_counter() > deadline:
                raise lightgbm.callback.EarlyStopException(state.iteration, state.evaluation_result_list or [])

        stop_at_deadline.order = 40  # after those that note the losses
        categorical = self._categorical()
        learnt = lightgbm.Dataset(*rows, params=parameters, categorical_feature=categorical)
        how = {"callbacks": [stop_at_deadline]}
        losses: dict = {}
        if held is not None:
            how["valid_sets"] = [lightgbm.Dataset(*held, reference=learnt, params=parameters)]
            record = lightgbm.record_evaluation(losses)
            how["callbacks"] = [record, lightgbm.early_stopping(_PATIENCE, verbose=False), stop_at_deadline]
        model = lightgbm.train(parameters, learnt, rounds, **how)
        if held is None:
            return model, model.current_iteration()
        (curve,) = losses["valid_0"].values()
        return model, int(np.argmin(curve)) + 1

    def _more_parameters(self, settings: dict) -> dict:
        return {}

    def _categorical(self) -> list[int]:
        return []

    def _outputs(self, X) -> np.ndarray:
        found = self._model.predict(self._columns.transform(X), num_iteration=self._best, num_threads=n_threads())
        return found if found.ndim == 2 else np.column_stack([1 - found, found])
