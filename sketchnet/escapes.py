"""Text from data as it can be shown. Some characters a terminal obeys, others turn what stands beside them around."""

from __future__ import annotations

import re

# C0, DEL and C1; marks and isolates of writing directions; ends of lines and paragraphs; halves of surrogate pairs, by
# which Python stands for bytes of file names that are no UTF-8.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]")


def escape_controls(text: str, but: str = "") -> str:
    r"""Return the text with such characters, `but` a few, as Python writes them: \n, \x1b, \u202e."""
    return _OBEYED.sub(lambda sign: sign[0] if sign[0] in but else ascii(sign[0])[1:-1], text)


def escape_json(text: str) -> str:
    r"""Return JSON that means the same, with such characters inside its strings as \u001b."""
    return _OBEYED.sub(lambda sign: sign[0] if sign[0] == "\n" else f"\\u{ord(sign[0]):04x}", text)
