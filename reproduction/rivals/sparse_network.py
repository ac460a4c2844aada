"""What networks on sparse rows share: two Adams, one for tables of which a batch needs few rows, and epochs."""

from __future__ import annotations

from abc import abstractmethod
from copy import deepcopy

import numpy as np

from reproduction.rivals.epochs import best_epoch
from reproduction.rivals.rival import Rival, known_rows
from sketchnet import random

_PREDICTED = 1024  # rows at a time


class SparseNetwork(Rival):
    """Subclasses make a module of (ids, offsets, values) whose tables have sparse gradients, and number columns.

    Held-back rows choose the epoch by their wrong rows, or by their loss where `by_loss` is set.
    """

    takes_several_labels = True
    by_loss = False

    def load(self) -> None:
        import torch

        torch.optim.SparseAdam([torch.nn.Parameter(torch.zeros(1))])  # the first optimiser imports half of torch

    def _learn(self, X, y, settings, valid, deadline) -> None:
        import torch

        # A row's vectors are multiplied by its values: of about 1 in the mean, whatever the scale of the data.
        self._scale = 1 / max(1e-30, float(np.sqrt(np.square(X.data, dtype=np.float64).sum() / X.shape[0])))
        self._torch_device = _device(self.device)
        torch.manual_seed(self.seed)
        self._model = self._make(X, y, settings).to(self._torch_device)
        tables, others = self._model.tables(), self._model.others()
        optimisers = [
            torch.optim.SparseAdam(tables, lr=settings["table_rate"]),
            torch.optim.Adam(others, lr=settings["rate"]),
        ]
        n, size, epoch = X.shape[0], settings["batch"], 0

        def learn() -> None:
            nonlocal epoch
            order = random.shuffled(n, self.seed, random.STREAM_SHUFFLE, epoch)
            epoch += 1
            self._model.train()
            for start in range(0, n, size):
                rows = order[start : start + size]
                loss = self._loss(self._logits(X[rows]), y[rows]) + self._model.penalty()
                for optimiser in optimisers:
                    optimiser.zero_grad()
                loss.backward()
                for optimiser in optimisers:
                    optimiser.step()

        kept = {}

        def keep() -> None:
            kept.update(deepcopy(self._model.state_dict()))

        settings["epochs"] = best_epoch(settings["epochs"], learn, self._held_back_loss(valid), keep, deadline)
        if kept:
            self._model.load_state_dict(kept)

    def _held_back_loss(self, valid):
        if valid is None:
            return None
        if not self.by_loss:
            return lambda: np.count_nonzero(self._decide(valid[0]) != valid[1])
        X, y = known_rows(valid)
        return lambda: self._loss(self._all_logits(X), y).item()

    def _loss(self, logits, y: np.ndarray):
        import torch
        from torch.nn import functional

        if self.several_labels_:
            y = torch.from_numpy(y.astype(np.float32)).to(logits.device)
            return functional.binary_cross_entropy_with_logits(logits, y, reduction="sum") / len(y)
        return functional.cross_entropy(logits, torch.from_numpy(y).to(logits.device))

    def _outputs(self, X) -> np.ndarray:
        logits = self._all_logits(X).double()
        return (logits.sigmoid() if self.several_labels_ else logits.softmax(dim=1)).cpu().numpy()

    def _all_logits(self, X):
        import torch

        self._model.eval()
        with torch.no_grad():
            return torch.cat([self._logits(X[i : i + _PREDICTED]) for i in range(0, X.shape[0], _PREDICTED)])

    def _logits(self, X):
        import torch

        ids, offsets, values = self._entries(X)
        values = values.astype(np.float32) * np.float32(self._scale)
        arrays = ids.astype(np.int64), offsets.astype(np.int64), values
        return self._model(*(torch.from_numpy(array).to(self._torch_device) for array in arrays))

    @abstractmethod
    def _make(self, X, y, settings: dict): ...

    @abstractmethod
    def _entries(self, X) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of the tables, the first entry of each row of X, and values."""


def _device(name: str) -> str:
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return name
