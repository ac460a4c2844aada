"""Axes: from numbers or names to places on a drawing, and the ticks between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

_TICKS = 6  # at most, or nearly
_DECADES = 2.0  # from so many on, ticks of a logarithmic axis are powers of ten alone


@dataclass(frozen=True)
class Axis:
    """Numbers from `low` to `high`, or names at even distances."""

    title: str
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    names: tuple[str, ...] = ()
    whole: bool = False  # ticks are whole numbers

    def place(self, value: float | str) -> float:
        """From 0 to 1, for what lies within."""
        if self.names:
            return (self.names.index(str(value)) + 0.5) / len(self.names)
        low, high, number = self.low, self.high, float(value)
        if self.log:
            low, high, number = map(log10, (low, high, number))
        return (number - low) / (high - low)

    def shows(self, value: float | str) -> bool:
        """Whether it has a place: a logarithm has none for zero."""
        return bool(self.names) or (isfinite(float(value)) and (float(value) > 0 or not self.log))

    def ticks(self) -> list[tuple[float, str]]:
        """(place, text) of each."""
        if self.names:
            return [(self.place(name), name) for name in self.names]
        values = _log_ticks(self.low, self.high) if self.log else _even_ticks(self.low, self.high)
        if self.whole:
            values = [value for value in values if value == round(value)]
        return [(self.place(value), tick_text(value)) for value in values]


def axis_for(title: str, values: Sequence[float | str], *, log: bool = False, zero: bool = False, whole=False) -> Axis:
    """An axis with room for all values; texts among them make it an axis of names. `zero`: it begins there."""
    if any(isinstance(value, str) for value in values):
        return Axis(title, names=tuple(dict.fromkeys(map(str, values))))
    found = [float(value) for value in values if isfinite(float(value)) and (float(value) > 0 or not log)]
    if not found:
        return Axis(title, *((1.0, 10.0) if log else (0.0, 1.0)), log)
    low, high = min(found), max(found)
    if log:
        room = (high / low) ** 0.06 if high > low else 2.0
        return Axis(title, low / room, high * room, True)
    room = 0.06 * (high - low) or 0.5 * abs(high) or 0.5
    if zero and low >= 0:
        return Axis(title, 0.0, high + room, whole=whole)
    # Errors and times are never below zero; an axis that goes there would suggest it.
    return Axis(title, low - room if low < 0 else max(0.0, low - room), high + room, whole=whole)


def tick_text(value: float) -> str:
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        digits, _, power = f"{value:.3g}".partition("e")
        if not power:  # 100000 has no power at three digits
            digits, _, power = f"{value:.2e}".partition("e")
        digits = f"{float(digits):g}"
        raised = "".join("⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".index(sign)] for sign in str(int(power)))
        return f"10{raised}" if digits == "1" else f"{digits}·10{raised}"
    return f"{value:,.10g}"


def _even_ticks(low: float, high: float) -> list[float]:
    step = 10.0 ** floor(log10((high - low) / _TICKS))
    step = next(step * times for times in (1, 2, 5, 10) if (high - low) / (step * times) <= _TICKS)
    return [float(f"{number * step:.12g}") for number in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    if log10(high / low) >= _DECADES:
        within = [10.0**power for power in powers if low <= 10.0**power * 1.000001 and 10.0**power <= high * 1.000001]
        return within[:: max(1, ceil(len(within) / _TICKS))]
    for digits in ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 4, 6, 8)):
        found = [float(f"{digit}e{power}") for power in powers for digit in digits]
        found = [value for value in found if low <= value <= high]
        if len(found) >= 3:
            return found[: 2 * _TICKS]
    return _even_ticks(low, high) if high > low else [low]
