"""What estimators with a model share: settings, rows of any kind, training, saving and loading."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from sketchnet.data.csr import CsrBatch, as_csr, sparse_rows
from sketchnet.data.shard_set import ShardSet
from sketchnet.errors import InputError
from sketchnet.estimators.rows import SparseInput, opened_rows, takes_any_id
from sketchnet.experts.model import load_model
from sketchnet.training.course import Course, silent
from sketchnet.training.examples import Examples
from sketchnet.training.loop import train
from sketchnet.training.model import Model

# Parameters that are called otherwise in the configs, and those that are not in them.
_OTHER_NAMES = {"learn_projection": "learn", "learning_rate": "rate", "sparse_learning_rate": "sparse_rate"}
_OF_BLENDS = ("experts", "metric", "effort", "validation_fraction", "valid_last")
_NO_SETTINGS = {*_OF_BLENDS, "class_weight", "memory", "device", "threads", "verbose", "random_state"}


class ModelEstimator(SparseInput):
    """For estimators that keep a `sketchnet.training.Model` in `model_`."""

    _tasks: ClassVar[tuple[str, ...]]
    _get_param_names: Any  # scikit-learn's
    model_: Any
    n_features_in_: int
    options: Any
    memory: Any
    device: Any
    threads: Any
    verbose: Any

    def save(self, folder) -> None:
        """Write a model folder, as `sketchnet train` does."""
        check_is_fitted(self)
        self.model_.save(folder)

    @classmethod
    def load(cls, folder):
        """An estimator with the model of a folder, from `save` or from `sketchnet train`. No code in it is run."""
        model = load_model(folder)
        if model.task.kind not in cls._tasks:
            raise InputError(f"{Path(folder)} is a model for {model.task.kind}; {cls.__name__} cannot load it")
        estimator = cast(Any, cls)(**cls._parameters(model))
        estimator.model_ = model
        estimator.n_features_in_ = model.n_columns
        estimator._restore()
        estimator._set_history()
        return estimator

    def _restore(self) -> None:
        """Set what follows from a model that was loaded, beside it."""

    @classmethod
    def _parameters(cls, model) -> dict:
        """Return the parameters by which such a model is trained."""
        return {name: model.settings[ours] for name, ours in cls._names().items()} | {
            "random_state": model.settings["seed"]
        }

    @classmethod
    def _names(cls) -> dict[str, str]:
        """The parameters that are settings of a model, as the configs call them."""
        return {name: _OTHER_NAMES.get(name, name) for name in cls._get_param_names() if name not in _NO_SETTINGS}

    def _settings(self) -> dict:
        settings = {ours: getattr(self, name) for name, ours in self._names().items()}
        return {**settings, "options": {} if self.options is None else self.options}

    def _train(self, model: Model, examples: Examples, held_back: Examples | None, course: Course, loaded: float):
        how = {"memory": self.memory, "report": print if self.verbose else silent, "loaded": loaded}
        train(model, examples, held_back, course=course, **how, threads=self.threads)
        if self.device == "auto":
            model.network.to("cpu")  # where it can be pickled for everybody, and single rows take no detour
        self.model_ = model  # nothing is left of one that did not get so far
        self._set_history()

    def _rows(self, X, *, reset: bool = False):
        X = opened_rows(self, X, reset=reset)
        if isinstance(X, CsrBatch | ShardSet):
            return X
        fit_for_us = sparse.issparse(X) and X.format == "csr" and X.dtype in (np.float32, np.float64)
        if reset or not fit_for_us or X.ndim != 2 or X.shape[1] != self.n_features_in_ or X.shape[0] == 0:
            X = self._validated(X, reset=reset)
        return self._batch(X)  # whose own checks take a tenth of the time, which counts for single rows

    def _validated(self, X, *y, reset: bool, **how):
        """X, or (X, y), as scikit-learn checks them. Sparse rows may have any width where any id is allowed."""
        how = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], **how}
        if reset or not takes_any_id(self) or not sparse.issparse(X):
            return validate_data(self, X, *y, reset=reset, **how)
        return check_X_y(X, *y, **how) if y else check_array(X, **how)

    def _batch(self, X) -> CsrBatch:
        return as_csr(X, X.shape[1]) if sparse.issparse(X) else sparse_rows(X)

    def _set_history(self) -> None:
        model = self.model_
        self.history_ = model.history
        self.n_epochs_ = sum("epoch" in record and "stage" not in record for record in model.history)
        self.best_epoch_ = next((record["best_epoch"] for record in model.history if "best_epoch" in record), None)
        self.settings_ = model.settings

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")
