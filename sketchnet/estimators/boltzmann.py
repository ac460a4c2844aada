"""Restricted Boltzmann machines as a scikit-learn transformer."""

from __future__ import annotations

import copy

import numpy as np
import torch
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from sketchnet.data.csr import as_csr
from sketchnet.estimators.rows import SparseInput, keep_parameters
from sketchnet.estimators.seeds import seed_of
from sketchnet.pretraining import RBM, RBMConfig, RBMTrainingConfig, make_rows, train_rbm, train_rbm_once
from sketchnet.training.course import silent
from sketchnet.training.defaults import choose_device
from sketchnet.training.threads import thread_budget


class RestrictedBoltzmannMachine(SparseInput, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Features learnt without labels, by contrastive divergence: each is a hidden unit that explains the columns of X.

    Parameters
    ----------
    n_components : int, default=256
        Hidden units.
    visible : {"gaussian", "binary", "poisson"}, default="gaussian"
        What the columns of X are: real numbers of unit variance (standardise them), values from 0 to 1, or counts.
    hidden : {"binary", "relu", "gaussian"}, default="binary"
        The kind of the features.
    learning_rate : float or "auto"
        "auto" goes by the kinds of units, see `sketchnet.pretraining.rbm_training.default_rate`.
    epochs, batch_size : int, default=10, 100
        Passes over X, and rows a step.
    steps : int, default=1
        Of the Gibbs chain in each step of training: CD-1, CD-2, ...
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to train: "auto" takes a GPU if there is one.
    threads : int, default=None
        As `SketchClassifier`'s.
    verbose : bool, default=False
        Print each epoch.
    random_state : int, RandomState instance or None, default=0
        The seed of everything.

    Attributes
    ----------
    rbm_ : the trained `sketchnet.pretraining.RBM`.
    components_ : its weights, (n_components, n_features_in_).
    intercept_hidden_, intercept_visible_ : its biases.
    history_ : the reconstruction error of each epoch, or `partial_fit`, and whether it began again at a smaller rate.

    Examples
    --------
    >>> import numpy as np
    >>> from sketchnet import RestrictedBoltzmannMachine
    >>> X = np.random.default_rng(0).integers(0, 2, (200, 20)).astype(np.float32)
    >>> RestrictedBoltzmannMachine(n_components=5, visible="binary").fit_transform(X).shape
    (200, 5)
    """

    def __init__(
        self,
        n_components=256,
        *,
        visible="gaussian",
        hidden="binary",
        learning_rate="auto",
        epochs=10,
        batch_size=100,
        steps=1,
        device="auto",
        threads=None,
        verbose=False,
        random_state=0,
    ):
        keep_parameters(self, locals())

    def fit(self, X, y=None):
        """Learn from the rows of an array or a sparse matrix."""
        X = self._validate(X, reset=True)
        rbm, rows, config = self._begin(X)
        with self._budget(rbm):
            train_rbm(rbm, rows, config, report=print if self.verbose else silent)
        return self._keep(rbm, None)

    def partial_fit(self, X, y=None):
        """Learn from some more rows, in one pass; for the momentum it counts as an epoch."""
        begin = not hasattr(self, "rbm_")
        X = self._validate(X, reset=begin)
        rbm, rows, config = self._begin(X, None if begin else copy.deepcopy(self.rbm_))
        with self._budget(rbm):
            velocity = train_rbm_once(rbm, rows, config, None if begin else self._velocity)
        if self.verbose:
            print(rbm.history[-1])
        return self._keep(rbm, velocity)

    def _begin(self, X, rbm: RBM | None = None) -> tuple:
        """Return the RBM, new unless one is given, with the rows as it learns them and the settings of its training."""
        device = self.device
        if isinstance(device, str) and device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        device = choose_device(device)
        seed = seed_of(self.random_state) if rbm is None else rbm.config.seed
        rate = None if isinstance(self.learning_rate, str) and self.learning_rate == "auto" else self.learning_rate
        config = RBMTrainingConfig(
            epochs=self.epochs, batch_size=self.batch_size, steps=self.steps, rate=rate, seed=seed
        )
        if rbm is None:
            rbm = RBM(RBMConfig(X.shape[1], self.n_components, self.visible, self.hidden, seed))
        return rbm.to(device), make_rows(_rows(X), config.batch_size, seed, device), config

    def _budget(self, rbm: RBM):
        return thread_budget(self.batch_size * rbm.weight.numel(), self.threads)

    def _keep(self, rbm: RBM, velocity: dict | None):
        """Set what was learnt; nothing is left of a training that did not get so far."""
        self.rbm_, self._velocity = rbm.to("cpu"), velocity  # where it can be pickled for everybody
        self.components_ = rbm.weight.numpy()
        self.intercept_hidden_, self.intercept_visible_ = rbm.hidden_bias.numpy(), rbm.visible_bias.numpy()
        self.history_ = rbm.history
        return self

    def transform(self, X):
        """What the hidden units pass on, without noise: an array (n, units), float32 if X is float32."""
        check_is_fitted(self)
        return self._of_rows(X, lambda rbm, rows: rbm.hidden_mean(rows), (self._n_features_out,))

    @available_if(lambda self: "relu" not in (self.visible, self.hidden))  # which have no free energy
    def score_samples(self, X):
        """Minus the free energy of each row: the log of its unnormalised probability."""
        return self._of_rows(X, lambda rbm, rows: -rbm.free_energy(rows), ())

    def _of_rows(self, X, function, shape: tuple):
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        rbm = copy.deepcopy(self.rbm_).double() if X.dtype == np.float64 else self.rbm_
        out, at_once = np.empty((X.shape[0], *shape), X.dtype), max(1, min(1024, 2**24 // X.shape[1]))
        with torch.no_grad():
            for start in range(0, len(out), at_once):
                part = _rows(X[start : start + at_once])
                part = torch.from_numpy(part) if isinstance(part, np.ndarray) else part
                rbm.check_visible(part)
                out[start : start + at_once] = function(rbm, part).numpy()
        return out

    def _validate(self, X, *, reset: bool):
        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])

    @property
    def _n_features_out(self) -> int:
        return self.rbm_.config.n_hidden

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.visible == "poisson"
        return tags


def _rows(X):
    """As an RBM takes them: repeated ids of a sparse matrix are added up, for the values to be what units see."""
    if not sparse.issparse(X):
        return np.require(X, requirements=["C", "W"])  # copied if it is read-only, which torch does not take
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return as_csr(X, X.shape[1])
