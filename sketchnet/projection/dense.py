"""Operators with dense rows: panels of P are drawn for the columns at hand, multiplied, and forgotten."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from sketchnet.data.csr import CsrBatch, check_source
from sketchnet.projection.operator import Operator
from sketchnet.projection.slicing import Plan, plan_panels, spans

_DRAWN_AT_ONCE = 1 << 16  # row ids written out at a time where P is drawn for all d columns


class DenseOperator(Operator):
    """Shared by Gaussian and Achlioptas, which differ only in `_draw`."""

    @abstractmethod
    def _draw(self, rows, first, out, kernels) -> None:
        """out[r, j] = P[rows[r], first + j] / scale, for `first` and a width that are multiples of four."""

    def plan(self, X: CsrBatch, budget: int) -> Plan:
        return plan_panels(X.indptr, self.d, self.k, budget)

    def run(self, X, out, plan, kernels, done=0) -> Iterator[int]:
        at, drawn, ids, local, panel, buffer = None, None, None, None, None, np.empty(0, np.float32)
        for number, unit in enumerate(plan.units[done:], start=done + 1):
            rows = X.rows(unit.rows)
            if plan.compact and unit.rows != at:
                ids = local = panel = buffer = None  # gone before their successors come
                ids, local = kernels.compact_columns(rows.indices, self.d)
                at, drawn, buffer = unit.rows, None, np.empty(0, np.float32)
            if unit.columns != drawn:
                height, width = self.d if ids is None else len(ids), _rounded_up(unit.columns.stop - unit.columns.start)
                if len(buffer) < height * width:
                    panel = buffer = None
                    buffer = np.empty(height * width, np.float32)
                panel, drawn = buffer[: height * width].reshape(height, width), unit.columns
                self._fill(panel, ids, unit.columns.start, kernels)
            indices = local if plan.compact else rows.indices
            kernels.multiply_panel(rows.indptr, indices, rows.values, panel, self.scale, out[unit.rows], unit.columns)
            yield number

    def _fill(self, panel: np.ndarray, ids, first: int, kernels) -> None:
        """Draw the rows `ids` of P / scale, from column `first` on; all rows if ids is None."""
        if ids is not None:
            self._draw(ids, first, panel, kernels)
            return
        for span in spans(self.d, _DRAWN_AT_ONCE):
            self._draw(np.arange(span.start, span.stop), first, panel[span], kernels)

    def entries(self, rows, columns, kernels) -> np.ndarray:
        first = columns.start // 4 * 4
        out = np.empty((len(rows), _rounded_up(columns.stop - first)), np.float32)
        self._draw(rows, first, out, kernels)
        return out[:, columns.start - first : columns.stop - first].astype(np.float64)

    def _apply_to_dense(self, X, out, budget, kernels) -> None:
        most = budget // (2 * (4 + out.itemsize) * self.d) // 16 * 16
        if most == 0:  # not even a narrow panel of all d rows fits: take the columns that occur, slice by slice
            return super()._apply_to_dense(X, out, budget, kernels)
        for columns in spans(self.k, most):
            width = columns.stop - columns.start
            panel = np.empty((self.d, _rounded_up(width)), np.float32)
            self._fill(panel, None, columns.start, kernels)
            panel = panel[:, :width].astype(out.dtype, copy=False)
            rows_at_once = max(1, len(X)) if X.dtype == out.dtype else max(1, budget // (2 * out.itemsize * self.d))
            for rows in spans(len(X), rows_at_once):
                with np.errstate(invalid="ignore", over="ignore"):  # bad values are looked for below
                    np.matmul(X[rows].astype(out.dtype, copy=False), panel, out=out[rows, columns])
        out *= out.dtype.type(self.scale)
        check_source(X, out)


def _rounded_up(width: int) -> int:
    return -(-width // 4) * 4
