"""What every classifier of a comparison is: a name, settings to choose from, `fit` and `predict`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np
from scipy import sparse

from sketchnet.checks import import_extra
from sketchnet.data import as_csr
from sketchnet.errors import InputError


class Rival(ABC):
    """A classifier of sparse rows. Subclasses learn class numbers from checked rows.

    `settings` of `fit` replace some of `defaults`. Rows `valid` = (X, y) may choose how long to learn, up to the number
    in the settings, and nothing else; `settings_` then holds what was chosen. Learning that goes in rounds ends about
    `seconds` after its start.
    """

    name: ClassVar[str]  # in tables
    defaults: ClassVar[dict] = {}
    space: ClassVar[dict[str, tuple]] = {}  # what a random search may put in the place of defaults
    packages: ClassVar[tuple[str, ...]] = ()  # to import
    extra: ClassVar[str] = "bench"  # which brings the packages that sketchnet does not need
    view: ClassVar[str] = "rows"  # what it reads: sparse "rows", "fields" of a table or "texts"
    gives: ClassVar[str] = "probabilities"  # what `outputs` has, or "margins"
    takes_several_labels: ClassVar[bool] = False  # y may be an array of 0 and 1, a column a label
    needs_held_back_rows: ClassVar[bool] = False  # it cannot learn without `valid`

    def __init__(self, *, seed: int = 0, device: str = "cpu"):
        self.seed = seed
        self.device = device
        self.labels: list[int] | None = None  # the numbers that several labels have, where not all are learnt
        self.conversion = 0.0  # seconds taken to write rows in a format of the rival's own; no part of its time
        self.conversion_cpu = 0.0  # and of processors

    def grid(self, X, y) -> list[dict]:
        """Settings worth a trial on such rows, the most promising first."""
        return [{}]

    def load(self) -> None:
        """Import what it needs, so that this is no part of its time."""
        for package in self.packages:
            import_extra(package, self.extra, self.name)

    def warm_up(self, X, y) -> None:  # noqa: B027
        """Compile what it needs, for the same reason. Most have nothing to compile."""

    def fit(self, X, y, settings: dict | None = None, *, valid=None, seconds: float | None = None) -> Self:
        """Learn from sparse rows X and labels y of any kind."""
        self.load()
        self.settings_ = self._complete(settings or {})
        X = self._checked(X)
        self.several_labels_ = self.takes_several_labels and np.ndim(y) == 2
        if self.several_labels_:
            self.classes_, numbers = np.arange(y.shape[1]), np.asarray(y)
        else:
            self.classes_, numbers = _class_numbers(X, y, self.name)
        if valid is not None:
            valid = self._checked(valid[0]), valid[1] if self.several_labels_ else self._known_numbers(valid[1])
        self.n_columns_ = X.shape[1] if X.ndim == 2 else None
        deadline = float("inf") if seconds is None else time.perf_counter() + seconds
        self._learn(X, numbers, self.settings_, valid, deadline)
        return self

    def predict(self, X) -> np.ndarray:
        """A label for each row; where there are several, an array of 0 and 1."""
        decisions = self._decide(self._known_width(X))
        return decisions if self.several_labels_ else self.classes_[decisions]

    def outputs(self, X) -> np.ndarray:
        """Probabilities, a column a class or label; or margins, which for two classes have one column."""
        return np.asarray(self._outputs(self._known_width(X)), np.float64)

    @abstractmethod
    def _learn(self, X: sparse.csr_array, y: np.ndarray, settings: dict, valid, deadline: float) -> None: ...

    def _decide(self, X: sparse.csr_array) -> np.ndarray:
        """The number of a class for each row."""
        return decisions(self._outputs(X), self.gives, self.several_labels_)

    def _outputs(self, X: sparse.csr_array) -> np.ndarray:
        raise NotImplementedError(f"{self.name} only decides")

    def _checked(self, X):
        return checked_rows(X)

    def _known_width(self, X):
        X = self._checked(X)
        if X.ndim == 2 and X.shape[1] != self.n_columns_:
            raise InputError(f"X has {X.shape[1]} columns, but {self.name} learnt from {self.n_columns_}")
        return X

    def _complete(self, settings: dict) -> dict:
        unknown = sorted(set(settings) - set(self.defaults))
        if unknown:
            allowed = ", ".join(self.defaults) or "none"
            raise InputError(f"{self.name} has no setting {', '.join(unknown)}; it has {allowed}")
        return self.defaults | settings

    def _known_numbers(self, y) -> np.ndarray:
        """Class numbers of labels; -1, which is never predicted, for classes that no training row has."""
        y = np.asarray(y)
        places = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        return np.where(self.classes_[places] == y, places, -1)


def library(package: str, name: str):
    return import_extra(package, "bench", name)


def decisions(outputs: np.ndarray, gives: str, several_labels: bool) -> np.ndarray:
    """Class numbers, or for several labels an array of 0 and 1, that outputs stand for."""
    if several_labels:
        return (outputs > (0 if gives == "margins" else 0.5)).astype(np.uint8)
    return (outputs[:, 0] > 0).astype(np.int64) if outputs.shape[1] == 1 else outputs.argmax(axis=1)


def known_rows(valid: tuple) -> tuple:
    """Held-back rows without those of unknown classes, which have no loss."""
    if valid[1].ndim == 2:
        return valid
    known = valid[1] >= 0
    return valid[0][known], valid[1][known]


def checked_rows(X) -> sparse.csr_array:
    """CSR rows without NaN or infinity, with ids of 32 bits where they fit, which is all that most libraries take."""
    if not sparse.issparse(X):
        X = sparse.csr_array(np.asarray(X))
    batch = as_csr(X, X.shape[1])
    indptr, indices, values = batch.arrays
    if batch.n_columns < 2**31 and batch.n_entries < 2**31:
        indptr, indices = indptr.astype(np.int32, copy=False), indices.astype(np.int32, copy=False)
    values = values if values.dtype.kind == "f" else values.astype(np.float32)
    return sparse.csr_array((values, indices, indptr), shape=X.shape)


def _class_numbers(X, y, name: str) -> tuple[np.ndarray, np.ndarray]:
    y = np.asarray(y)
    if y.ndim != 1 or len(y) != X.shape[0]:
        raise InputError(f"there are {X.shape[0]} rows, but labels of shape {y.shape}; there must be one a row")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InputError("labels contain NaN or infinity")
    classes, numbers = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"{name} needs two classes or more; all {len(y)} labels are {classes.tolist()}")
    return classes, numbers
