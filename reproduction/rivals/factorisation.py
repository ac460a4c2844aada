"""A factorisation machine: a weight and a vector for each column, and products of the vectors of a row's columns."""

from __future__ import annotations

from typing import ClassVar

from reproduction.rivals.columns import FewColumns
from reproduction.rivals.sparse_network import SparseNetwork


class FactorisationMachine(SparseNetwork):
    """w·x + Σ ⟨v_i, v_j⟩ x_i x_j over pairs of columns. More classes have weights of their own for columns and for each
    factor, and share the vectors.
    """

    name = "factorisation machine"
    defaults: ClassVar = {
        "factors": 16, "table_rate": 1e-2, "rate": 1e-2, "l2": 1e-4, "deviation": 0.05, "epochs": 50, "batch": 256,
    }  # fmt: skip
    space: ClassVar = {
        "factors": (4, 16, 64), "table_rate": (1e-3, 3e-3, 1e-2, 3e-2), "l2": (0.0, 1e-5, 1e-4, 1e-3),
        "deviation": (0.01, 0.05, 0.1), "batch": (128, 256, 1024),
    }  # fmt: skip

    def _make(self, X, y, settings):
        self._columns = FewColumns("seen").fit(X, y)
        n_outputs = len(self.classes_) if self.several_labels_ or len(self.classes_) > 2 else 1
        return make_module(self._columns.n_columns, n_outputs, settings)

    def _entries(self, X):
        few = self._columns.transform(X)
        return few.indices, few.indptr[:-1], few.data


def make_module(n_columns: int, n_outputs: int, settings: dict):
    import torch
    from torch import nn
    from torch.nn import functional

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = nn.EmbeddingBag(n_columns, n_outputs, mode="sum", sparse=True)
            self.vectors = nn.Embedding(n_columns, settings["factors"], sparse=True)
            nn.init.zeros_(self.weights.weight)
            nn.init.normal_(self.vectors.weight, std=settings["deviation"])
            self.bias = nn.Parameter(torch.zeros(n_outputs))
            # One output: the machine of the paper, whose factors all weigh 1.
            self.heads = nn.Parameter(torch.ones(n_outputs, settings["factors"]), requires_grad=n_outputs > 1)

        def tables(self):
            return [self.weights.weight, self.vectors.weight]

        def others(self):
            return [self.bias] + ([self.heads] if self.heads.requires_grad else [])

        def penalty(self):
            """Of the vectors that the last rows needed, a row's share."""
            return settings["l2"] * self._needed.square().sum() / self._n_rows

        def forward(self, ids, offsets, values):
            n = len(offsets)
            ends = torch.cat([offsets[1:], torch.tensor([len(ids)], device=ids.device)])
            rows = torch.repeat_interleave(torch.arange(n, device=ids.device), ends - offsets)
            self._needed, self._n_rows = self.vectors(ids), n
            scaled = self._needed * values[:, None]
            empty = scaled.new_zeros(n, scaled.shape[1])
            sums, squares = empty.index_add(0, rows, scaled), empty.index_add(0, rows, scaled.square())
            pairs = functional.linear((sums.square() - squares) / 2, self.heads, self.bias)
            logits = pairs + self.weights(ids, offsets, per_sample_weights=values)
            return logits if n_outputs > 1 else torch.cat([torch.zeros_like(logits), logits], dim=1)

    return Module()
