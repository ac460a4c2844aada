"""Rivals on text as it is: URLs as hashed n-grams, newsgroups as words and pairs of words. Error, time and memory."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from reproduction.rivals.measurement import measure, write_rows
from sketchnet import random
from sketchnet.checks import check_choice
from sketchnet.data import NgramHasher, load_dataset
from sketchnet.errors import InputError, StorageError

DATA = ("urls", "tng", "made")
_MADE = 300  # rows of each part, where none are asked for


def rival(*, seed: int, device: str, data: str, model: str, rows: int | None, budget: float) -> dict:
    """A rival (a key of `reproduction.rivals.RIVALS`) on `rows` random training rows, or on all of them.

    `data` is "urls", "tng", or "made": short strings that are made here, for tests. Settings are searched for `budget`
    seconds, on a tenth of the training rows.
    """
    check_choice("data", data, DATA)
    return measure(model, _prepared(data, rows, seed), seed=seed, device=device, budget=budget)


@cache
def _prepared(data: str, rows: int | None, seed: int) -> Path:
    """A folder with training and test rows, kept while this process measures other rivals on them."""
    train, test = {"urls": _urls, "tng": _documents, "made": _made}[data](rows, seed)
    folder = Path(tempfile.mkdtemp(prefix=f"sketchnet-{data}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_rows(folder, train, test)
    return folder


def _texts(name: str, rows: int | None, seed: int):
    """(training strings, labels), (test strings, labels) of a data set's own split."""
    try:
        data = load_dataset(name)
    except StorageError as error:
        raise InputError(str(error)) from None
    texts, labels = data.train.X + data.valid.X, np.concatenate([data.train.y, data.valid.y])
    chosen = _some_rows(len(texts), rows, seed)
    return ([texts[row] for row in chosen], labels[chosen]), (data.test.X, data.test.y)


def _some_rows(n: int, rows: int | None, seed: int) -> np.ndarray:
    if rows is None or rows >= n:
        return np.arange(n)
    return np.sort(random.shuffled(n, seed, random.STREAM_SPLIT)[:rows])


def _urls(rows: int | None, seed: int):
    """Runs of one to six characters, hashed to 2**24 columns, rows of norm 1."""
    parts = _texts("urls", rows, seed)
    hasher = NgramHasher("char", (1, 6), 2**24, norm="l2")
    return tuple((hasher.transform(texts), labels) for texts, labels in parts)


def _documents(rows: int | None, seed: int):
    """Words and pairs of words, TF-IDF with frequencies of the training rows, rows of norm 1."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    (texts, labels), (test_texts, test_labels) = _texts("tng", rows, seed)
    vectors = TfidfVectorizer(ngram_range=(1, 2), dtype=np.float32)
    return (vectors.fit_transform(texts), labels), (vectors.transform(test_texts), test_labels)


def _made(rows: int | None, seed: int):
    """Addresses of ten words, in which one class prefers some: nobody should be wrong in more than a tenth."""
    words = np.array([f"{first}{last}" for first in "bdfgklmnprst" for last in ("ala", "eto", "iku", "ora", "ubi")])
    rng = np.random.default_rng(seed)
    hasher = NgramHasher("char", (1, 4), 2**20, norm="l2")

    def part(n: int):
        labels = np.arange(n) % 2
        odds = np.where(np.arange(len(words)) < 12, 4.0, 1.0)
        texts = []
        for label in labels:
            likely = odds if label else odds[::-1]
            texts.append("http://" + "/".join(rng.choice(words, 10, p=likely / likely.sum())))
        return hasher.transform(texts), labels

    return part(rows or _MADE), part(_MADE)
