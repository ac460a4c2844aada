"""What all that predicts has in common: a task, how its rows were read, how it was trained, a folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.training import checkpoint
from sketchnet.training.task import Task


class Predictor(ABC):
    """`data` says how its rows were read (hashes, categories, the base of ids), so that others are read alike."""

    task: Task
    settings: Any  # a dict by name
    data: dict
    history: list[dict]

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """The width of its rows."""

    @abstractmethod
    def outputs(self, rows, progress=None, threads: int | None = None) -> np.ndarray:
        """Return the outputs (rows x outputs) for a CsrBatch or a data set on disk, in the task's terms."""

    @abstractmethod
    def contributions(self, batch: CsrBatch, outputs: np.ndarray) -> np.ndarray:
        """Return what each entry of rows without repeated ids adds to its row's output number outputs[row]."""

    @abstractmethod
    def tensors(self) -> dict[str, torch.Tensor]:
        """Return what it has learnt, by name."""

    @abstractmethod
    def config(self) -> dict:
        """Return what `config.json` says of it."""

    @property
    def n_parameters(self) -> int:
        """How many numbers it has learnt."""
        return sum(tensor.numel() for tensor in self.tensors().values())

    @property
    def takes_any_id(self) -> bool:
        """Whether rows may be wider than those that it learnt from."""
        return False

    @property
    def classes(self) -> tuple:
        """As people know them, in the order of the outputs. Where the data has names, the task has their numbers."""
        names = self.data.get("classes")
        return tuple(names[int(number)] for number in self.task.classes) if names else self.task.classes

    @property
    def class_names(self) -> list[str]:
        """The classes as texts."""
        whole = [int(c) if isinstance(c, float) and c.is_integer() else c for c in self.classes]
        return [str(label) for label in whole]

    def save(self, folder: str | Path) -> None:
        """Write the model into a folder, which is made if need be. A data set, another program's folder and an
        unfinished training are left alone. A model that is there is replaced by a whole one, or stays.
        """
        folder = Path(folder)
        checkpoint.check_place(folder)
        with checkpoint.held(folder):
            if checkpoint.is_unfinished(folder):
                raise InputError(f"{folder} is being trained, or its training was interrupted; choose another folder")
            checkpoint.write_model(folder, self.tensors(), self.history, self.config())
