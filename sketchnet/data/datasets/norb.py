"""Jittered-cluttered NORB: stereo pairs of toys, from LeCun's binary matrix files."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np

from sketchnet.data.datasets.dataset import Dataset, DatasetInfo, Split, share, split_rows
from sketchnet.data.datasets.fetch import Remote
from sketchnet.data.datasets.files import open_file
from sketchnet.data.datasets.recipe import Recipe
from sketchnet.errors import InputError

_TYPES = {0x1E3D4C55: np.dtype("u1"), 0x1E3D4C54: np.dtype("<i4")}  # by magic number
_SIDE, _SMALL = 108, 32
_TRAIN = tuple(f"norb-5x46789x9x18x6x2x108x108-training-{part:02}" for part in range(1, 11))
_TEST = tuple(f"norb-5x01235x9x18x6x2x108x108-testing-{part:02}" for part in range(1, 3))
_FILES = tuple(f"{part}-{kind}.mat" for part in (*_TRAIN, *_TEST) for kind in ("dat", "cat"))
_BASE = "https://cs.nyu.edu/~ylclab/data/norb-v1.0/"
_PIECE = 1 << 24  # bytes read at a time
_CASES = 512  # read and shrunk at a time


def _header(file: BinaryIO, path: Path, dtype: str, shape: tuple[int, ...]) -> int:
    """Check the header, all in little-endian 32-bit integers, and return the first dimension.

    Magic number, number of dimensions, then the dimensions: at least three, those beyond the number are 1.
    `shape` is what the dimensions after the first must be.
    """
    magic, n_dimensions = np.frombuffer(file.read(8).ljust(8, b"\0"), "<u4").tolist()
    if _TYPES.get(magic) != np.dtype(dtype):
        known = ", ".join(f"0x{number:08x} ({kind})" for number, kind in _TYPES.items())
        raise InputError(f"{path} begins with magic number 0x{magic:08x}; known are {known}, here {dtype} is needed")
    stored = max(3, min(n_dimensions, 8))
    dimensions = np.frombuffer(file.read(4 * stored).ljust(4 * stored, b"\0"), "<i4")[:n_dimensions].tolist()
    if n_dimensions != 1 + len(shape) or tuple(dimensions[1:]) != shape or dimensions[0] < 0:
        raise InputError(f"{path} has dimensions {dimensions}; they must be {['n', *shape]}")
    return dimensions[0]


def _read(file: BinaryIO, path: Path, n: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    size = n * int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
    data = bytearray()
    while piece := file.read(min(size - len(data), _PIECE)):  # a header may claim anything
        data += piece
    if len(data) != size:
        raise InputError(f"{path} ends early: {size - len(data):,} bytes are missing")
    return np.frombuffer(data, dtype).reshape(n, *shape)


def shrink_matrix(size: int, small: int) -> np.ndarray:
    """The `small` x `size` matrix that averages over equal stretches; a pixel cut by a border counts by its parts."""
    borders = np.arange(small + 1) * (size / small)
    low, high = borders[:-1, None], borders[1:, None]
    pixel = np.arange(size)
    overlap = np.minimum(high, pixel + 1) - np.maximum(low, pixel)
    return (np.maximum(overlap, 0) * (small / size)).astype(np.float32)


def _part(dat: Path, cat: Path) -> Split:
    """One pair of files: images of 32 x 64, the two cameras side by side, each less its own mean."""
    with open_file(cat) as file:
        n = _header(file, cat, "<i4", ())
        y = _read(file, cat, n, "<i4", ()).astype(np.int64)
    if n and not 0 <= y.min() <= y.max() <= 5:
        raise InputError(f"{cat} has categories {y.min()} to {y.max()}; allowed are 0 to 5")
    shrink = shrink_matrix(_SIDE, _SMALL)
    X = np.empty((n, 2 * _SMALL * _SMALL), np.float32)
    with open_file(dat) as file:
        if (given := _header(file, dat, "u1", (2, _SIDE, _SIDE))) != n:
            raise InputError(f"{dat} has {given:,} cases, but {cat} has {n:,}")
        for start in range(0, n, _CASES):
            cases = min(_CASES, n - start)
            pairs = _read(file, dat, cases, "u1", (2, _SIDE, _SIDE)).astype(np.float32)
            small = shrink @ pairs @ shrink.T
            X[start : start + cases] = small.transpose(0, 2, 1, 3).reshape(cases, -1)
        if file.read(1):
            raise InputError(f"{dat} goes on after the {n:,} cases that its header announces")
    X -= X.mean(axis=1, dtype=np.float64, keepdims=True).astype(np.float32)
    return Split(X, y)


def _parts(names: tuple[str, ...], files: dict[str, Path]) -> Split:
    parts = [_part(files[f"{name}-dat.mat"], files[f"{name}-cat.mat"]) for name in names]
    return Split(np.concatenate([part.X for part in parts]), np.concatenate([part.y for part in parts]))


def load_norb(files: dict[str, Path], random_state: int) -> Dataset:
    """Stereo pairs shrunk by averaging to 32 x 64, less each image's mean, over one standard deviation for all.

    The deviation is that of the training pixels. 58,320 of the 291,600 training cases, at random, are the validation
    part. Category 5 is "no object".
    """
    train, test = _parts(_TRAIN, files), _parts(_TEST, files)
    valid_rows, rows = split_rows(len(train), [share(len(train), 58_320, 291_600)], random_state)
    train, valid = train.take(rows), train.take(valid_rows)
    # The means of the images are zero, so the mean of all pixels is.
    mean_square = sum(float(np.vdot(row, row)) for row in train.X) / max(1, train.X.size)
    deviation = np.float32(np.sqrt(mean_square) or 1)
    for part in (train, valid, test):
        part.X[:] /= deviation
    return Dataset("norb", train, valid, test, 6, class_names=("animal", "human", "plane", "truck", "car", "blank"))


RECIPES = (
    Recipe(
        DatasetInfo("norb", "stereo pairs of toys, 32 x 64", 291_600, 58_320, 2_048, 6, "dense"),
        (_FILES,),
        load_norb,
        tuple(Remote(f"{name}.gz", (f"{_BASE}{name}.gz",)) for name in _FILES),
    ),
)
