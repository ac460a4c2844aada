"""Operators with sparse rows of signs: only the non-zeros of P are ever visited."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from scipy.sparse import csr_array, vstack

from sketchnet.data.csr import CsrBatch, check_finite, sparse_rows
from sketchnet.kernels import backend as kernel_backend
from sketchnet.projection.operator import Operator
from sketchnet.projection.slicing import plan_rows


class SparseOperator(Operator):
    """Shared by Li and Count Sketch, which differ in how they find a row's non-zeros."""

    sparse = True

    @property
    @abstractmethod
    def per_entry(self) -> float:
        """Non-zeros of a row of P, on average."""

    @abstractmethod
    def _rows(self, ids, kernels) -> tuple[np.ndarray, np.ndarray]:
        """CSR arrays (indptr, codes) of the given rows of P / scale; a code is the column, ~column for a sign of -1."""

    def pattern(self, ids) -> tuple[np.ndarray, np.ndarray]:
        """(indptr, codes) of the given rows of P / scale, where a learnable layer begins; for codes see `_rows`."""
        return self._rows(ids, kernel_backend())

    def _matrix(self, ids, kernels) -> csr_array:
        indptr, codes = self._rows(ids, kernels)
        signs, columns = np.where(codes < 0, -1.0, 1.0), np.where(codes < 0, ~codes, codes)
        return csr_array((signs, columns, indptr), shape=(len(ids), self.k))

    def entries(self, rows, columns, kernels) -> np.ndarray:
        return self._matrix(rows, kernels)[:, columns].toarray()

    def _apply_to_sparse(self, parts: list, dtype, budget: int, kernels) -> csr_array:
        products = [csr_array((0, self.k), dtype=dtype)]
        for X in parts:
            if not isinstance(X, CsrBatch):
                check_finite(X)
                X = sparse_rows(X)
            # The result follows the non-zeros, not k, so units may have as many rows as if there were one output.
            plan = plan_rows(X.indptr, 2**63, 1, 16 + 48 * (self.per_entry + 1), budget)
            products += [self._product(X.rows(unit.rows), dtype, kernels) for unit in plan.units]
        return vstack(products, format="csr")

    def _product(self, X: CsrBatch, dtype, kernels) -> csr_array:
        """Only outputs that some row reaches have a place meanwhile: scipy's product takes memory and time for each."""
        ids, local = kernels.compact_columns(X.indices, self.d)
        rows = csr_array((X.values.astype(dtype), local, X.indptr - X.indptr[0]), shape=(X.n_rows, len(ids)))
        matrix = (self._matrix(ids, kernels) * self.scale).astype(dtype)
        reached, places = np.unique(matrix.indices, return_inverse=True)
        matrix = csr_array((matrix.data, places, matrix.indptr), shape=(len(ids), len(reached)))
        product = rows @ matrix
        product.eliminate_zeros()
        return csr_array((product.data, reached[product.indices], product.indptr), shape=(X.n_rows, self.k))
