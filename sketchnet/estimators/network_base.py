"""What networks as scikit-learn estimators share: settings, rows of any kind, fitting, saving and loading."""

from __future__ import annotations

import inspect
import os
import time
import warnings
from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from sketchnet.checks import check_device
from sketchnet.data.csr import CsrBatch, without_torch
from sketchnet.data.shard_set import ShardSet
from sketchnet.errors import InputError
from sketchnet.estimators.models import ModelEstimator
from sketchnet.estimators.rows import keep_parameters
from sketchnet.estimators.seeds import seed_of
from sketchnet.evaluation.attribution import contributions
from sketchnet.experts.fit import fit_blend_of_experts
from sketchnet.experts.settings import BlendSettings
from sketchnet.pretraining.course import Pretrained
from sketchnet.projection.rows import opened
from sketchnet.training.course import Supervised, silent
from sketchnet.training.defaults import build_model, choose_device, describe, is_auto
from sketchnet.training.examples import Examples, hold_back
from sketchnet.training.loop import train_once
from sketchnet.training.model import Model
from sketchnet.training.optimisers import make_optimiser
from sketchnet.training.task import Task


class NetworkEstimator(ModelEstimator, BaseEstimator):
    classes_: np.ndarray

    def __init__(
        self,
        scheme="count_sketch",
        n_components=1000,
        *,
        options=None,
        learn_projection=True,
        eta=1.0,
        frozen_epochs=0,
        hashed_columns=None,
        normalise="auto",
        scale_input="none",
        activation="linear",
        hidden="auto",
        pretrain=False,
        hidden_norm="auto",
        dropout="auto",
        feature_dropout=0.0,
        epochs="auto",
        batch_size="auto",
        optimiser="adamw",
        learning_rate="auto",
        sparse_learning_rate="auto",
        l2="auto",
        momentum=(0.5, 0.95),
        decay=0.98,
        patience="auto",
        seconds=None,
        validation_fraction="auto",
        experts="auto",
        metric="auto",
        effort="auto",
        valid_last=None,
        memory="1GiB",
        device="auto",
        threads=None,
        verbose=False,
        random_state=0,
    ):
        keep_parameters(self, locals())

    def fit(self, X, y=None, sample_weight=None, *, valid=None, groups=None):
        """Learn from X (array, sparse matrix, `CsrBatch`, `ShardSet` or its folder) and y (for the last three, by
        default their own labels).

        `valid=(X, y)` are the rows by which experts are chosen and blended, and told when to stop; without it
        `validation_fraction` of the rows, or of few rows each in turn, is held back for that. `groups` has a label for
        each row (by default its query id, if X has them): rows of one group are held back together.
        """
        begun = time.perf_counter()
        X, y, names = self._rows_and_labels(X, y, reset=True)
        loaded = time.perf_counter() - begun
        y, weights = self._learn_labels(y, sample_weight, X.n_rows)
        if names:
            self.classes_ = np.array(names)[np.isin(names, self.classes_)]
        task = self._task(y)
        examples, held_back = Examples(X, task.encode(y), weights), None
        if valid is not None:
            if not isinstance(valid, tuple | list) or len(valid) != 2:
                raise InputError(f"valid is {_kind(valid)}; it is a pair (X, y), whose y may be None if X has labels")
            Xv, yv, _ = self._rows_and_labels(*valid, reset=False)
            weighed = None
            if getattr(self, "class_weight", None) is not None:
                yv, weighed = self._learn_labels(yv, None, Xv.n_rows, keep=True)
            held_back = Examples(Xv, task.encode(yv), weighed)
        if names:  # the command line compares numbers, and finds the names in the model's data
            task = replace(task, classes=tuple(np.flatnonzero(np.isin(names, task.classes)).tolist()))
        data = dict(X.descriptions[0]) if isinstance(X, ShardSet) else {}
        if not names:  # y is another one, which those names are not for
            data.pop("classes", None)
        if self._is_network():
            self._fit_network(task, examples, held_back, data, loaded)
        else:
            self._fit_blend(task, examples, held_back, data, _group_numbers(groups, X))
        self._optimiser = None
        return self

    def _is_network(self) -> bool:
        """Whether a network alone is asked for: by name, by its settings, or by where it is to be trained."""
        defaults = {name: each.default for name, each in inspect.signature(type(self).__init__).parameters.items()}
        given = [name for name in self._names() if name != "seconds" and getattr(self, name) is not defaults[name]]
        given = [name for name in given if not np.array_equal(getattr(self, name), defaults[name])]
        if not isinstance(self.experts, str) or self.experts not in ("auto", "sketch"):
            if str(self.device).startswith("cuda") or int(os.environ.get("WORLD_SIZE", 1)) > 1:
                where = f"experts={self.experts!r} learn on the processor, in one process"
                raise InputError(f"{where}; a GPU, and several processes, are for experts='sketch'")
            if given:
                raise InputError(
                    f"{given[0]} is a setting of the network; give experts='sketch', not {self.experts!r}, with it"
                )
            return False
        apart = str(self.device).startswith("cuda") or int(os.environ.get("WORLD_SIZE", 1)) > 1
        return self.experts == "sketch" or bool(given) or apart

    def _fit_network(self, task: Task, examples: Examples, held_back: Examples | None, data: dict, loaded: float):
        if held_back is None:
            share = 0.1 if is_auto(self.validation_fraction) else self.validation_fraction
            examples, held_back = hold_back(examples, share, seed_of(self.random_state))
        model = self._build(task, examples.data, examples.data.n_rows)
        model.data = data
        if self.verbose:
            print(describe(model, examples.data.n_rows, self.threads))
        self._train(model, examples, held_back, Pretrained() if model.training.pretrain else Supervised(), loaded)

    def _fit_blend(self, task: Task, examples: Examples, held_back: Examples | None, data: dict, groups) -> None:
        check_device(self.device)
        ours = ("experts", "metric", "effort", "validation_fraction", "valid_last", "seconds")
        settings = BlendSettings(**{name: getattr(self, name) for name in ours}, seed=seed_of(self.random_state))
        how = {"memory": self.memory, "threads": self.threads, "report": print if self.verbose else silent}
        self.model_ = fit_blend_of_experts(task, examples, held_back, settings, groups=groups, data=data, **how)
        self._set_history()

    @classmethod
    def _parameters(cls, model) -> dict:
        if isinstance(model, Model):
            return super()._parameters(model) | {"experts": "sketch"}
        settings = dict(model.settings)
        if settings["metric"] == "scorer":  # which no file holds
            settings["metric"] = "auto"
        return settings | {"random_state": settings.pop("seed")}

    def partial_fit(self, X, y=None, sample_weight=None, **first):
        """Learn from some more rows, in one pass and at constant rates: a network, whatever the experts are."""
        begin = not isinstance(getattr(self, "model_", None), Model)
        if begin and hasattr(self, "model_"):
            warnings.warn(
                "a blend of experts cannot go on learning: partial_fit begins anew, with a network", stacklevel=2
            )
        X, y, _ = self._rows_and_labels(X, y, reset=begin)
        y, weights = self._learn_labels(y, sample_weight, X.n_rows, **(first if begin else {}), keep=not begin)
        if begin:
            # Moments of the first portion would not be those of all rows.
            normalise = "batch" if is_auto(self.normalise) else self.normalise
            model = self._build(self._task(y), X, 0, normalise=normalise)
            self._check_portions(model)
        else:
            model = self.model_
        known = replace(model.task, classes=model.classes)
        examples = Examples(X, known.encode(y), weights)
        if begin or getattr(self, "_optimiser", None) is None:
            self._optimiser = make_optimiser(model.network, model.training)
        train_once(model, examples, self._optimiser, self.threads)
        self.model_ = model  # nothing is left of a first portion that could not be learnt from
        self._set_history()
        return self

    def explain(self, X, output=None):
        """What each non-zero of X contributes to an output, gradient times value: a CSR array like X.

        `output` is a class (by default, the one that is predicted for each row).
        """
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        return contributions(self.model_, X, output)

    def get_feature_importance(self, X):
        """The mean absolute contribution of every column over the rows of X: a sparse row, as wide as X."""
        found = abs(self.explain(X))
        return sparse.csr_array(found.sum(axis=0).reshape(1, -1) / max(1, found.shape[0]))

    def _build(self, task: Task, data, n_rows: int, **others) -> Model:
        model = build_model(task, data, {**self._settings(), **others}, seed_of(self.random_state))
        model.network.to(choose_device(self.device, model, n_rows))
        return model

    def _check_portions(self, model: Model) -> None:
        """Raise if something is to be learnt from all rows before the first step."""
        chosen = {**model.network.config.to_dict(), **model.training.to_dict()}
        only = {"normalise": ("batch", "none"), "scale_input": ("none",), "pretrain": (0,), "frozen_epochs": (0,)}
        for name, possible in only.items():
            if chosen[name] not in possible:
                raise InputError(f"{name}={getattr(self, name)!r} needs all rows at once; use fit")

    # -- data

    def _rows_and_labels(self, X, y, *, reset: bool):
        """(rows, labels, names of the labels' numbers): names where labels are the data set's own, and have any."""
        X = without_torch(opened(X))
        if isinstance(X, CsrBatch | ShardSet):
            y, names = _own_labels(X) if y is None else (y, None)
            if X.n_rows == 0:
                raise InputError("there are no rows to learn from")
            if y is None:
                raise InputError("X has no labels of its own; give y")
            if np.ndim(y) == 0 or np.shape(y)[0] != X.n_rows:
                raise InputError(f"y is {_kind(y)}; X has {X.n_rows} rows, and y must have a label for each")
            if sparse.issparse(y) or not names:
                return self._rows(X, reset=reset), y, None
            if isinstance(self, RegressorMixin):
                known = ", ".join(names[:10])
                raise InputError(f"the data set's labels are the classes {known}; {type(self).__name__} learns numbers")
            return self._rows(X, reset=reset), np.asarray(names)[y.astype(np.int64)], names
        if y is None:
            raise ValueError(f"requires y to be passed, but the target y is None: {type(self).__name__} learns labels")
        X, y = self._validated(X, y, reset=reset, multi_output=True, y_numeric=isinstance(self, RegressorMixin))
        return self._batch(X), y, None

    def _outputs(self, X) -> np.ndarray:
        check_is_fitted(self)
        return self.model_.outputs(self._rows(X), threads=self.threads)

    def _weights(self, sample_weight, n: int):
        if sample_weight is None:
            return None
        weights = _check_sample_weight(sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True)
        if weights.sum() <= 0:
            raise InputError("all sample weights are zero; at least one must be positive")
        return weights


def _group_numbers(groups, X: CsrBatch | ShardSet) -> np.ndarray | None:
    """Return a number for each row's group, by default that of its query, if rows have any."""
    groups = X.groups if groups is None else groups
    if groups is None:
        return None
    if np.shape(groups) != (X.n_rows,):
        raise InputError(f"groups are {_kind(groups)}; X has {X.n_rows} rows, and there must be a group for each")
    return np.unique(np.asarray(groups), return_inverse=True)[1]


def _own_labels(X: CsrBatch | ShardSet):
    """(labels, names of their numbers, if they have any) of a data set, or of rows as the readers give them."""
    if isinstance(X, CsrBatch):
        X = ShardSet([X], [{"columns": X.n_columns}])  # which makes a matrix of several labels a row
    return X.labels, X.descriptions[0].get("classes")


def _kind(value) -> str:
    """What was given, in a few words."""
    size = f" of {value.shape if hasattr(value, 'shape') else len(value)}" if hasattr(value, "__len__") else ""
    return f"{type(value).__name__}{size}"
