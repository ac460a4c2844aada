"""Sparse rows as three plain arrays, checked once on the way in."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sketchnet.errors import BadRows, InputError
from sketchnet.kernels import backend


@dataclass(frozen=True)
class CsrBatch:
    """Rows in compressed form: row r has ids indices[t] and values[t] for t from indptr[r] to indptr[r + 1].

    The arrays may be read-only memory maps of any integer width and any real dtype. Rows may be empty, ids unsorted and
    repeated: a projection is linear, so repeated ids add up. After `rows()`, offsets count from indptr[0].

    `labels` has one number a row; with `label_indptr` it has several: row r's are labels[label_indptr[r] :
    label_indptr[r + 1]], again counting from label_indptr[0]. `groups` has one query id a row.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    n_columns: int
    labels: np.ndarray | None = None
    label_indptr: np.ndarray | None = None
    groups: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_entries(self) -> int:
        return len(self.indices)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.indptr, self.indices, self.values

    def rows(self, span: slice) -> CsrBatch:
        """Rows span.start to span.stop, without copying."""
        indptr, entries = _part(self.indptr, span)
        labels, label_indptr = self.labels, self.label_indptr
        if label_indptr is not None:
            label_indptr, several = _part(label_indptr, span)
            labels = None if labels is None else labels[several]
        elif labels is not None:
            labels = labels[span]
        groups = None if self.groups is None else self.groups[span]
        return CsrBatch(
            indptr, self.indices[entries], self.values[entries], self.n_columns, labels, label_indptr, groups
        )

    def torch(self) -> dict:
        """The arrays as torch tensors by name, offsets from zero on; entries share memory unless they are read-only."""
        import torch  # here, because sketchnet without networks does not need it

        tensors = {}
        for field in dataclasses.fields(self):
            array = getattr(self, field.name)
            if field.name == "n_columns" or array is None:
                continue
            if field.name.endswith("indptr"):
                array = array - array[0]
            array = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
            tensors[field.name] = torch.from_numpy(array if array.flags.writeable else array.copy())
        return tensors

    def scipy(self) -> sparse.csr_array:
        """The rows as a scipy matrix, entries without copying; scipy wants offsets as wide as ids, others 32 bits."""
        offsets = self.indptr - self.indptr[0]
        if self.indices.dtype == np.int32 and int(offsets[-1]) < 2**31:
            offsets = offsets.astype(np.int32)
        return sparse.csr_array((self.values, self.indices, offsets), shape=(self.n_rows, self.n_columns))


def _part(indptr: np.ndarray, span: slice) -> tuple[np.ndarray, slice]:
    base = int(indptr[0])
    return indptr[span.start : span.stop + 1], slice(int(indptr[span.start]) - base, int(indptr[span.stop]) - base)


def as_csr(X, n_columns: int, first: int = 0) -> CsrBatch:
    """A checked CsrBatch of rows of any kind. Messages number rows from `first` on."""
    X = to_csr(X)
    if X.n_columns != n_columns:
        raise InputError(f"X has {X.n_columns} columns, but the projection was made for {n_columns}")
    X = dataclasses.replace(X, indptr=as_ids(X.indptr), indices=as_ids(X.indices), values=real_values(X.values))
    check_offsets(X, first)
    entry = backend().first_bad_id(X.indices, n_columns)
    if entry >= 0:
        row = first + _row_of(X, entry)
        raise BadRows(f"row {row} has column id {X.indices[entry]}; allowed are 0 to {n_columns - 1}")
    check_values(X, first)
    return X


def check_values(X: CsrBatch, first: int = 0) -> None:
    """Raise if a value is NaN or infinite, saying where."""
    values = real_values(X.values)
    entry = backend().first_non_finite(values) if values.dtype.kind == "f" else -1
    if entry >= 0:
        where = f"row {first + _row_of(X, entry)}, column {X.indices[entry]}"
        raise BadRows(f"Input X contains NaN or infinity: {values[entry]} in {where}")


def without_repeats(X: CsrBatch) -> CsrBatch:
    """Rows that were checked, with ascending ids, those that were repeated added up: for what is not linear in values.

    Labels are left out where this makes a copy.
    """
    if backend().ordered(X.indptr, X.indices):
        return X
    tidy = X.scipy().astype(np.result_type(X.values.dtype, np.float32), copy=True)
    tidy.sum_duplicates()
    return CsrBatch(tidy.indptr, tidy.indices, tidy.data, X.n_columns)


