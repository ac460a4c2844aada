"""MNIST: handwritten digits, from LeCun's idx files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sketchnet.data.datasets.dataset import Dataset, DatasetInfo, Split, hold_out
from sketchnet.data.datasets.fetch import Remote
from sketchnet.data.datasets.files import read_bytes
from sketchnet.data.datasets.recipe import Recipe
from sketchnet.errors import InputError

_TRAIN = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
_TEST = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
# The checksums that torchvision and many others have pinned for years.
_MD5 = {
    "train-images-idx3-ubyte": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte": "ec29112dd5afa0611ce80d1b7f02629c",
}
# LeCun's page often refuses downloads; the second is a copy that PyTorch keeps.
_BASES = ("http://yann.lecun.com/exdb/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/")


def read_idx(path: Path, n_dimensions: int) -> np.ndarray:
    """An idx file of bytes: two zeros, the type (8 is unsigned byte), the number of dimensions, each as four bytes."""
    data = read_bytes(path)
    magic = bytes([0, 0, 8, n_dimensions])
    if data[:4] != magic:
        raise InputError(
            f"{path} begins with {data[:4].hex(' ')}; an idx file of this kind begins with {magic.hex(' ')}"
        )
    start = 4 + 4 * n_dimensions
    shape = [int.from_bytes(data[at : at + 4], "big") for at in range(4, start, 4)]
    size = int(np.prod(shape, dtype=object))  # in Python's integers: a damaged header may claim anything
    if len(data) != start + size:
        raise InputError(f"{path} has {len(data):,} bytes; its header says {start + size:,} (shape {shape})")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def _part(images: Path, labels: Path) -> Split:
    X, y = read_idx(images, 3), read_idx(labels, 1)
    if len(X) != len(y):
        raise InputError(f"{images} has {len(X):,} images, but {labels} has {len(y):,} labels")
    if len(y) and y.max() > 9:
        raise InputError(f"{labels} has label {y.max()} at position {y.argmax()}; allowed are 0 to 9")
    return Split(X.reshape(len(X), -1).astype(np.float32) / np.float32(255), y.astype(np.int64))


def load_mnist(files: dict[str, Path], random_state: int) -> Dataset:
    """Pixels scaled to [0, 1]; 10,000 of the 60,000 training images, at random, are the validation part.

    The dissertation also shuffles the order of the pixels. Nothing here looks at that order, so it stays as published.
    """
    train, test = (_part(*(files[name] for name in names)) for names in (_TRAIN, _TEST))
    if train.X.shape[1] != test.X.shape[1]:
        given = f"{train.X.shape[1]} pixels, but {files[_TEST[0]]} has {test.X.shape[1]}"
        raise InputError(f"{files[_TRAIN[0]]} has images of {given}")
    train, valid = hold_out(train, 10_000, 60_000, random_state)
    return Dataset("mnist", train, valid, test, 10, class_names=tuple("0123456789"))


RECIPES = (
    Recipe(
        DatasetInfo("mnist", "handwritten digits, 28 x 28", 60_000, 10_000, 784, 10, 0.191),
        ((*_TRAIN, *_TEST),),
        load_mnist,
        tuple(Remote(f"{n}.gz", tuple(f"{b}{n}.gz" for b in _BASES), f"md5:{md5}") for n, md5 in _MD5.items()),
    ),
)
