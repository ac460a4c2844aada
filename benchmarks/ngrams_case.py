"""Raw strings to hashed n-grams: the `urls` data beside scikit-learn, whose counts must be the same."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import numpy as np
from harness import race, row
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from sketchnet.data.ngrams import NgramHasher


def ngram_cases(quick: bool):
    """Rows of the table; none, saying so, where the data are not present."""
    path = Path(os.environ.get("SKETCHNET_DATA", "")) / "urls" / "urls.tsv"
    if not path.is_file():
        print(f"no n-gram case: there is no {path}; set SKETCHNET_DATA", file=sys.stderr)
        return
    with open(path, encoding="utf-8") as file:
        next(file)
        # scikit-learn takes whitespace characters in a row as one space, and we do not.
        urls = [re.sub(r"\s\s+", " ", line.rstrip("\n").split("\t")[3]) for line in file]
    urls = urls[:: 8 if quick else 1]
    ours = NgramHasher("char", (1, 6), 2**24, lowercase=True)
    peer = HashingVectorizer(
        analyzer="char", ngram_range=(1, 6), n_features=2**24, norm=None, alternate_sign=False, dtype=np.float32
    )
    check_counts(ours, urls[:: len(urls) // 300])
    kept = {}  # the timed results are the ones compared
    time, peer_time = race(
        lambda: kept.update(X=ours.transform(urls)), lambda: kept.update(Y=peer.transform(urls)), 1 if quick else 3
    )
    if not np.array_equal(kept["X"].sum(axis=1), np.asarray(kept["Y"].sum(axis=1)).ravel()):
        raise AssertionError("rows do not have as many n-grams as scikit-learn's")
    yield row(f"{len(urls):,} URLs, characters 1-6 to 2^24", time, peer_time, "sklearn HashingVectorizer", "s", 20)


def check_counts(hasher: NgramHasher, strings: list[str]) -> None:
    """Every count of CountVectorizer stands in the column of its n-gram, and nothing else does."""
    peer = CountVectorizer(analyzer="char", ngram_range=hasher.ngram_range, lowercase=hasher.lowercase)
    wide = NgramHasher(**(hasher.get_params() | {"n_columns": None}))  # no two n-grams share a column
    Y = peer.fit_transform(strings)
    columns = np.array([wide.column_of(ngram) for ngram in peer.get_feature_names_out()])
    X = wide.transform(strings)
    for r in range(len(strings)):
        expected = Y[[r]]
        order = np.argsort(columns[expected.indices])
        if not (
            np.array_equal(X[[r]].indices, columns[expected.indices][order])
            and np.array_equal(X[[r]].data, expected.data[order])
        ):
            raise AssertionError(f"counts of {strings[r]!r} are not those of scikit-learn")
