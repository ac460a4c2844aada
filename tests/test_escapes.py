"""What a terminal would obey is escaped, and nothing else."""

import json
import sys
import unicodedata

from sketchnet.escapes import escape_controls, escape_json

EVERY = "".join(map(chr, range(sys.maxunicode + 1)))
TURNING = {"ALM", "LRM", "RLM", "LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}


def test_what_is_obeyed_is_escaped():
    for sign in EVERY:
        if unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(sign) in TURNING:
            assert escape_controls(sign) == ascii(sign)[1:-1]
    for mark in "\u061c\u200e\u200f":  # whose classes of direction are those of letters
        assert escape_controls(mark) == f"\\u{ord(mark):04x}"


def test_letters_stay():
    text = (
        "\\ Łódź 中文 می\u200cخواهم 👩\u200d🔬 \xa0\u3000é"  # with joiners and spaces that words of some scripts have
    )
    assert escape_controls(text) == text
    assert escape_controls("a\nb\tc", but="\n") == "a\nb\\tc"


def test_json_means_the_same():
    every = ".".join(EVERY)  # apart, because JSON joins halves of surrogate pairs
    text = escape_json(json.dumps({every: [every]}, ensure_ascii=False, indent=1))
    assert json.loads(text) == {every: [every]}
    assert escape_controls(text, but="\n") == text
