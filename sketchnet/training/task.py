"""What a network is to predict: its outputs, its loss, its error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from torch.nn import functional

from sketchnet.checks import check_real
from sketchnet.errors import InputError
from sketchnet.training.targets import as_numbers, check_finite_labels, mean_and_deviation, restore, standardise

KINDS = ("binary", "multiclass", "multilabel", "regression", "autoencoder")


@dataclass(frozen=True)
class Task:
    """`kind`, the class labels in the order of the outputs, and for regression the targets' mean and deviation.

    Targets are encoded as one number a row (class number, or standardised value), or for "multilabel" as a CSR array of
    0 and 1. The loss is cross-entropy (binary, softmax, or binary for each label) or the squared error.
    """

    kind: str
    classes: tuple = ()
    mean: float = 0.0
    deviation: float = 1.0

    @property
    def n_outputs(self) -> int:
        return len(self.classes) if self.kind in ("multiclass", "multilabel") else 1

    def to_dict(self) -> dict:
        return {
            "kind": self.kind,
            "classes": list(self.classes),
            "mean": self.mean,
            "deviation": self.deviation,
        }

    @classmethod
    def from_dict(cls, content: dict) -> Task:
        if content.get("kind") not in KINDS:
            raise InputError(f"there is no task {content.get('kind')!r}; there are {', '.join(KINDS)}")
        classes = tuple(content["classes"])
        expected = {"binary": len(classes) == 2, "regression": not classes, "autoencoder": not classes}
        fits = expected.get(content["kind"], len(classes) > 0)
        if not fits or not all(isinstance(label, str | int | float) for label in classes):
            raise InputError(f"{len(classes)} classes are not possible for the task {content['kind']}")
        mean = check_real("mean", content["mean"], -np.inf)
        deviation = check_real("deviation", content["deviation"], math.ulp(0.0))
        return cls(content["kind"], classes, mean, deviation)

    @classmethod
    def of_labels(cls, labels, regression: bool = False) -> Task:
        """The task that labels call for: an array (numbers or texts), or a sparse matrix of 0 and 1."""
        if sparse.issparse(labels):
            return cls("multilabel", tuple(range(labels.shape[1])))
        labels = np.asarray(labels)
        if len(labels) == 0:
            raise InputError("there are no rows to learn from")
        if regression:
            return cls("regression", (), *mean_and_deviation(as_numbers(labels)))
        check_finite_labels(labels)
        classes = np.unique(labels)
        if labels.dtype.kind == "f" and len(classes) > 1000 and not np.array_equal(classes, np.round(classes)):
            raise InputError(f"the labels are {len(classes):,} different fractions: that is regression, not classes")
        if len(classes) < 2:
            raise InputError(f"there is only one class, {_spelt(classes[0])}; a classifier needs at least two")
        return cls("binary" if len(classes) == 2 else "multiclass", tuple(classes.tolist()))

    def encode(self, labels):
        """Targets as training takes them."""
        if self.kind == "multilabel":
            labels = sparse.csr_array(labels)
            if labels.shape[1] > self.n_outputs:
                raise InputError(f"labels go up to {labels.shape[1] - 1}; the model knows 0 to {self.n_outputs - 1}")
            labels.resize(labels.shape[0], self.n_outputs)
            return labels.astype(np.float32)
        labels = np.asarray(labels)
        if self.kind == "regression":
            return standardise(as_numbers(labels), self.mean, self.deviation)
        order = np.argsort(self.classes)  # names stand in the order of their numbers
        classes = np.asarray(self.classes)[order]
        try:
            found = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        except TypeError:
            raise several_kinds([*classes.tolist(), *labels.tolist()]) from None
        wrong = np.flatnonzero(classes[found] != labels)
        if len(wrong):
            known = ", ".join(map(_spelt, self.classes[:10])) + (", ..." if len(self.classes) > 10 else "")
            raise InputError(f"label {_spelt(labels[wrong[0]])} of row {wrong[0]} is not among the classes {known}")
        return order[found]

    def batch(self, targets, rows: np.ndarray) -> torch.Tensor:
        """The targets of some rows as a tensor."""
        if self.kind == "multilabel":
            return torch.from_numpy(targets[rows].toarray())
        chosen = targets[rows]
        return torch.from_numpy(chosen if self.kind == "multiclass" else chosen.astype(np.float32))

    def losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """One loss a row."""
        if self.kind == "multiclass":
            return functional.cross_entropy(outputs, targets, reduction="none")
        if self.kind == "multilabel":
            return functional.binary_cross_entropy_with_logits(outputs, targets, reduction="none").mean(dim=1)
        if self.kind == "binary":
            return functional.binary_cross_entropy_with_logits(outputs[:, 0], targets, reduction="none")
        return (outputs[:, 0] - targets) ** 2

    def mistakes(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """What the error rate averages: 1 for a wrong class, the share of wrong labels, the squared error."""
        if self.kind == "multiclass":
            return (outputs.argmax(dim=1) != targets).float()
        if self.kind == "multilabel":
            return ((outputs > 0) != (targets > 0)).float().mean(dim=1)
        if self.kind == "binary":
            return ((outputs[:, 0] > 0) != (targets > 0)).float()
        return self.losses(outputs, targets)

    def probabilities(self, outputs: np.ndarray) -> np.ndarray:
        """A column for each class; for "multilabel" each label's own probability."""
        outputs = torch.from_numpy(outputs).double()
        if self.kind == "multiclass":
            return torch.softmax(outputs, dim=1).numpy()
        positive = torch.sigmoid(outputs).numpy()
        return positive if self.kind == "multilabel" else np.hstack([1 - positive, positive])

    def decide(self, outputs: np.ndarray) -> np.ndarray:
        """Predicted labels; for "multilabel" an array of 0 and 1."""
        if self.kind == "regression":
            return restore(outputs[:, 0], self.mean, self.deviation)
        if self.kind == "multilabel":
            return (outputs > 0).astype(np.int64)
        return np.asarray(self.classes)[self.numbers(outputs)]

    def numbers(self, outputs: np.ndarray) -> np.ndarray:
        """The number of the likeliest class of each row."""
        return (outputs[:, 0] > 0).astype(np.int64) if self.kind == "binary" else outputs.argmax(axis=1)


def several_kinds(labels) -> InputError:
    """What to raise for labels that cannot be sorted."""
    kinds = ", ".join(sorted({type(label).__name__ for label in labels}))
    return InputError(f"labels are of several kinds ({kinds}); they must be of one")


def _spelt(label) -> str:
    """A label as people write it: whole numbers are kept as floats."""
    return f"{label:.0f}" if isinstance(label, float) and label.is_integer() else str(label)
