"""A model's outputs for rows that come batch by batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sketchnet.cli.progress import progress_rows
from sketchnet.evaluation.metrics import check_outputs


def outputs_of(model, rows, description: str | None, dtype=None) -> Iterator:
    """Yield the outputs for each batch of ModelRows, beside a bar that is called so, or for None without one."""
    done = 0
    with progress_rows(description) as progress:
        for batch in rows:
            outputs = np.asarray(model.outputs(batch), dtype)
            check_outputs(outputs, done)
            done += len(outputs)
            progress(rows.done, done)
            yield outputs
