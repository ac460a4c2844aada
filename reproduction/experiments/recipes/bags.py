"""Bags of words of the document sets, made once and kept, so that machines without a stemmer find them.

`python -c "from reproduction.experiments.recipes.bags import prepare_bags; prepare_bags()"` makes all of them, in the
folder `bags` under $SKETCHNET_DATA, or of the user's cache where that is not set.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from sketchnet.data import BagOfWords, load_dataset
from sketchnet.storage import replacing, writing

DOCUMENTS = ("tng", "reuters")
_WORDS = 10_000  # the largest dictionary; columns are sorted by frequency, so its first D are the dictionary of D words
_TOPICS, _TOY = 6, 800  # of the generated documents


class Bag(NamedTuple):
    """Counts of words; of several labels a document, a matrix of zeros and ones."""

    train: sparse.csr_array
    test: sparse.csr_array
    labels: np.ndarray | sparse.csr_array  # of the test documents


def bag(name: str, words: int, tfidf: bool = False) -> Bag:
    """Of "tng", "reuters", or "topics", which is generated; with the `words` most frequent words."""
    whole = _topics() if name == "topics" else _read(name)
    train, test = (part[:, :words] for part in whole[:2])
    if tfidf:
        rarity = np.log(train.shape[0] / np.maximum(1, np.bincount(train.indices, minlength=train.shape[1])))
        train, test = (_weigh(part, rarity) for part in (train, test))
    return Bag(train, test, whole.labels)


def _weigh(counts: sparse.csr_array, rarity: np.ndarray) -> sparse.csr_array:
    """As `BagOfWords(tfidf=True)` does."""
    values = (1 + np.log1p(counts.data)) * rarity[counts.indices]
    rows = sparse.csr_array((values.astype(np.float32), counts.indices, counts.indptr), shape=counts.shape)
    rows.eliminate_zeros()
    return rows


def prepare_bags() -> None:
    for name in DOCUMENTS:
        _read(name)


def _read(name: str) -> Bag:
    root = os.environ.get("SKETCHNET_DATA") or Path.home() / ".cache" / "sketchnet"
    folder = Path(root) / "bags"
    files = [folder / f"{name}_{part}.npz" for part in Bag._fields]
    if not all(path.exists() for path in files):
        made = _make(name)
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        for path, rows in zip(files, made):
            with replacing(path) as new, open(new, "wb") as file:
                sparse.save_npz(file, sparse.csr_array(rows if sparse.issparse(rows) else rows[:, None]))
    train, test, labels = map(sparse.load_npz, files)
    return Bag(train, test, labels if labels.shape[1] > 1 else labels.toarray()[:, 0])


def _make(name: str) -> Bag:
    data = load_dataset(name)
    documents = [*data.train.X, *data.valid.X]
    words = BagOfWords(_WORDS).fit(documents)
    y = data.test.y
    labels = sparse.csr_array(y) if sparse.issparse(y) else np.asarray(y)
    return Bag(words.transform(documents), words.transform(list(data.test.X)), labels)


def _topics() -> Bag:
    """Half of a document's words are its topic's, the others follow Zipf's law."""
    rng, d = np.random.default_rng(0), 400
    common, own = 1 / np.arange(1, d + 1), rng.dirichlet(np.full(d, 0.05), _TOPICS)
    law = 0.5 * common / common.sum() + 0.5 * own
    chosen = rng.integers(0, _TOPICS, _TOY)
    counts = np.stack([rng.multinomial(rng.poisson(40) + 1, law[topic]) for topic in chosen]).astype(np.float32)
    rows, half = sparse.csr_array(counts[:, np.argsort(-counts.sum(axis=0), kind="stable")]), 3 * _TOY // 4
    return Bag(rows[:half], rows[half:], chosen[half:])
