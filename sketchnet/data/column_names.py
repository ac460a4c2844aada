"""Columns by the names that people know: ids as their file writes them, cells of tables, n-grams of strings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import numpy as np

from sketchnet.data.ngrams import NgramHasher
from sketchnet.data.tables import TableEncoder

_MOST_NGRAMS = 3  # of one column that are named
_WORDS = re.compile(r"\w\w+")


def column_names(columns: np.ndarray, description: dict, base: int = 0, strings: Collection[str] = ()) -> list[str]:
    """Names of columns of a data set with this description.

    One-hot columns are `column=value`. Hashed n-grams are looked for in `strings`; where several share a column, all
    are named. Others are numbers, and the first column's is `base`.
    """
    encoder = description.get("encoder")
    if encoder and encoder["n_columns"] is None:
        names = TableEncoder.from_dict(encoder).feature_names()
        return [names[column] for column in columns]
    found = {}
    if description.get("hasher") and len(strings):
        found = _ngrams_in(NgramHasher(**description["hasher"]), columns, strings)
    return [_together(found[column]) if column in found else str(column + base) for column in map(int, columns)]


def _ngrams_in(hasher: NgramHasher, columns: np.ndarray, strings: Collection[str]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    wanted = np.asarray(columns)
    for string in strings:
        for n, ngrams in _ngrams(hasher, string):
            # A string of n units has one n-gram, itself: so it is hashed by the fast way.
            one = NgramHasher(hasher.analyzer, (n, n), hasher.n_columns, seed=hasher.seed)
            hashed = one.batch(ngrams).indices
            for place in np.flatnonzero(np.isin(hashed, wanted)):
                known = found.setdefault(int(hashed[place]), [])
                ngram = ngrams[place]
                shown = repr(ngram if isinstance(ngram, str) else ngram.decode(errors="backslashreplace"))
                if shown not in known:
                    known.append(shown)
    return found


def _ngrams(hasher: NgramHasher, string: str) -> Iterator[tuple[int, list]]:
    """(n, the distinct n-grams of a string) for each n."""
    text = string.lower() if hasher.lowercase else string
    units = {"char": lambda: text, "word": lambda: _WORDS.findall(text), "byte": text.encode}[hasher.analyzer]()
    low, high = hasher.ngram_range
    for n in range(low, min(high, len(units)) + 1):
        ngrams = (units[start : start + n] for start in range(len(units) - n + 1))
        yield n, list(dict.fromkeys(map(" ".join, ngrams) if hasher.analyzer == "word" else ngrams))


def _together(ngrams: list[str]) -> str:
    return " or ".join(ngrams[:_MOST_NGRAMS]) + (" ..." if len(ngrams) > _MOST_NGRAMS else "")
