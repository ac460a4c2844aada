"""Networks behind random projections on handwritten digits."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from reproduction.experiments.recipes.trained import Parts, train_and_test
from sketchnet.data import load_dataset, sparse_rows
from sketchnet.errors import InputError
from sketchnet.training import Examples, Task

_TASK = Task("multiclass", tuple(range(10)))


@lru_cache(maxsize=1)
def digit_rows(data: str, rows: int | None) -> tuple:
    """((X, y), (X, y)): the first `rows` training rows (None: all), and the test rows, with pixels from 0 to 1.

    "mnist", or "digits": the 1797 images of 8 x 8 pixels that come with scikit-learn, of which the last 797 are tested.
    """
    if data == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        X, cut = (X / 16).astype(np.float32), 1000
        return (X[:cut][:rows], y[:cut][:rows]), (X[cut:], y[cut:])
    if data != "mnist":
        raise InputError(f"data={data!r} is not possible; digits are 'mnist' or 'digits'")
    found = load_dataset("mnist")
    X, y = np.concatenate([found.train.X, found.valid.X]), np.concatenate([found.train.y, found.valid.y])
    return (X[:rows], y[:rows]), (found.test.X, found.test.y)


def digit_parts(train: tuple, test: tuple) -> Parts:
    """All training rows are learnt, for as many epochs as settings say."""
    learnt, tested = (Examples(sparse_rows(X), _TASK.encode(y)) for X, y in (train, test))
    return Parts(_TASK, learnt, None, tested)


def digits_network(*, seed, device, data, rows, **settings) -> dict:
    """The error of a network; `settings` are those of `NetworkConfig` and `TrainingConfig`."""
    return train_and_test(digit_parts(*digit_rows(data, rows)), settings, seed, device)
