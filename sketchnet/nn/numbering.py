"""The distinct columns of a batch, numbered once for all layers that read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchnet.data.csr import CsrBatch, as_csr
from sketchnet.kernels import backend


@dataclass(frozen=True)
class Numbered:
    """A batch, its distinct column ids, and each entry's position among them."""

    batch: CsrBatch
    columns: np.ndarray
    local: np.ndarray


def number(batch: CsrBatch | Numbered, n_columns: int) -> Numbered:
    """Check a batch and number its columns; one that was numbered before is passed on."""
    if isinstance(batch, Numbered):
        return batch
    batch = as_csr(batch, n_columns)
    return Numbered(batch, *backend().number_columns(batch.indices))
