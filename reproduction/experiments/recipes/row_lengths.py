"""How many non-zeros the rows of a data set have."""

from __future__ import annotations

import numpy as np

from reproduction.experiments.recipes.digits import digit_rows
from reproduction.experiments.recipes.synthetic import synthetic_rows
from sketchnet.data import BagOfWords, NgramHasher, load_dataset
from sketchnet.errors import InputError


def synthetic_row_lengths(*, seed, device, n, d, density, significant) -> dict:
    """The "average" and the "maximum" over the training rows."""
    return _summary(np.diff(synthetic_rows(n, d, density, significant)[0].indptr))


def digits_row_lengths(*, seed, device, data, rows) -> dict:
    return _summary(np.count_nonzero(digit_rows(data, rows)[0][0], axis=1))


def text_row_lengths(*, seed, device, data, rows) -> dict:
    """Of the first `rows` training texts: "tng" as counts of all its words, "urls" as 1- to 6-grams of characters."""
    texts = load_dataset(data).train.X[:rows]
    if data == "tng":
        X = BagOfWords(None, stem=False).fit_transform(texts)
    elif data == "urls":
        X = NgramHasher("char", (1, 6), 2**24).transform(texts)
    else:
        raise InputError(f"data={data!r} is not possible; texts are 'tng' or 'urls'")
    return _summary(np.diff(X.indptr))


def _summary(lengths: np.ndarray) -> dict:
    return {"average": float(lengths.mean()), "maximum": int(lengths.max())}
