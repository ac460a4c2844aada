"""Deep autoencoders as a scikit-learn transformer."""

from __future__ import annotations

import time

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sketchnet.data.shard_set import ShardSet
from sketchnet.estimators.models import ModelEstimator
from sketchnet.estimators.rows import keep_parameters
from sketchnet.estimators.seeds import seed_of
from sketchnet.pretraining.autoencoder import Unsupervised, build_autoencoder
from sketchnet.training.defaults import choose_device
from sketchnet.training.examples import Examples, hold_back


class SketchAutoencoder(ModelEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Short codes of sparse rows, from which a deep network can tell what the rows were.

    Documents with similar codes are about similar things: rank them by the codes' cosines
    (`sketchnet.metrics.retrieval`).

    Parameters
    ----------
    n_codes : int, default=32
        Numbers of a code.
    scheme : {None, "gaussian", "achlioptas", "li", "srht", "srht_sparse", "count_sketch"}, default=None
        A fixed projection in front of the network, for rows of real numbers (TF-IDF) with very many columns.
    n_components : int, default=2000
        Columns of the projected rows.
    options : dict, default=None
        Other parameters of the scheme's law.
    hidden : tuple of int, default=(500, 250, 125)
        Widths of the layers between rows and codes; the way back mirrors them.
    visible : {"auto", "counts", "real"}, default="auto"
        Counts of words, whose distribution is given back (softmax), or real numbers, of which the direction is: rows
        are brought to one length. "auto": counts if all values are whole and not negative, and nothing is projected.
    units : {"auto", "binary", "relu"}, default="auto"
        Of the hidden layers: logistic for counts, rectified for real numbers.
    binary_codes : bool, default=False
        Logistic codes that are driven to 0 or 1 by noise; `transform(X) > 0.5` are then bits (semantic hashing).
    noise : float, default=4.0
        Deviation of that noise.
    feature_dropout : float or "auto"
        Share of a row's non-zeros that is left out at random in training, before a projection; all of the row has to be
        given back.
    loss : {"direction", "mse"}, default="direction"
        Of real rows: the squared distance of directions, or the mean squared error of the numbers. Counts have their
        cross-entropy.
    pretrain : bool or int, default=True
        Train a restricted Boltzmann machine for each layer first, for so many epochs.
    epochs, batch_size, learning_rate, l2 : number or "auto"
        Of the finetuning, by AdamW.
    patience, seconds, validation_fraction, memory, device, threads, verbose, random_state
        As `SketchClassifier`'s.

    Attributes
    ----------
    model_ : the trained `sketchnet.training.Model`.
    history_, n_epochs_, best_epoch_ : how training went, and the epoch (from 1) whose network was kept.
    settings_ : all settings, those that were chosen included.

    Examples
    --------
    >>> from scipy.sparse import random_array
    >>> from sketchnet import SketchAutoencoder
    >>> X = random_array((300, 1_000_000), density=1e-5, format="csr", rng=0)
    >>> SketchAutoencoder(4, scheme="count_sketch", n_components=50, hidden=(20,), epochs=2).fit_transform(X).shape
    (300, 4)
    """

    _tasks = ("autoencoder",)

    def __init__(
        self,
        n_codes=32,
        *,
        scheme=None,
        n_components=2000,
        options=None,
        hidden=(500, 250, 125),
        visible="auto",
        units="auto",
        binary_codes=False,
        noise=4.0,
        feature_dropout="auto",
        loss="direction",
        pretrain=True,
        epochs="auto",
        batch_size="auto",
        learning_rate="auto",
        l2="auto",
        patience="auto",
        seconds=None,
        validation_fraction=0.1,
        memory="1GiB",
        device="auto",
        threads=None,
        verbose=False,
        random_state=0,
    ):
        keep_parameters(self, locals())

    def fit(self, X, y=None):
        """Learn from X: array, sparse matrix, `ShardSet` or its folder."""
        begun = time.perf_counter()
        X = self._rows(X, reset=True)
        loaded = time.perf_counter() - begun
        seed = seed_of(self.random_state)
        examples, valid = hold_back(Examples(X, np.zeros(X.n_rows)), self.validation_fraction, seed)
        model = build_autoencoder(examples.data, self._settings(), seed)
        model.data = dict(X.descriptions[0]) if isinstance(X, ShardSet) else {}
        model.network.to(choose_device(self.device, model, X.n_rows))
        self._train(model, examples, valid, Unsupervised(), loaded)
        return self

    def transform(self, X):
        """An array (n, n_codes)."""
        check_is_fitted(self)
        return self.model_.outputs(self._rows(X), threads=self.threads)

    @property
    def _n_features_out(self) -> int:
        return self.model_.network.config.n_codes

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.visible == "counts"
        return tags
