"""The development sets, from their publishers' files under $SKETCHNET_DATA/NAME.

Training rows come in random order. With `quick` there are 2,000 of them, and 1,000 others stand for test rows: the real
ones are not looked at.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse

from reproduction.rivals.fields import Fields
from reproduction.scoreboard.parts import Part
from reproduction.scoreboard.tables import cut_at_fields, number_values, one_hot, scale_numbers
from sketchnet.data import NgramHasher, Synthetic, load_dataset, read_svmlight
from sketchnet.errors import InputError

QUICK_TRAIN, QUICK_TEST = 2000, 1000
_SYNTHETIC = 125_000  # rows
_ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")


def load_set(name: str, quick: bool = False) -> tuple[Part, Part]:
    """Training and test rows."""
    if name.startswith("synthetic-"):
        return synthetic(float(name.removeprefix("synthetic-")), quick)
    return _READERS[name](quick)


def urls(quick: bool):
    """Runs of one to six characters, hashed to 2**24 columns, rows of norm 1."""
    texts, y, train, test = _texts("urls", quick)
    hasher = NgramHasher("char", (1, 6), 2**24, norm="l2")
    return tuple(Part(hasher.transform(list(texts[rows])), y[rows], None, texts[rows]) for rows in (train, test))


def documents(name: str, quick: bool):
    """Words and pairs of words, TF-IDF of the training rows, rows of norm 1."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, y, train, test = _texts(name, quick)
    vectors = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b", dtype=np.float32)
    matrices = vectors.fit_transform(texts[train]), vectors.transform(texts[test])
    return tuple(Part(sparse.csr_array(X), y[rows], None, texts[rows]) for X, rows in zip(matrices, (train, test)))


def tng(quick: bool):
    return documents("tng", quick)


def reuters(quick: bool):
    return documents("reuters", quick)


def mnist(quick: bool):
    """Pixels from 0 to 1; as fields, 784 numbers."""
    data = load_dataset("mnist", download=False)
    whole = np.concatenate([data.train.X, data.valid.X, data.test.X]).astype(np.float32)
    y = np.concatenate([data.train.y, data.valid.y, data.test.y])
    parts = []
    for rows in _rows(len(y) - len(data.test.y), len(data.test.y), quick):
        X = sparse.csr_array(whole[rows])
        parts.append(Part(X, y[rows], Fields(np.empty((len(rows), 0), np.int32), whole[rows], X)))
    return tuple(parts)


def frappe(quick: bool):
    return _one_hot_file("frappe", 0, 5382, quick)


def a9a(quick: bool):
    return _one_hot_file("a9a", 1, 123, quick)


