"""Sparse rows to svmlight text that reads back bit for bit."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import cast

import numpy as np
from scipy import sparse

from sketchnet.data.compression import atomic_writing
from sketchnet.data.csr import CsrBatch, real_values, to_csr
from sketchnet.errors import InputError

_WRITTEN = 1 << 16  # entries turned to text at a time


def write_svmlight(
    path: str | os.PathLike, X, labels=None, *, base: int = 1, comment: str | bytes | None = None, groups=None
) -> None:
    """Write a CsrBatch or a scipy sparse matrix so that reading it gives the same bits, given the same dtype and base.

    Labels are those given, else the batch's, else 0: one a row, or a sparse matrix whose non-zero columns are the
    labels of a row. Query ids are the `groups` given, else the batch's. The comment comes first. A row without labels
    and entries cannot be written. The file appears whole or not at all, packed if its name ends in .gz, .bz2, .xz or
    .zst.
    """
    if not isinstance(path, str | os.PathLike):
        swapped = "; scikit-learn's order is another" if isinstance(labels, str | os.PathLike) else ""
        raise InputError(f"the path is a {type(path).__name__}; write_svmlight takes (path, X, labels){swapped}")
    if base not in (0, 1):
        raise InputError(f"base is {base!r}; allowed are 0, 1")
    X = to_csr(X)
    if sparse.issparse(labels):
        labels = sparse.csr_array(labels, copy=True)
        labels.eliminate_zeros()
        X = replace(X, labels=labels.indices, label_indptr=labels.indptr)
    elif labels is not None:
        X = replace(X, labels=_one_a_row("labels", labels), label_indptr=None)
    elif X.labels is None:
        X = replace(X, labels=np.zeros(X.n_rows))
    if groups is not None:
        X = replace(X, groups=_one_a_row("groups", groups))
    if X.groups is not None and X.groups.dtype.kind not in "iu":
        raise InputError(f"groups have dtype {X.groups.dtype}; query ids are whole numbers")
    comment = _comment(comment)
    for name, given in (
        ("labels", len(cast(np.ndarray, X.labels) if X.label_indptr is None else X.label_indptr[1:])),
        ("query ids", X.n_rows if X.groups is None else len(X.groups)),
    ):
        if given != X.n_rows:
            raise InputError(f"there are {X.n_rows} rows, but {given} have {name}")
    with atomic_writing(path) as file:
        file.write(comment)
        step = max(1, _WRITTEN * X.n_rows // (X.n_rows + len(X.indices) + 1))
        for start in range(0, X.n_rows, step):
            file.write(_lines(X.rows(slice(start, min(X.n_rows, start + step))), start, base))


def _one_a_row(name: str, given) -> np.ndarray:
    try:
        array = np.asarray(given)
    except ValueError:  # lists of several lengths
        array = np.empty((0, 0))
    if array.ndim != 1:
        several = "; several a row are written from a scipy sparse matrix or a CsrBatch" if name == "labels" else ""
        raise InputError(f"{name} must be one number a row{several}")
    return array


def _comment(comment: str | bytes | None) -> bytes:
    """The lines of a comment, each behind its sign, cut and spaced as scikit-learn does."""
    try:
        text = comment.decode("ascii") if isinstance(comment, bytes) else comment or ""
        lines = b"".join(b"# %s\n" % line for line in text.encode().splitlines())
    except (UnicodeError, AttributeError):
        raise InputError(f"the comment {comment!r} is not possible; it is text, or bytes of ASCII") from None
    if b"\0" in lines:
        raise InputError("the comment has a null character, which is no text")
    return lines


def _lines(rows: CsrBatch, first: int, base: int) -> bytes:
    """The rows as text. `first` is the number of the first one, for errors."""
    if len(rows.indices) and not 0 <= rows.indices.min() <= rows.indices.max() <= min(rows.n_columns, 2**63 - base) - 1:
        raise InputError(
            f"rows {first} to {first + rows.n_rows - 1} have column ids from {rows.indices.min()} to "
            f"{rows.indices.max()}; allowed are 0 to {min(rows.n_columns, 2**63 - base) - 1}"
        )
    ids = (rows.indices.astype(np.uint64) + np.uint64(base)).tolist()
    entries = [f"{i}:{value}" for i, value in zip(ids, _decimals(rows.values))]
    fields, several = _decimals(cast(np.ndarray, rows.labels)), rows.label_indptr
    ends = (rows.indptr - rows.indptr[0]).tolist()
    label_ends = range(rows.n_rows + 1) if several is None else (several - several[0]).tolist()
    lines = []
    for r in range(rows.n_rows):
        line = entries[ends[r] : ends[r + 1]]
        if rows.groups is not None:
            line.insert(0, f"qid:{rows.groups[r]}")
        if label_ends[r] < label_ends[r + 1]:
            line.insert(0, ",".join(map(str, fields[label_ends[r] : label_ends[r + 1]])))
        if not line:
            raise InputError(f"row {first + r} has neither labels nor entries; svmlight text cannot say that")
        lines.append(" ".join(line) + "\n")
    text = "".join(lines)
    for after in " ,\n":  # whole numbers without a point
        text = text.replace(f".0{after}", after)
    return text.encode("ascii")


def _decimals(numbers: np.ndarray) -> list[str] | list[float]:
    """The shortest decimals that read back as the same bits: strings, or doubles, which Python prints so."""
    given = real_values(np.asarray(numbers))
    numbers = given if given.dtype.kind == "f" else given.astype(np.float64)
    if not np.isfinite(numbers).all() or not np.array_equal(numbers.astype(given.dtype), given):
        raise InputError("NaN, infinity and whole numbers beyond 2**53 cannot be written")
    return numbers.tolist() if numbers.dtype == np.float64 else numbers.astype("U32").tolist()
