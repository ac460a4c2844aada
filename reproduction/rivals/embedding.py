"""The hashed-embedding network: a vector for each column, from a hashed table; their weighted sum enters an MLP."""

from __future__ import annotations

from typing import ClassVar

from reproduction.rivals.columns import hashed
from reproduction.rivals.sparse_network import SparseNetwork


class EmbeddingNetwork(SparseNetwork):
    name = "EmbeddingBag network"
    defaults: ClassVar = {
        "bits": 20, "width": 32, "hidden": 128, "table_rate": 1e-2, "rate": 1e-3, "dropout": 0.2, "epochs": 20,
        "batch": 128,
    }  # fmt: skip
    space: ClassVar = {
        "bits": (18, 20, 22), "width": (8, 32, 64), "hidden": (64, 128, 256), "table_rate": (1e-3, 3e-3, 1e-2, 3e-2),
        "dropout": (0.0, 0.2, 0.5), "batch": (128, 512),
    }  # fmt: skip

    def grid(self, X, y) -> list[dict]:
        grid = [{}, {"table_rate": 1e-3}, {"width": 64, "hidden": 256}, {"table_rate": 3e-2}, {"dropout": 0.5}]
        return [*grid, {"bits": 22}, {"width": 8, "hidden": 64}]

    def _make(self, X, y, settings):
        self._bits = settings["bits"]
        return make_module(2**self._bits, len(self.classes_), settings)

    def _entries(self, X):
        return hashed(X.indices, 2**self._bits, self.seed), X.indptr[:-1], X.data


def make_module(size: int, n_outputs: int, settings: dict):
    from torch import nn

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            width, hidden = settings["width"], settings["hidden"]
            self.table = nn.EmbeddingBag(size, width, mode="sum", sparse=True)
            nn.init.normal_(self.table.weight, std=0.1)
            dropout = nn.Dropout(settings["dropout"])
            self.top = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), dropout, nn.Linear(hidden, n_outputs))

        def tables(self):
            return list(self.table.parameters())

        def others(self):
            return list(self.top.parameters())

        def penalty(self):
            return 0.0

        def forward(self, ids, offsets, values):
            return self.top(self.table(ids, offsets, per_sample_weights=values))

    return Module()
