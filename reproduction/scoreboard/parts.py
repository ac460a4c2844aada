"""Rows as rivals read them: sparse, as fields of a table, or as texts; kept in a folder for processes that measure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from reproduction.rivals.fields import Fields
from sketchnet.storage import writing


@dataclass(frozen=True)
class Part:
    """Training or test rows. `y` has class numbers, or of several labels an array of 0 and 1."""

    X: sparse.csr_array
    y: np.ndarray
    fields: Fields | None = None
    texts: np.ndarray | None = None

    def __len__(self) -> int:
        return self.X.shape[0]

    def take(self, rows: np.ndarray) -> Part:
        fields = None if self.fields is None else self.fields[rows]
        return Part(self.X[rows], self.y[rows], fields, None if self.texts is None else self.texts[rows])

    def view(self, name: str):
        """What a rival with this view reads; its fields, where there are none, are the sparse rows."""
        if name == "texts":
            return self.texts
        return self.fields if name == "fields" and self.fields is not None else self.X


def write_part(folder: Path, name: str, part: Part) -> None:
    with writing(folder):
        sparse.save_npz(folder / f"{name}.npz", part.X, compressed=False)
        np.save(folder / f"{name}-y.npy", part.y)
        if part.fields is not None:
            np.save(folder / f"{name}-codes.npy", part.fields.codes)
            np.save(folder / f"{name}-numbers.npy", part.fields.numbers)
        if part.texts is not None:
            (folder / f"{name}-texts.json").write_text(json.dumps(part.texts.tolist()), encoding="utf8")


def read_part(folder: Path, name: str, view: str) -> Part:
    """Without what a rival with this view does not read."""
    X = sparse.csr_array(sparse.load_npz(folder / f"{name}.npz"))
    fields, texts = None, None
    if view == "fields" and (folder / f"{name}-codes.npy").exists():
        fields = Fields(np.load(folder / f"{name}-codes.npy"), np.load(folder / f"{name}-numbers.npy"), X)
    if view == "texts":
        texts = np.array(json.loads((folder / f"{name}-texts.json").read_text(encoding="utf8")), object)
    return Part(X, np.load(folder / f"{name}-y.npy"), fields, texts)
