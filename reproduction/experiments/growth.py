"""How fast a measured time grows."""

from __future__ import annotations

from math import log


def power(curve: dict[float, float], start: float) -> float:
    """The power of x with which a curve grows from `start` to its largest x; KeyError if it was not measured there."""
    end = max(curve)
    if end <= start:
        raise KeyError(end)
    return log(curve[end] / curve[start]) / log(end / start)
