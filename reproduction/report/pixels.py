"""Which pixels of an image were chosen, as a small drawing."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def draw_pixels(chosen: Iterable[int], side: int, title: str) -> str:
    """A drawing above its title: a square of side × side pixels, numbered row by row; the chosen ones are filled."""
    chosen = sorted(set(chosen))
    squares = "".join(f"M{number % side} {number // side}h1v1h-1z" for number in chosen)
    description = escape(f"{title}: {len(chosen)} of {side * side} pixels")
    box = f'viewBox="-0.5 -0.5 {side + 1} {side + 1}" role="img" aria-label="{description}"'
    frame = f'<rect class="frame" width="{side}" height="{side}"/>'
    drawn = f'<svg class="pixels" {box}>{frame}<path class="chosen" d="{squares}"/></svg>'
    return f'<div class="picture">{drawn}<span>{escape(title)}</span></div>'


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as people write them: 3, 5-7."""
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
