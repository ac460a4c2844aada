"""Networks as scikit-learn estimators."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import column_or_1d, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from sketchnet.errors import InputError
from sketchnet.estimators.network_base import NetworkEstimator
from sketchnet.training.targets import as_numbers
from sketchnet.training.task import Task, several_kinds


class SketchClassifier(ClassifierMixin, NetworkEstimator):
    """Classes of sparse rows with any number of columns: a blend of small experts, or a deep network alone.

    Several models learn from the same rows, each apart. Those that make held-back rows better are blended
    (docs/training.md). Any parameter of the network asks for it alone, and so does `experts="sketch"`: a projection
    that is learnt along with the layers behind it (docs/network.md).

    Parameters
    ----------
    experts : "auto", str or tuple of str, default="auto"
        Which models to blend, of "linear", "weights", "vectors", "columns", "trees", "dense" and "sketch"; "auto":
        those that such rows call for. The first one is what others must improve on. "sketch" alone: the network.
    metric : {"auto", "error", "log_loss", "roc_auc", "average_precision"}, scorer or its name, default="auto"
        What an expert must make better on held-back rows to be taken; "auto": the log loss. All learn by log loss.
    effort : {"quick", "auto", "best"}, default="auto"
        How much is tried, and what is fitted once more on all rows in the end.
    validation_fraction : float or "auto", default="auto"
        Rows held back; of up to 10,000 rows each is, in turn. "auto": a fifth, or a tenth where experts are not fitted
        once more in the end, and for the network. 0: none; then the linear expert stands alone, and the network's last
        epoch counts.
    valid_last : float, default=None
        Hold back this share of the rows, the last ones, as where they are in the order of time. For blends.
    seconds : float, default=None
        Begin no further expert after so many seconds; the network stops after the first epoch that ends later.
    class_weight : dict or "balanced", default=None
        Weights of the classes.
    memory : str or int, default="1GiB"
        For rows that come from a disk: a blend learns from a random part of those that do not fit. The network learns
        from all, and keeps fixed projections of them if they fit.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the network is trained: "auto" takes a GPU if there is one and the rows are many. Blends learn on the
        processor; "cuda" asks for the network.
    threads : int, default=None
        At most so many; None: as variables (OMP_NUM_THREADS, SKETCHNET_THREADS) and torch say, or as there are cores.
    verbose : bool, default=False
        Print what each expert reached; of the network the settings that were chosen, and each epoch.
    random_state : int, RandomState instance or None, default=0
        The seed of everything.

    The network's projection
    ------------------------
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
    frozen_epochs : int, default=0
        In the first so many epochs the learnt projection stays as it was drawn, and only then learns too.
    hashed_columns : int, default=None
        Hash column ids into a table of this size, so that any id is allowed, and sparse rows of any width after `fit`;
        None: an id beyond X's width is an error.
    scale_input : {"none", "max_abs"}, default="none"
        Divide each column by its largest absolute value.
    normalise : {"auto", "batch", "standard", "max_abs", "none"}, default="auto"
        Of the projected rows: "batch" norm for a learnt projection, the training rows' moments for a fixed one.
    activation : {"linear", "sigmoid", "relu", "leaky_relu"}, default="linear"
        After the projection.

    The network's layers and training
    ---------------------------------
    hidden : tuple of int or "auto"
        Widths of the hidden layers.
    hidden_norm : bool or "auto"
        Batch norm in the hidden layers.
    dropout : float or "auto"
        Share of hidden units that is left out at random in training.
    feature_dropout : float, default=0.0
        Share of a row's non-zeros that is left out at random in training.
    pretrain : bool or int, default=False
        Let hidden layers first learn to model the projected rows, as restricted Boltzmann machines, for so many epochs.
    epochs, batch_size, learning_rate, sparse_learning_rate, l2 : number or "auto"
        See `sketchnet.training.TrainingConfig`; the sparse one is that of the learnt projection's weights.
    optimiser : {"adamw", "sgd"}, default="adamw"
        "sgd" is the dissertation's regime, with rising momentum and decaying rate.
    momentum : pair of float, default=(0.5, 0.95)
        Of "sgd": the first value, and the one from the middle of the epochs on.
    decay : float, default=0.98
        Of "sgd": what the rate is multiplied by after each epoch.
    patience : int, None or "auto"
        Stop after so many epochs without a better validation error; None never stops.

    Attributes
    ----------
    classes_ : the class labels, sorted; the names of a data set's classes, in the order of their numbers.
    model_ : the `sketchnet.experts.model.BlendedModel`, or of a network the `sketchnet.training.Model`.
    history_ : how `fit` went: what each expert reached and has in the blend, or the network's epochs. Of a network that
        learnt by `partial_fit` alone: [].
    n_epochs_, best_epoch_ : the network's epochs, and the one (from 1) that was kept; of a blend 0 and None.
    settings_ : of a blend, those of `fit`; of a network all settings, those that were chosen included.

    Examples
    --------
    >>> from scipy.sparse import random_array
    >>> from sketchnet import SketchClassifier
    >>> X = random_array((300, 1_000_000), density=1e-5, format="csr", rng=0)
    >>> y = X.sum(axis=1) > 5
    >>> SketchClassifier().fit(X, y).predict(X).shape
    (300,)
    """

    _tasks = ("binary", "multiclass", "multilabel")

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
        class_weight=None,
        memory="1GiB",
        device="auto",
        threads=None,
        verbose=False,
        random_state=0,
    ):
        rest = {name: value for name, value in locals().items() if name not in ("self", "class_weight", "__class__")}
        super().__init__(**rest)
        self.class_weight = class_weight

    def partial_fit(self, X, y=None, classes=None, sample_weight=None):  # type: ignore[override]  # as in scikit-learn
        """Learn from some more rows, in one pass and at constant rates. The first call needs all `classes`."""
        if classes is None and not hasattr(self, "model_"):
            raise InputError("classes must be passed on the first call to partial_fit")
        classes = getattr(self, "classes_", None) if classes is None else classes
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
            if self.class_weight is not None:
                raise InputError("class_weight is for one label a row; rows with several may have a sample_weight")
            if not keep:
                self.classes_ = np.arange(np.shape(y)[1])
            return _indicators(y), weights
        y = np.asarray(y)
        if y.ndim == 2:
            y = column_or_1d(y, warn=True)
        try:
            check_classification_targets(y)
            found = np.unique(y if classes is None else classes)
        except TypeError:  # labels that cannot be sorted
            raise several_kinds(y if classes is None else classes) from None
        if found.dtype.kind in "mM":  # which no model folder holds
            raise InputError(f"labels have dtype {found.dtype}; classes are numbers or texts: give y.astype(str)")
        if not keep:
            self.classes_ = found
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

    def _restore(self) -> None:
        self.classes_ = np.asarray(self.model_.classes)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class SketchRegressor(RegressorMixin, NetworkEstimator):
    """The same for numbers: squared error, targets standardised inside. Parameters as `SketchClassifier`'s.

    There is no `class_weight`; `metric` is "auto", the squared error, or a scorer for numbers.

    Examples
    --------
    >>> from scipy.sparse import random_array
    >>> from sketchnet import SketchRegressor
    >>> X = random_array((300, 1_000_000), density=1e-5, format="csr", rng=0)
    >>> SketchRegressor().fit(X, X.sum(axis=1)).predict(X).shape
    (300,)
    """

    _tasks = ("regression",)

    def predict(self, X):
        """One number a row."""
        return self.model_.task.decide(self._outputs(X)) if hasattr(self, "model_") else self._outputs(X)

    def _learn_labels(self, y, sample_weight, n, keep=False):
        y = y if sparse.issparse(y) else as_numbers(y)
        if y.ndim == 2 and y.shape[1] == 1 and not sparse.issparse(y):
            y = column_or_1d(y, warn=True)
        if y.ndim != 1:
            raise InputError(f"y has shape {y.shape}; SketchRegressor predicts one number a row")
        return y, self._weights(sample_weight, n)

    def _task(self, y) -> Task:
        return Task.of_labels(y, regression=True)


def _indicators(y) -> sparse.csr_array:
    """Several labels a row, checked: 1 where a row has the label of the column."""
    array = y if sparse.issparse(y) else np.asarray(y)
    if array.dtype.kind in "biuf":
        found = sparse.csr_array(array).tocoo()
        others = found.data != 1  # zeros may be stored, too
        others[others] = found.data[others] != 0
        if not others.any():
            return sparse.csr_array(array)
        first = int(others.argmax())
        where = f"has the value {found.data[first]:g} in row {found.row[first]}, column {found.col[first]}"
    else:
        where = f"has dtype {array.dtype}"
    raise InputError(f"y {where}; several labels a row are a matrix of 0 and 1")
