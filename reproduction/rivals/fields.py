"""Rows of a table, for rivals that take categories as such."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Fields:
    """Category numbers, a column a field (-1: none, or one that training rows do not have), numbers, and the same rows
    as sparse ones. Indexed by row numbers.
    """

    codes: np.ndarray
    numbers: np.ndarray
    rows: sparse.csr_array

    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.codes), self.codes.shape[1] + self.numbers.shape[1]

    def __getitem__(self, rows) -> Fields:
        return Fields(self.codes[rows], self.numbers[rows], self.rows[rows])

    def frame(self):
        """A pandas frame: categories are texts."""
        import pandas

        categories = {f"c{place}": self.codes[:, place].astype(str) for place in range(self.codes.shape[1])}
        return pandas.DataFrame(categories | {f"n{place}": column for place, column in enumerate(self.numbers.T)})
