"""Choosing columns by a score, and extracting directions by an SVD, as scikit-learn transformers."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from sketchnet.checks import check_choice, check_integer
from sketchnet.data.csr import CsrBatch
from sketchnet.data.shard_set import ShardSet
from sketchnet.errors import InputError
from sketchnet.estimators.rows import SparseInput, keep_parameters, opened_rows
from sketchnet.estimators.seeds import seed_of
from sketchnet.kernels import backend
from sketchnet.projection.operator import output_dtype
from sketchnet.projection.rows import joined_dtype, places
from sketchnet.selection import chi2_scores, f_scores, information_gain, truncated_svd
from sketchnet.selection.rows import as_rows
from sketchnet.selection.svd import multiply

SCORES = {"chi2": chi2_scores, "f_score": f_scores, "information_gain": information_gain}
_COMPONENTS = 100  # of an SVD, unless told otherwise


class _AnyRows(SparseInput):
    """Arrays and sparse matrices, checked as scikit-learn does, and data sets on disk."""

    def _take(self, X, y=None, *, reset: bool, labelled: bool = False):
        """(X, y) with X as an array, a CSR matrix, a `CsrBatch` or a `ShardSet`."""
        X = opened_rows(self, X, reset=reset)
        if isinstance(X, CsrBatch | ShardSet):
            return X, y
        how = {"reset": reset, "accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": True}
        if labelled:
            return validate_data(self, X, y, **how)
        return validate_data(self, X, **how), y


class ColumnSelector(_AnyRows, SelectorMixin, BaseEstimator):
    """Keep the columns that tell most about the class, each judged by itself.

    Parameters
    ----------
    criterion : {"chi2", "f_score", "information_gain"}, default="chi2"
        See `sketchnet.selection.chi2` (absolute values on signed data), `f_classif` and `information_gain` (every
        distinct value counts as one, zero too).
    n_columns : int, default=1000
        How many to keep; all, if the data has fewer.
    memory : str or int, default=None
        What the sums of classes may take, such as "2GiB"; None means 512 MiB. Less means more passes over the rows.

    Attributes
    ----------
    scores_ : the score of each column; NaN for columns without one, which come last.
    columns_ : ids of the columns that are kept, ascending. Of equal scores, the lower id is kept.
    n_features_in_ : columns of the data.

    Examples
    --------
    >>> from scipy.sparse import random_array
    >>> from sketchnet.estimators import ColumnSelector
    >>> X = random_array((100, 1_000_000), density=1e-5, format="csr", rng=0)
    >>> ColumnSelector("chi2", n_columns=300).fit_transform(X, [0, 1] * 50).shape
    (100, 300)
    """

    def __init__(self, criterion="chi2", n_columns=1000, *, memory=None):
        keep_parameters(self, locals())

    def fit(self, X, y=None):
        """Score the columns of X: an array, a sparse matrix, or a `ShardSet` or its folder, whose labels are y."""
        score = SCORES[check_choice("criterion", self.criterion, SCORES)]
        wanted = check_integer("n_columns", self.n_columns, 1, 2**31)
        X, y = self._take(X, y, reset=True, labelled=True)
        self.scores_ = score(X, y, memory=self.memory)
        ranked = np.where(np.isnan(self.scores_), -np.inf, self.scores_)
        self.columns_ = _largest(ranked, min(wanted, len(ranked)))
        return self

    def transform(self, X):
        """The kept columns: sparse rows stay sparse (a CSR matrix), an array stays an array; float32 if X is, else
        float64.
        """
        check_is_fitted(self)
        X, _ = self._take(X, reset=False)
        if not isinstance(X, CsrBatch | ShardSet):
            return X[:, self.columns_]
        kept, parts = [], as_rows(X).check().parts
        for part in parts:
            part = part.scipy()
            part.resize((part.shape[0], self.n_features_in_))
            kept.append(part[:, self.columns_])
        return sparse.vstack(kept, format="csr", dtype=output_dtype(joined_dtype(parts)))

    def _get_support_mask(self):
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, bool)
        mask[self.columns_] = True
        return mask

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class SparseSVD(_AnyRows, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Project rows on the directions in which the data has most mass: PCA without centring, which keeps zeros zeros.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Columns of the result, at most as many as X has rows, and columns. "auto": 100, or as many as there can be.
    random_state : int, RandomState instance or None, default=0
        The seed of the random combinations of rows that the method starts from.
    n_iter : int, default=5
        Power iterations, a pass over the rows each, beside two; more make close singular values better told apart.
    n_oversamples : int, default=10
        Directions that are followed beyond those wanted.

    Attributes
    ----------
    components_ : the directions, (n_components, n_features_in_).
    singular_values_ : how much mass each has, in falling order.
    n_features_in_ : columns of the data.

    Examples
    --------
    >>> from scipy.sparse import random_array
    >>> from sketchnet.estimators import SparseSVD
    >>> X = random_array((1000, 10_000), density=1e-3, format="csr", rng=0)
    >>> SparseSVD(n_components=20).fit_transform(X).shape
    (1000, 20)
    """

    def __init__(self, n_components="auto", *, random_state=0, n_iter=5, n_oversamples=10):
        keep_parameters(self, locals())

    def fit(self, X, y=None):
        """Find the directions of an array, a sparse matrix, or a `ShardSet` or its folder."""
        X, _ = self._take(X, reset=True)
        how = {"n_iter": self.n_iter, "n_oversamples": self.n_oversamples, "seed": seed_of(self.random_state)}
        k = self.n_components
        if isinstance(k, str) and k == "auto":
            n = X.n_rows if isinstance(X, CsrBatch | ShardSet) else X.shape[0]
            k = min(_COMPONENTS, n, self.n_features_in_)
        svd = truncated_svd(X, k, **how)
        self.components_, self.singular_values_ = svd.components, svd.singular_values
        return self

    def transform(self, X):
        """X @ components_.T: a dense array (n, n_components), float32 if X is, else float64."""
        check_is_fitted(self)
        X, _ = self._take(X, reset=False)
        rows = as_rows(X).check()
        table = np.ascontiguousarray(self.components_.T, output_dtype(joined_dtype(rows.parts)))
        out = np.empty((rows.n_rows, table.shape[1]), table.dtype)
        for part, span in zip(rows.parts, places(rows.parts)):
            multiply(part, table, out[span])
        bad = backend().first_non_finite(out.ravel())
        if bad >= 0:
            row, most = bad // table.shape[1], np.finfo(out.dtype).max
            raise InputError(f"row {row} times the components is beyond {most:.3g}, the most that {out.dtype} can hold")
        return out

    def inverse_transform(self, X):
        """The rows whose projections are given, within the span of the components. Dense, n x n_features_in_."""
        check_is_fitted(self)
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        if X.shape[1] != self._n_features_out:
            raise InputError(f"X has {X.shape[1]} columns; projected rows have {self._n_features_out}")
        return X @ self.components_

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def _largest(scores: np.ndarray, n: int) -> np.ndarray:
    """Ids of the n largest, ascending; of equal ones the lowest."""
    if n == len(scores):
        return np.arange(n)
    least = np.partition(scores, len(scores) - n)[len(scores) - n]
    above = np.flatnonzero(scores > least)
    return np.sort(np.concatenate([above, np.flatnonzero(scores == least)[: n - len(above)]]))
