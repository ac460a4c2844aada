"""How many digits of a number are shown: as many as tell it from its neighbours, no more."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, isfinite, log10

_DIGITS = 4  # of the largest number
_LEAST = 2  # of the smallest one; with fewer, each number gets digits of its own


def decimals_for(values: Iterable[float]) -> int | None:
    """Decimals with which numbers stand below each other; None, if they are of too different sizes for that."""
    sizes = [abs(value) for value in values if isfinite(value) and value != 0]
    if not sizes:
        return 0
    decimals = max(0, _DIGITS - 1 - floor(log10(max(sizes))))
    if all(value == round(value) for value in sizes) and max(sizes) < 1e7:
        return 0
    return decimals if decimals <= 6 and min(sizes) >= 10.0 ** (_LEAST - 1 - decimals) else None


def shown(value: float, decimals: int | None = None) -> str:
    """A number with so many decimals, or with three significant digits or more."""
    if not isfinite(value):
        return "not finite"
    if decimals is not None:
        return f"{value:,.{decimals}f}"
    if value == round(value) and abs(value) < 1e7:
        return f"{value:,.0f}"
    if 1e-4 <= abs(value) < 1e7:
        return f"{value:,.{max(0, 2 - floor(log10(abs(value))))}f}"
    return f"{value:.2e}"


def time_shown(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 120:
        return f"{shown(seconds)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
