"""Networks as scikit-learn estimators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import column_or_1d, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from sketchnet.data.csr import CsrBatch, as_csr, sparse_rows
from sketchnet.data.shard_set import ShardSet, open_shards
from sketchnet.errors import InputError
from sketchnet.estimators.seeds import seed_of
from sketchnet.evaluation.attribution import contributions
from sketchnet.training.defaults import build_model, choose_device, describe
from sketchnet.training.examples import Examples, hold_back
from sketchnet.training.loop import even_rates, train, train_once
from sketchnet.training.model import load_model
from sketchnet.training.optimisers import make_optimiser
from sketchnet.training.task import Task

_SETTINGS = {  # names of ours, and of the configs
    "scheme": "scheme",
    "n_components": "n_components",
    "options": "options",
    "learn_projection": "learn",
    "eta": "eta",
    "wide": "wide",
    "hashed_columns": "hashed_columns",
    "normalise": "normalise",
    "scale_input": "scale_input",
    "activation": "activation",
    "hidden": "hidden",
    "hidden_norm": "hidden_norm",
    "dropout": "dropout",
    "feature_dropout": "feature_dropout",
    "epochs": "epochs",
    "batch_size": "batch_size",
    "optimiser": "optimiser",
    "learning_rate": "rate",
    "sparse_learning_rate": "sparse_rate",
    "wide_learning_rate": "wide_rate",
    "l2": "l2",
    "patience": "patience",
    "seconds": "seconds",
}


class _SketchEstimator(BaseEstimator):
    def __init__(
        self,
        scheme="count_sketch",
        n_components=1000,
        *,
        options=None,
        learn_projection=True,
        eta=1.0,
        wide=True,
        hashed_columns=None,
        normalise="auto",
        scale_input="none",
        activation="linear",
        hidden="auto",
        hidden_norm="auto",
        dropout="auto",
        feature_dropout="auto",
        epochs="auto",
        batch_size="auto",
        optimiser="adamw",
        learning_rate="auto",
        sparse_learning_rate="auto",
        wide_learning_rate="auto",
        l2="auto",
        patience="auto",
        seconds=None,
        validation_fraction=0.1,
        memory="1GiB",
        device="auto",
        verbose=False,
        random_state=0,
    ):
        for name, value in locals().items():
            if name != "self":
                setattr(self, name, value)

    def fit(self, X, y=None, sample_weight=None, *, valid=None):
        """Learn from X (array, sparse matrix, `ShardSet` or its folder) and y (for a data set on disk, its labels).

        `valid=(X, y)` chooses the best epoch; without it `validation_fraction` of the rows are held back for that.
        """
        X, y = self._rows_and_labels(X, y, reset=True)
        y, weights = self._learn_labels(y, sample_weight, X.n_rows)
        task = self._task(y)
        examples = Examples(X, task.encode(y), weights)
        if valid is not None:
            Xv, yv = self._rows_and_labels(*valid, reset=False)
            held_back = Examples(Xv, task.encode(yv))
        else:
            examples, held_back = hold_back(examples, self.validation_fraction, seed_of(self.random_state))
        self._build(task, examples.data, examples.data.n_rows)
        self.model_.data = dict(X.descriptions[0]) if isinstance(X, ShardSet) else {}
        if self.verbose:
            print(describe(self.model_, examples.data.n_rows))
        train(self.model_, examples, held_back, memory=self.memory, report=print if self.verbose else _quiet)
        if self.device == "auto":
            self.model_.network.to("cpu")  # where it can be pickled for everybody, and single rows take no detour
        self._set_history()
        self._optimiser = None
        return self

    def partial_fit(self, X, y, sample_weight=None, **first):
        """Learn from some more rows, in one pass and at constant rates."""
        begin = not hasattr(self, "model_")
        X, y = self._rows_and_labels(X, y, reset=begin)
        y, weights = self._learn_labels(y, sample_weight, X.n_rows, **(first if begin else {}), keep=not begin)
        if begin:
            self._build(self._task(y), X, 0)
        examples = Examples(X, self.model_.task.encode(y), weights)
        if getattr(self, "_optimiser", None) is None:
            self._optimiser = make_optimiser(self.model_.network, even_rates(self.model_, examples))
        train_once(self.model_, examples, self._optimiser)
        return self

    def explain(self, X, output=None):
        """What each non-zero of X contributes to an output, gradient times value: a CSR array like X.

        `output` is a class (by default, the one that is predicted for each row).
        """
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        return contributions(self.model_, X, output)

    def get_feature_importance(self, X):
        """The mean absolute contribution of every column over the rows of X: a sparse row of n_features_in_ columns."""
        found = abs(self.explain(X))
        return sparse.csr_array(found.sum(axis=0).reshape(1, -1) / max(1, found.shape[0]))

    def save(self, folder) -> None:
        """Write a model folder, as `sketchnet train` does."""
        check_is_fitted(self)
        self.model_.save(folder)

    @classmethod
    def load(cls, folder):
        """An estimator with the model of a folder, from `save` or from `sketchnet train`. No code in it is run."""
        model = load_model(folder)
        if (model.task.kind == "regression") != issubclass(cls, RegressorMixin):
            raise InputError(f"{Path(folder)} is a model for {model.task.kind}; {cls.__name__} cannot load it")
        config = {**model.network.config.to_dict(), **model.training.to_dict()}
        estimator = cls(**{name: config[ours] for name, ours in _SETTINGS.items()}, random_state=config["seed"])
        estimator.model_ = model
        estimator.n_features_in_ = model.network.config.n_columns
        estimator._restore(model.task)
        estimator._set_history()
        return estimator

    def _build(self, task: Task, data, n_rows: int) -> None:
        settings = {ours: getattr(self, name) for name, ours in _SETTINGS.items()}
        settings["options"] = dict(self.options or {})
        self.model_ = build_model(task, data, settings, seed_of(self.random_state))
        self.model_.network.to(choose_device(self.device, self.model_, n_rows))

    # -- data

    def _rows_and_labels(self, X, y, *, reset: bool):
        if isinstance(X, str | Path):
            X = open_shards(X)
        if isinstance(X, ShardSet):
            if y is None:
                y = X.labels
                if y is None:
                    raise InputError("the data set has no labels; give y")
                names = X.descriptions[0].get("classes")
                y = np.asarray(names)[y.astype(np.int64)] if names and not sparse.issparse(y) else y
            return self._rows(X, reset=reset), y
        if y is None:
            raise ValueError(f"requires y to be passed, but the target y is None: {type(self).__name__} learns labels")
        X, y = validate_data(
            self, X, y, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], multi_output=True,
            y_numeric=isinstance(self, RegressorMixin),
        )  # fmt: skip
        return self._batch(X), y

    def _rows(self, X, *, reset: bool = False):
        if isinstance(X, str | Path):
            X = open_shards(X)
        if isinstance(X, CsrBatch | ShardSet):
            if reset:
                self.n_features_in_ = X.n_columns
            elif X.n_columns > self.n_features_in_:
                raise InputError(f"X has {X.n_columns} columns, but {type(self).__name__} is expecting "
                                 f"{self.n_features_in_} features")  # fmt: skip
            return X
        fit_for_us = sparse.issparse(X) and X.format == "csr" and X.dtype in (np.float32, np.float64)
        if reset or not fit_for_us or X.ndim != 2 or X.shape[1] != self.n_features_in_ or X.shape[0] == 0:
            X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        return self._batch(X)  # whose own checks take a tenth of the time, which counts for single rows

    def _batch(self, X) -> CsrBatch:
        return as_csr(X, X.shape[1]) if sparse.issparse(X) else sparse_rows(X)

    def _set_history(self) -> None:
        model = self.model_
        self.history_ = model.history
        self.n_epochs_ = sum("epoch" in record for record in model.history)
        self.best_epoch_ = next((record["best_epoch"] for record in model.history if "best_epoch" in record), None)
        self.settings_ = {**model.network.config.to_dict(), **model.training.to_dict()}

    def _outputs(self, X) -> np.ndarray:
        check_is_fitted(self)
        return self.model_.outputs(self._rows(X))

    def _weights(self, sample_weight, n: int):
        if sample_weight is None:
            return None
        weights = _check_sample_weight(sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True)
        if weights.sum() <= 0:
            raise InputError("all sample weights are zero; at least one must be positive")
        return weights

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class SketchClassifier(ClassifierMixin, _SketchEstimator):
    """A deep network on sparse data with any number of columns, through a projection that is learnt along with it.

    Parameters
    ----------
    scheme : {"count_sketch", "li", "srht", "srht_sparse", "achlioptas", "gaussian"}, default="count_sketch"
        The projection in front of the network. Only the first two can be learnt.
    n_components : int, default=1000
        Columns of the projected data.
    options : dict, default=None
        Other parameters of the scheme's law, such as {"s": 100} for "li".
    learn_projection : bool, default=True
        Learn the projection's non-zero weights, from their random values on. False: project once, then train.
    eta : float, default=1.0
        Probability with which a batch updates the learnt projection.
    wide : bool, default=True
        A linear model on the original columns beside the network, learnt jointly.
    hashed_columns : int, default=None
        Hash column ids into a table of this size, so that any id is allowed; None: an id beyond X's width is an error.
    normalise : {"auto", "batch", "standard", "max_abs", "none"}, default="auto"
        Of the projected rows: "batch" norm for a learnt projection, the training rows' moments for a fixed one.
    scale_input : {"none", "max_abs"}, default="none"
        Divide each column by its largest absolute value.
    activation : {"linear", "sigmoid", "relu", "leaky_relu"}, default="linear"
        After the projection.
    hidden : tuple of int or "auto"
        Widths of the hidden layers.
    hidden_norm : bool or "auto"
        Batch norm in the hidden layers.
    dropout, feature_dropout : float or "auto"
        Shares of hidden units, and of a row's non-zeros, that are left out at random in training.
    epochs, batch_size, learning_rate, sparse_learning_rate, wide_learning_rate, l2 : number or "auto"
        See `sketchnet.training.TrainingConfig`; the sparse one is that of the learnt projection's weights.
    optimiser : {"adamw", "sgd"}, default="adamw"
        "sgd" is the dissertation's regime, with rising momentum and decaying rate.
    patience : int, None or "auto"
        Stop after so many epochs without a better validation error; None never stops.
    seconds : float, default=None
        Stop after the first epoch that ends later than this.
    validation_fraction : float, default=0.1
        Rows held back to choose the best epoch. 0: the last epoch counts.
    class_weight : dict or "balanced", default=None
        Weights of the classes.
    memory : str or int, default="1GiB"
        A fixed projection of the training rows is kept if it fits this, otherwise drawn anew each epoch.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to train: "auto" takes a GPU if there is one and the rows are many.
    verbose : bool, default=False
        Print the settings that were chosen, and each epoch.
    random_state : int, RandomState instance or None, default=0
        The seed of everything.

    Attributes
    ----------
    classes_ : the class labels.
    model_ : the trained `sketchnet.training.Model`.
    history_, n_epochs_, best_epoch_ : how training went, and the epoch (from 1) whose network was kept.
    settings_ : all settings, those that were chosen included.

    Examples
    --------
    >>> from scipy.sparse import random_array
    >>> from sketchnet import SketchClassifier
    >>> X = random_array((300, 1_000_000), density=1e-5, format="csr", rng=0)
    >>> y = X.sum(axis=1) > 5
    >>> SketchClassifier(epochs=2).fit(X, y).predict(X).shape
    (300,)
    """

    def __init__(
        self,
        scheme="count_sketch",
        n_components=1000,
        *,
        options=None,
        learn_projection=True,
        eta=1.0,
        wide=True,
        hashed_columns=None,
        normalise="auto",
        scale_input="none",
        activation="linear",
        hidden="auto",
        hidden_norm="auto",
        dropout="auto",
        feature_dropout="auto",
        epochs="auto",
        batch_size="auto",
        optimiser="adamw",
        learning_rate="auto",
        sparse_learning_rate="auto",
        wide_learning_rate="auto",
        l2="auto",
        patience="auto",
        seconds=None,
        validation_fraction=0.1,
        class_weight=None,
        memory="1GiB",
        device="auto",
        verbose=False,
        random_state=0,
    ):
        rest = {name: value for name, value in locals().items() if name not in ("self", "class_weight", "__class__")}
        super().__init__(**rest)
        self.class_weight = class_weight

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn from some more rows, in one pass and at constant rates. The first call needs all `classes`."""
        if classes is None and not hasattr(self, "classes_"):
            raise InputError("classes must be passed on the first call to partial_fit")
        return super().partial_fit(X, y, sample_weight, classes=classes)

    def predict(self, X):
        """Class labels; for several labels a row, an array of 0 and 1."""
        outputs, task = self._outputs(X), self.model_.task
        return task.decide(outputs) if task.kind == "multilabel" else self.classes_[task.numbers(outputs)]

    def predict_proba(self, X):
        """A probability for each class, in the order of `classes_`."""
        outputs = self._outputs(X)
        return self.model_.task.probabilities(outputs)

    def decision_function(self, X):
        """The network's outputs: one a row for two classes (positive for the second), else one for each class."""
        outputs = self._outputs(X)
        return outputs[:, 0] if self.model_.task.kind == "binary" else outputs

    def _learn_labels(self, y, sample_weight, n, classes=None, keep=False):
        weights = self._weights(sample_weight, n)
        if sparse.issparse(y) or (np.ndim(y) == 2 and np.shape(y)[1] > 1):
            if not keep:
                self.classes_ = np.arange(np.shape(y)[1])
            return sparse.csr_array(y), weights
        y = np.asarray(y)
        if y.ndim == 2:
            y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if not keep:
            self.classes_ = np.unique(y if classes is None else classes)
        if self.class_weight is not None:
            by_class = compute_sample_weight(self.class_weight, y)
            weights = by_class if weights is None else weights * by_class
        return y, weights

    def _task(self, y) -> Task:
        if sparse.issparse(y):
            return Task("multilabel", tuple(range(y.shape[1])))
        if len(self.classes_) < 2:
            raise InputError(f"there is only one class, {self.classes_[0]}: SketchClassifier needs two classes or more")
        return Task("binary" if len(self.classes_) == 2 else "multiclass", tuple(self.classes_.tolist()))

    def _restore(self, task: Task) -> None:
        self.classes_ = np.asarray(task.classes)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class SketchRegressor(RegressorMixin, _SketchEstimator):
    """The same network for numbers: squared error, targets standardised inside. Parameters as `SketchClassifier`'s.

    Examples
    --------
    >>> from scipy.sparse import random_array
    >>> from sketchnet import SketchRegressor
    >>> X = random_array((300, 1_000_000), density=1e-5, format="csr", rng=0)
    >>> SketchRegressor(epochs=2).fit(X, X.sum(axis=1)).predict(X).shape
    (300,)
    """

    def predict(self, X):
        """One number a row."""
        return self.model_.task.decide(self._outputs(X)) if hasattr(self, "model_") else self._outputs(X)

    def _learn_labels(self, y, sample_weight, n, keep=False):
        y = np.asarray(y, np.float64)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if y.ndim != 1:
            raise InputError(f"y has shape {y.shape}; SketchRegressor predicts one number a row")
        return y, self._weights(sample_weight, n)

    def _task(self, y) -> Task:
        return Task.of_labels(y, regression=True)

    def _restore(self, task: Task) -> None:
        """Nothing but the model is needed."""


def _quiet(record: dict) -> None:
    """Report nothing."""
