"""Which documents are relevant to which: those of the same class, or by the share of labels in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sketchnet.errors import InputError


@dataclass(frozen=True, eq=False)
class Classes:
    """Relevance is 1 within a class, 0 otherwise. `numbers` has a class for each document, counted from 0."""

    numbers: np.ndarray

    def queries(self) -> np.ndarray:
        """Documents to which another one is relevant."""
        return np.flatnonzero(np.bincount(self.numbers)[self.numbers] > 1)

    def gains(self, kernels, keys, own, gains, average) -> None:
        kernels.class_gains(keys, self.numbers, own, gains, average)

    def n_bytes(self, threads: int) -> int:
        return 32 * len(self.numbers)  # itself, what numbering takes, and the queries


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Relevance is |A ∩ B| / |A ∪ B| of two documents' sets of labels, 0 if both are empty.

    Document j has labels[indptr[j] : indptr[j + 1]]; label l is on documents[starts[l] : starts[l + 1]].
    """

    indptr: np.ndarray
    labels: np.ndarray
    starts: np.ndarray
    documents: np.ndarray

    def queries(self) -> np.ndarray:
        """Documents to which another one is relevant."""
        shared = np.concatenate([[0], np.cumsum(np.diff(self.starts)[self.labels] > 1)])
        return np.flatnonzero(np.diff(shared[self.indptr]))

    def gains(self, kernels, keys, own, gains, average) -> None:
        kernels.set_gains(keys, self.indptr, self.labels, self.starts, self.documents, own, gains, average)

    def n_bytes(self, threads: int) -> int:
        return 32 * len(self.labels) + (32 + 4 * threads) * len(self.indptr) + 16 * len(self.starts)


def relevance(labels, n: int) -> Classes | LabelSets:
    """What `labels` say: a class for each of n documents, or a sparse n × labels matrix of zeros and ones."""
    if sparse.issparse(labels):
        if labels.ndim != 2 or labels.shape[0] != n:
            raise InputError(f"labels have shape {labels.shape}, but there are {n} documents")
        return _sets(labels)
    numbers = _classes(labels)
    if len(numbers) != n:
        raise InputError(f"there are {len(numbers)} labels for {n} documents")
    return Classes(numbers)


def _classes(labels) -> np.ndarray:
    shape = getattr(labels, "shape", None)
    if shape is not None and len(shape) != 1:
        allowed = "a class for each document, or a sparse matrix with a column for each label"
        raise InputError(f"labels have shape {tuple(shape)}; they must be {allowed}")
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "biufSUMm":
        missing = np.flatnonzero(labels != labels)
        numbers = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    else:  # objects need no order to be classes
        known: dict = {}
        try:
            labels = labels.tolist() if hasattr(labels, "tolist") else list(labels)
            missing = [i for i, label in enumerate(labels) if label != label]
            numbers = np.array([known.setdefault(label, len(known)) for label in labels], np.int64)
        except TypeError as error:
            raise InputError(f"labels cannot serve as classes: {error}") from None
    if len(missing):
        raise InputError(f"label {missing[0]} is not a number (NaN); every document needs a class")
    return numbers


def _sets(labels) -> LabelSets:
    given = sparse.csr_array(labels)
    wrong = np.flatnonzero((given.data != 0) & (given.data != 1))
    if len(wrong):
        raise InputError(f"labels have the value {given.data[wrong[0]]}; a matrix of label sets has zeros and ones")
    # A copy, because these work in place; bool, because a row may name a label twice.
    own = sparse.csr_array((given.data != 0, given.indices.copy(), given.indptr.copy()), shape=given.shape)
    own.sum_duplicates()
    own.eliminate_zeros()
    turned = own.tocsc()
    arrays = own.indptr, own.indices, turned.indptr, turned.indices
    return LabelSets(*(array.astype(np.int64) for array in arrays))