def ml100k(quick: bool):
    """Who rates which film, with what is known of both: four stars or more. A random fifth is the test part."""
    with open(_file("ml100k", "ml100k.csv"), encoding="utf8", newline="") as file:
        table = list(csv.DictReader(file))
    y = np.array([int(row["rating"]) >= 4 for row in table]).astype(np.int64)
    tested = np.random.default_rng(0).random(len(table)) < 0.2
    order = np.concatenate([np.flatnonzero(~tested), np.flatnonzero(tested)])
    columns = {name: np.array([row[name] for row in table])[order] for name in table[0]}
    ages, short = columns["age"].astype(int), np.array([code[:2] for code in columns["zip"]])
    names = ["user", "item", "sex", "job", "genres", "year"]
    train, test = _rows(int((~tested).sum()), int(tested.sum()), quick)
    codes = number_values([*(columns[name] for name in names), short], train)
    values = [*(columns[name] for name in ("user", "item", "sex", "job", "year")), short, ages // 5]
    genres = [genres.split() for genres in columns["genres"]]
    X = one_hot(values, train, several=genres)
    return _parts(X, y[order], codes, ages[:, None].astype(np.float32), train, test)


def adult(quick: bool):
    """One-hot categories and numbers, these divided by their deviation."""
    tables = []
    for part in ("train", "test"):
        with open(_file("adult", f"adult-{part}.csv"), encoding="utf8", newline="") as file:
            tables.append(list(csv.DictReader(file)))
    table = tables[0] + tables[1]
    train, test = _rows(len(tables[0]), len(tables[1]), quick)
    names = [name for name in table[0] if name not in _ADULT_NUMBERS and name != "Y"]
    values = [np.array([row[name] for row in table]) for name in names]
    numbers = np.array([[float(row[name]) for name in _ADULT_NUMBERS] for row in table], np.float32)
    y = np.array([">50K" in row["Y"] for row in table]).astype(np.int64)
    X = sparse.hstack([one_hot(values, train), scale_numbers(numbers, train)], format="csr")
    return _parts(X, y, number_values(values, train), numbers, train, test)


def synthetic(density: float, quick: bool):
    """The dissertation's law: a million columns, of which a fifth tells the classes apart."""
    source = Synthetic(_SYNTHETIC, 1_000_000, density, 0.2, 0)
    batch = source.rows(slice(0, _SYNTHETIC))
    X = sparse.csr_array((batch.values, batch.indices, batch.indptr), shape=(_SYNTHETIC, batch.n_columns))
    train, test = _rows(source.n_train, _SYNTHETIC - source.n_train, quick)
    return tuple(Part(X[rows], batch.labels[rows]) for rows in (train, test))


_READERS: dict[str, Callable[[bool], tuple[Part, Part]]] = {
    reader.__name__: reader for reader in (urls, tng, reuters, mnist, frappe, a9a, ml100k, adult)
}


def _rows(n_train: int, n_test: int, quick: bool) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of both parts, where test rows follow the training rows."""
    order = np.random.default_rng(0).permutation(n_train)
    if quick:
        return order[:QUICK_TRAIN], order[QUICK_TRAIN : QUICK_TRAIN + QUICK_TEST]
    return order, np.arange(n_train, n_train + n_test)


def _texts(name: str, quick: bool):
    """(texts, labels, training rows, test rows)."""
    data = load_dataset(name, download=False)
    parts = data.train, data.valid, data.test
    labels = [part.y.toarray() if sparse.issparse(part.y) else part.y for part in parts]
    train, test = _rows(len(data.train.X) + len(data.valid.X), len(data.test.X), quick)
    texts = np.array([text for part in parts for text in part.X], object)
    return texts, np.concatenate(labels), train, test


def _one_hot_file(name: str, base: int, n_columns: int, quick: bool):
    """svmlight files of ones, whose fields are found: ranges of ids of which no training row has two."""
    batches = [read_svmlight(_file(name, f"{name}-{part}.svm"), n_columns=n_columns, base=base) for part in _PARTS]
    matrices = [
        sparse.csr_array((batch.values, batch.indices, batch.indptr), shape=(batch.n_rows, n_columns))
        for batch in batches
    ]
    X = sparse.vstack(matrices, format="csr")
    y = (np.concatenate([np.asarray(batch.labels) for batch in batches]) > 0).astype(np.int64)
    train, test = _rows(*(matrix.shape[0] for matrix in matrices), quick)
    codes = number_values(list(cut_at_fields(X, train).T), train)
    return _parts(X, y, codes, np.empty((len(y), 0), np.float32), train, test)


def _parts(X, y, codes, numbers, train, test) -> tuple[Part, Part]:
    X = sparse.csr_array(X, dtype=np.float32)
    return tuple(Part(X[rows], y[rows], Fields(codes[rows], numbers[rows], X[rows])) for rows in (train, test))


_PARTS = ("train", "test")


def _file(name: str, file: str) -> Path:
    folder = os.environ.get("SKETCHNET_DATA")
    path = Path(folder or ".") / name / file
    if not folder or not path.exists():
        raise InputError(f"set {name} needs the file {name}/{file} under $SKETCHNET_DATA")
    return path
