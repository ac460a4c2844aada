"""Random projections as a scikit-learn transformer."""

from __future__ import annotations

import warnings

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import DataDimensionalityWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from sketchnet.checks import check_options
from sketchnet.data.csr import CsrBatch
from sketchnet.data.shard_set import ShardSet
from sketchnet.errors import InputError
from sketchnet.estimators.rows import SparseInput, keep_parameters, opened_rows, widened
from sketchnet.estimators.seeds import seed_of
from sketchnet.projection import SRHT, Operator, make_scheme
from sketchnet.projection.inverse import least_squares_inverse
from sketchnet.projection.quality import minimal_k
from sketchnet.projection.rows import opened


class RandomProjection(SparseInput, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Reduce sparse data with millions of columns to a few hundred or thousand, keeping distances, from a seed alone.

    No projection matrix is stored: its entries are a function of the seed, drawn as they are needed. Rows are sparse or
    dense, of NumPy, scipy or torch, or a data set: a `CsrBatch`, a `ShardSet` or the folder of one, which is projected
    shard by shard.

    Parameters
    ----------
    scheme : {"count_sketch", "li", "srht", "srht_sparse", "achlioptas", "gaussian"}, default="count_sketch"
        Roughly from the fastest to the most accurate. "srht_sparse" is the dissertation's form of SRHT; it takes its
        density from the number of rows seen in `fit`, ln(n)**2 / d.
    n_components : int or "auto", default=1000
        Columns of the result; more than X has raise a `DataDimensionalityWarning`. "auto" takes the
        Johnson-Lindenstrauss bound for the rows seen in `fit` and `eps`.
    eps : float, default=0.1
        With n_components="auto", how far squared distances may be off.
    options : dict, default=None
        Other parameters of the scheme's law, such as {"s": 100} for "li" or {"s": 1} for "achlioptas".
    sparse_output : bool, default=False
        Return a CSR array, for "count_sketch" and "li". Otherwise the result is a dense array.
    memory : str or int, default=None
        What may be used beyond data and result, such as "2GiB"; None means 512 MiB.
    random_state : int, RandomState instance or None, default=0
        The seed. The same seed gives the same projection on every machine; None draws one.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where rows are projected. "auto" takes a GPU for large sparse float32 data where torch finds one and triton is
        installed; the result is the same to rounding.

    Attributes
    ----------
    operator_ : the fitted projection: scheme, width and seed. `operator_.block(rows, cols)` shows its entries.
    n_components_ : columns of the result.
    n_features_in_ : columns of the data.

    Examples
    --------
    >>> from scipy.sparse import random_array
    >>> from sketchnet import RandomProjection
    >>> X = random_array((100, 1_000_000), density=1e-5, format="csr", rng=0)
    >>> RandomProjection(n_components=300).fit_transform(X).shape
    (100, 300)
    """

    def __init__(
        self,
        scheme="count_sketch",
        n_components=1000,
        *,
        eps=0.1,
        options=None,
        sparse_output=False,
        memory=None,
        random_state=0,
        device="auto",
    ):
        keep_parameters(self, locals())

    def fit(self, X, y=None):
        """Fix the projection for the width of X. Only the shape of X matters."""
        X = self._validate(X, reset=True)
        n, d = X.n_rows if isinstance(X, CsrBatch) else X.shape[0], self.n_features_in_
        if isinstance(self.n_components, str) and self.n_components == "auto":
            k = minimal_k(max(n, 2), self.eps)
            if k > d:
                raise InputError(f"{n} rows and eps={self.eps} need {k} columns, more than the data's {d}")
        else:
            k = self.n_components
        options = {} if self.options is None else check_options("options", self.options)
        if self.scheme == "srht_sparse":
            options.setdefault("density", SRHT.thesis_density(n, d))
        self.operator_: Operator = make_scheme(self.scheme, k, **options).sample(d, seed_of(self.random_state))
        self.n_components_ = k = self.operator_.k
        if k > d:
            text = f"n_components={k} is more than the {d} columns of X: the projection widens them"
            warnings.warn(text, DataDimensionalityWarning, stacklevel=2)
        return self

    def fit_transform(self, X, y=None):
        """`fit` and `transform`; a folder is opened, and its checksums compared, once for both."""
        X = opened(X)
        return self.fit(X).transform(X)

    def transform(self, X):
        """Project X: an array (n, n_components_), float32 if X is, else float64."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        how = {"sparse_output": self.sparse_output, "memory": self.memory, "device": self.device}
        return self.operator_.apply(X, **how)

    def inverse_transform(self, X):
        """The vectors of least norm among those whose projections are closest to the rows of X. Dense, n x d."""
        check_is_fitted(self)
        return least_squares_inverse(self.operator_, X, self.memory)

    def _validate(self, X, *, reset: bool):
        X = opened_rows(self, X, reset=reset)
        if isinstance(X, CsrBatch | ShardSet):
            return widened(X, self.n_features_in_)
        # The operator checks values again when it projects, and says where a bad one lies; dtypes stay, not to copy.
        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=reset)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_