def to_csr(X) -> CsrBatch:
    """Rows of a scipy sparse matrix (CSR without copying), a dense array or list, or a torch tensor; a CsrBatch is
    passed on. Nothing is checked but the shape.
    """
    X = without_torch(X)
    if isinstance(X, CsrBatch):
        return X
    if not sparse.issparse(X):
        return sparse_rows(as_dense(X))
    if X.ndim != 2:
        raise InputError(f"X has {X.ndim} dimensions; it must have two, rows and columns")
    if X.format in ("csc", "bsr"):  # whose arrays may have been changed by hand: converting would go astray
        try:
            X.check_format()
        except ValueError as error:
            raise BadRows(f"the arrays of X do not fit each other: {error}") from None
    elif X.format == "coo" and not all(_within(ids, n) for ids, n in zip((X.row, X.col), X.shape)):
        raise BadRows(f"X has entries beyond its shape {X.shape}")
    X = X if X.format == "csr" else X.tocsr()
    return csr_of_whole(X.indptr, X.indices, X.data, X.shape)


def csr_of_whole(indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> CsrBatch:
    """Return the rows of a whole matrix, whose offsets begin at 0 and may leave room behind the last row."""
    if indptr.shape != (shape[0] + 1,):
        raise BadRows(f"there are {indptr.size} row offsets for {shape[0]} rows; there must be one more than rows")
    if len(indices) != len(values):
        raise BadRows(f"there are {len(indices)} column ids but {len(values)} values")
    if indptr[0] != 0:
        raise BadRows(f"the row offsets begin at {indptr[0]}; in a scipy matrix they begin at 0")
    stored = max(0, int(indptr[-1]))
    return CsrBatch(indptr, indices[:stored], values[:stored], int(shape[1]))


def _within(ids: np.ndarray, n: int) -> bool:
    return ids.size == 0 or (int(ids.min()) >= 0 and int(ids.max()) < n)


def without_torch(X):
    """A torch tensor as an array or a CsrBatch, without copying where it can be; anything else as it is."""
    torch = sys.modules.get("torch")  # who has not loaded it has no tensors
    if torch is None or not isinstance(X, torch.Tensor):
        return X
    if X.requires_grad and torch.is_grad_enabled():
        raise InputError("X is a tensor that wants a gradient, and projections have none for it; give X.detach()")
    X = X.detach().cpu()
    X = X.float() if X.dtype == torch.bfloat16 else X  # which NumPy does not know
    if X.layout == torch.strided:
        return X.numpy()
    if X.layout not in (torch.sparse_csr, torch.sparse_coo):
        raise InputError(f"X is a tensor of layout {X.layout}; allowed are strided (dense), sparse_csr and sparse_coo")
    if X.ndim != 2 or X.dense_dim():
        raise InputError(f"X is a sparse tensor of shape {tuple(X.shape)}; it must have two dimensions, both sparse")
    if X.layout == torch.sparse_csr:
        return csr_of_whole(X.crow_indices().numpy(), X.col_indices().numpy(), X.values().numpy(), X.shape)
    if not all(_within(ids, n) for ids, n in zip(X._indices().numpy(), X.shape)):  # torch looks only if asked
        raise BadRows(f"X has entries beyond its shape {tuple(X.shape)}")
    X = X.coalesce()  # rows in order
    rows, columns = X.indices().numpy()
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
    return CsrBatch(indptr, columns, X.values().numpy(), X.shape[1])


def as_dense(X, n_columns: int | None = None) -> np.ndarray:
    """A two-dimensional array of real numbers, of any width unless one is given; its values are not looked at."""
    given = X
    try:
        X = np.asarray(X)
    except ValueError:  # NumPy makes no array of rows of different lengths
        X = None
    if X is None or X.ndim == 0:
        raise InputError(
            f"X is of type {type(given).__name__} and no matrix; allowed are NumPy arrays, lists of rows of one "
            "length, scipy sparse matrices, torch tensors and CsrBatches"
        )
    X = real_values(X)
    if X.ndim != 2:
        raise InputError(f"X has {X.ndim} dimensions; it must have two, rows and columns")
    if n_columns is not None and X.shape[1] != n_columns:
        raise InputError(f"X has {X.shape[1]} columns, but the projection was made for {n_columns}")
    return X


def check_finite(X: np.ndarray) -> None:
    """Raise if a two-dimensional array holds NaN or infinity, saying where."""
    if X.dtype.kind != "f" or X.shape[1] == 0:
        return
    step = max(1, (1 << 22) // X.shape[1])  # in pieces, should a piece have to be copied to lie in line
    for start in range(0, len(X), step):
        entry = backend().first_non_finite(np.ascontiguousarray(X[start : start + step]).ravel())
        if entry >= 0:
            row, column = start + entry // X.shape[1], entry % X.shape[1]
            raise InputError(f"Input X contains NaN or infinity: {X[row, column]} in row {row}, column {column}")


def check_source(X: np.ndarray, out: np.ndarray) -> None:
    """The same after the fact, for products in which every entry of a row of X reaches every entry of its row of `out`.

    A bad value shows in the smaller result, and X need not be read twice. Sums that overflow are not X's fault.
    """
    if backend().first_non_finite(out.ravel()) >= 0:
        check_finite(X)


def real_values(values: np.ndarray) -> np.ndarray:
    """The array as kernels take it: booleans, integers or floats of the machine's byte order. Copies only if needed."""
    if values.dtype.kind not in "biuf":
        raise BadRows(f"values have dtype {values.dtype}; allowed are real numbers (bool, int, float)")
    if values.dtype.kind == "f" and values.dtype.itemsize not in (4, 8):
        values = values.astype(np.float32 if values.dtype.itemsize < 4 else np.float64)
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def converted(X: CsrBatch, dtype: np.dtype) -> CsrBatch:
    """The rows with values of a floating type, which must be able to hold them."""
    if X.values.dtype == dtype:
        return X
    try:
        with np.errstate(over="raise"):
            return dataclasses.replace(X, values=X.values.astype(dtype))
    except FloatingPointError:
        given, most = np.abs(X.values).max(), np.finfo(dtype).max
        raise InputError(f"a value is {given:g}; networks compute in {dtype}, to {most:.3g} at most") from None


def as_ids(ids: np.ndarray) -> np.ndarray:
    """Offsets or column ids as kernels take them: int32 or int64. Copies only if needed."""
    if ids.dtype.kind not in "iu":
        raise BadRows(f"offsets and column ids must be integers, not {ids.dtype}")
    if ids.dtype in (np.int32, np.int64) and ids.dtype.isnative:
        return ids
    if ids.dtype == np.uint64 and ids.size and ids.max() >= 2**63:
        raise BadRows(f"column id {ids.max()} is too large; allowed are ids below 2**63")
    return ids.astype(np.int64)


def sparse_rows(X: np.ndarray) -> CsrBatch:
    """The non-zeros of a dense array."""
    X = sparse.csr_array(X)
    return CsrBatch(X.indptr, X.indices, X.data, X.shape[1])


def _row_of(X: CsrBatch, entry: int) -> int:
    return int(np.searchsorted(X.indptr, entry + int(X.indptr[0]), side="right")) - 1


def check_offsets(X: CsrBatch, first: int = 0) -> None:
    """Raise unless the row offsets never fall and span just the entries. Messages number rows from `first` on."""
    n_entries = len(X.indices)
    if len(X.values) != n_entries:
        raise BadRows(f"there are {n_entries} column ids but {len(X.values)} values")
    row = first_fall(X.indptr)
    if row >= 0:
        raise BadRows(f"row {first + row} ends before it begins: the row offsets must not fall")
    if len(X.indptr) == 0:
        raise BadRows("there are no row offsets; there must be one more than rows")
    start, stop = int(X.indptr[0]), int(X.indptr[-1])
    if stop - start != n_entries:
        raise BadRows(f"the row offsets do not fit {n_entries} stored entries: they run from {start} to {stop}")


def first_fall(offsets: np.ndarray) -> int:
    """Return the first row that ends before it begins, or -1."""
    step = 1 << 20  # in pieces, so that the check needs no memory of its own
    for start in range(0, len(offsets) - 1, step):
        piece = offsets[start : start + step + 1]
        falls = np.flatnonzero(piece[1:] < piece[:-1])
        if len(falls):
            return start + int(falls[0])
    return -1
