"""What the two tables of areas by the size of the dictionary have in common: their entries, and what the text says."""

from __future__ import annotations

from collections.abc import Mapping

from reproduction.experiments.document_sets import PROJECTIONS, REFERENCE, REFERENCE_WORDS, SIZES, codes, reference
from reproduction.experiments.experiment import Claim, Entry, Values


def sizes_of(data: str, scale: str, baseline: float, published: Mapping[str, tuple]) -> list[Entry]:
    """The published values stand beside cells of the same size of dictionary; those of others are only quoted."""
    printed = dict(zip(SIZES[data, "full"], zip(*published.values())))
    first = Entry(REFERENCE, REFERENCE_WORDS[scale], reference(data, scale), "area", baseline)
    found = [first]
    for number, (name, scheme) in enumerate(PROJECTIONS.items()):
        for words in sorted({*SIZES[data, scale], *(() if scale == "smoke" else printed)}):
            cell = codes(data, scale, words, scheme) if words in SIZES[data, scale] else None
            value = printed[words][number] if words in printed else None
            found.append(Entry(name, words, cell, "area", value))
    return found


def _areas(values: Values) -> dict[str, dict]:
    """By scheme and size; KeyError if one was not measured at all."""
    return {name: values.of(name) for name in PROJECTIONS}


def _worse_than_reference(values: Values) -> bool:
    (baseline,) = values.of(REFERENCE).values()
    return max(max(areas.values()) for areas in _areas(values).values()) < baseline


def _no_gain_by_size(values: Values) -> bool:
    found = list(_areas(values).values())
    if min(map(len, found)) < 2:
        raise KeyError("another size")
    return sum(max(areas, key=areas.get) == max(areas) for areas in found) < len(found) / 2


def _best_when_small(values: Values) -> bool:
    best = [max((4000, 6000, 8000, 10_000), key=lambda words: values(name, words)) for name in PROJECTIONS]
    return sum(words <= 6000 for words in best) > len(best) / 2


SIZE_CLAIMS = (
    Claim(
        "Even the best performing autoencoders with RP input layer yield results worse than these reference networks.",
        _worse_than_reference,
    ),
    Claim(
        "In general, increasing the dictionary size D does not lead to higher AUC of the trained models (here: most "
        "schemes are not best with the largest D).",
        _no_gain_by_size,
    ),
    Claim(
        "For most RP schemes, the best document retrieval performance is achieved with D=4000 or D=6000.",
        _best_when_small,
    ),
)
