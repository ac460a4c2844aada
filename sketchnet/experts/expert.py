"""What the blend asks of an expert: the small contract behind which each of them is one file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from sketchnet.data.csr import CsrBatch
from sketchnet.experts.rows import Sample


class Expert(ABC):
    """A small model on rows with numbered columns.

    `kind` is the task's: "binary" (one output, positive for the second class), "multiclass" (one a class),
    "multilabel" (one a label) or "regression" (the standardised number). The last column number stands for every column
    that no row had when columns were numbered. Everything random follows from `seed`; the same rows give the same
    expert, whatever the threads.
    """

    name: ClassVar[str]
    refits_cheaply: ClassVar[bool] = False  # so that it learns from all rows in the end, however many
    refits_from_fit: ClassVar[bool] = False  # by more than `chosen`: `refit` goes on from what `fit` left, unsaved
    usual: ClassVar[dict[str, float]] = {}  # what `chosen` is where no rows were held back

    def __init__(self, kind: str, n_outputs: int, seed: int = 0, effort: str = "auto"):
        self.kind, self.n_outputs, self.seed, self.effort = kind, n_outputs, seed, effort
        self.chosen = dict(self.usual)  # by held-back rows, once fitted: `refit` goes by it

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """The width of the rows that it has learnt from."""

    @classmethod  # noqa: B027 (most take any rows)
    def check(cls, sample: Sample, kind: str, n_outputs: int) -> None:
        """Raise InputError if it cannot learn from such rows, though it was named."""

    @classmethod
    @abstractmethod
    def applies(cls, sample: Sample, kind: str, n_outputs: int) -> bool:
        """Return whether such rows are worth a trial."""

    @abstractmethod
    def fit(self, train: Sample, valid: Sample) -> np.ndarray:
        """Learn from `train`; return the logits of `valid`, whose targets choose settings and when to stop.

        The numbers that were chosen go into `chosen`; their geometric mean over folds must make sense.
        """

    @abstractmethod
    def refit(self, sample: Sample) -> None:
        """Learn once more, from all rows, by what `chosen` says."""

    @abstractmethod
    def logits(self, rows: CsrBatch) -> np.ndarray:
        """Return a float32 array, rows x outputs."""

    @abstractmethod
    def contributions(self, rows: CsrBatch, outputs: np.ndarray) -> np.ndarray:
        """Return what each stored entry adds to its row's logit number outputs[row]: one number an entry, in order."""

    @abstractmethod
    def state(self) -> tuple[dict[str, np.ndarray], dict]:
        """Return all that `restore` needs: arrays by name, and settings that JSON can hold."""

    @abstractmethod
    def restore(self, arrays: dict[str, np.ndarray], settings: dict) -> None:
        """Become the expert whose state this is; raise InputError if it cannot be one."""
