"""The hashed-embedding network: a vector for each column, from a hashed table; their weighted sum enters an MLP."""

from __future__ import annotations

from copy import deepcopy
from typing import ClassVar

import numpy as np

from reproduction.rivals.columns import hashed
from reproduction.rivals.epochs import best_epoch
from reproduction.rivals.rival import Rival
from sketchnet import random

_PREDICTED = 1024  # rows at a time


class EmbeddingNetwork(Rival):
    name = "EmbeddingBag network"
    defaults: ClassVar = {
        "bits": 20, "width": 32, "hidden": 128, "table_rate": 1e-2, "rate": 1e-3, "dropout": 0.2, "epochs": 20,
        "batch": 128,
    }  # fmt: skip

    def grid(self, X, y) -> list[dict]:
        grid = [{}, {"table_rate": 1e-3}, {"width": 64, "hidden": 256}, {"table_rate": 3e-2}, {"dropout": 0.5}]
        return [*grid, {"bits": 22}, {"width": 8, "hidden": 64}]

    def load(self) -> None:
        import torch

        torch.optim.SparseAdam([torch.nn.Parameter(torch.zeros(1))])  # the first optimiser imports half of torch

    def _learn(self, X, y, settings, valid, deadline) -> None:
        import torch
        from torch import nn

        self._bits = settings["bits"]
        # A row's vectors are multiplied by its values: of about 1 in the mean, whatever the scale of the data.
        self._scale = 1 / max(1e-30, float(np.sqrt(np.square(X.data, dtype=np.float64).sum() / X.shape[0])))
        self._torch_device = _device(self.device)
        torch.manual_seed(self.seed)
        width, hidden = settings["width"], settings["hidden"]
        table = nn.EmbeddingBag(2**self._bits, width, mode="sum", sparse=True)
        nn.init.normal_(table.weight, std=0.1)
        top = nn.Sequential(
            nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(settings["dropout"]), nn.Linear(hidden, len(self.classes_))
        )
        self._table, self._top = table.to(self._torch_device), top.to(self._torch_device)
        optimisers = [
            torch.optim.SparseAdam(self._table.parameters(), lr=settings["table_rate"]),
            torch.optim.Adam(self._top.parameters(), lr=settings["rate"]),
        ]
        labels = torch.from_numpy(y).to(self._torch_device)
        loss = nn.CrossEntropyLoss()
        n, size, epoch = X.shape[0], settings["batch"], 0

        def learn() -> None:
            nonlocal epoch
            order = random.shuffled(n, self.seed, random.STREAM_SHUFFLE, epoch)
            epoch += 1
            self._top.train()
            for start in range(0, n, size):
                rows = order[start : start + size]
                found = self._outputs(X[rows])
                for optimiser in optimisers:
                    optimiser.zero_grad()
                loss(found, labels[torch.from_numpy(rows).to(labels.device)]).backward()
                for optimiser in optimisers:
                    optimiser.step()

        kept = {}

        def keep() -> None:
            kept.update(table=deepcopy(self._table.state_dict()), top=deepcopy(self._top.state_dict()))

        count_wrong = None if valid is None else lambda: np.count_nonzero(self._decide(valid[0]) != valid[1])
        settings["epochs"] = best_epoch(settings["epochs"], learn, count_wrong, keep, deadline)
        if kept:
            self._table.load_state_dict(kept["table"])
            self._top.load_state_dict(kept["top"])

    def _decide(self, X) -> np.ndarray:
        import torch

        self._top.eval()
        with torch.no_grad():
            parts = [self._outputs(X[i : i + _PREDICTED]).argmax(dim=1) for i in range(0, X.shape[0], _PREDICTED)]
        return torch.cat(parts).cpu().numpy()

    def _outputs(self, X):
        import torch

        ids = hashed(X.indices, 2**self._bits, self.seed).astype(np.int64)
        values = X.data.astype(np.float32) * np.float32(self._scale)
        offsets = X.indptr[:-1].astype(np.int64)
        ids, offsets, values = (torch.from_numpy(a).to(self._torch_device) for a in (ids, offsets, values))
        return self._top(self._table(ids, offsets, per_sample_weights=values))


def _device(name: str) -> str:
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return name
