"""What may be wrong where numbers grow without end."""

from __future__ import annotations

import numpy as np

from sketchnet.data.batches import iterate_batches
from sketchnet.data.column_names import column_names
from sketchnet.training.model import Model

_ROWS = 4096  # looked at together
_SCALING = {
    "none": "; the setting scale_input=max_abs divides columns by their largest values",
    "max_abs": ", before columns are divided by their largest values",
}


def explain_divergence(model: Model, data, rate: float) -> str:
    """Return what an error ends with: the rate or the largest value is to blame."""
    return f"the rate {rate:g} may be too high, or values too large: {tell_largest(model, data)}"


def tell_largest(model: Model, data) -> str:
    """Return a sentence on the rows' largest value, with its column's name and how to scale it."""
    largest, column = find_largest(data)
    (name,) = column_names(np.array([column]), model.data, model.data.get("base", 0))
    name = name if name.isprintable() else repr(name)
    scaling = _SCALING.get(getattr(model.network.config, "scale_input", ""), "")
    return f"the largest is {largest:g}, in column {name}{scaling}"


def find_largest(data) -> tuple[float, int]:
    """Return the largest absolute value of rows and its column; zero in the first column if there are no values."""
    largest, column = 0.0, 0
    for batch in iterate_batches(data, _ROWS, shuffle=False):
        values = np.abs(batch.values[: batch.n_entries])
        if values.max(initial=0) > largest:
            place = values.argmax()
            largest, column = float(values[place]), int(batch.indices[place])
    return largest, column
