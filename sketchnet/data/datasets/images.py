"""Colour images of 32 x 32: CIFAR-10 and CIFAR-100 (binary versions) and SVHN (cropped digits, MATLAB files).

A row has the 1,024 red values first, line by line, then the green, then the blue.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sketchnet.checks import check_flag
from sketchnet.data.datasets.dataset import Dataset, DatasetInfo, Split, share, shuffled, split_rows
from sketchnet.data.datasets.fetch import Remote
from sketchnet.data.datasets.files import members, read_bytes
from sketchnet.data.datasets.mat5 import read_mat
from sketchnet.data.datasets.recipe import Recipe
from sketchnet.errors import InputError

_PIXELS = 3 * 32 * 32
_ROWS = 1024  # converted at a time, so that the floats of all images exist once only

_CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_CIFAR10_TRAIN = tuple(f"data_batch_{batch}.bin" for batch in range(1, 6))
_KRIZ = "https://www.cs.toronto.edu/~kriz/"
_HOUSENUMBERS = "http://ufldl.stanford.edu/housenumbers/"
# As torchvision has them.
_SVHN_MD5 = {
    "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
    "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
    "extra_32x32.mat": "a93ce644f1a588dc4d68dda5feec44a7",
}


def load_cifar10(files: dict[str, Path], random_state: int, raw: bool = False) -> Dataset:
    """5,000 of the 50,000 training images, at random, are the validation part.

    As Huang et al. (2016) do, the mean training image is subtracted and all is divided by one number, the standard
    deviation of the training pixels. Flips and shifts of images belong to training, not here. `raw`: all images as
    bytes, in the order of the files, and none for validation.
    """
    blobs = _blobs(files, "cifar-10-binary.tar.gz", (*_CIFAR10_TRAIN, "test_batch.bin"))
    parts = [
        [_cifar_records(*blobs[name], n_labels=1, n_classes=10) for name in names]
        for names in (_CIFAR10_TRAIN, ("test_batch.bin",))
    ]
    return _cifar("cifar10", parts, _CIFAR10, 10, random_state, check_flag("raw", raw))


def load_cifar100(files: dict[str, Path], random_state: int) -> Dataset:
    """As CIFAR-10. The labels are the 100 fine ones."""
    names = ("train.bin", "test.bin")
    blobs = _blobs(files, "cifar-100-binary.tar.gz", names)
    parts = [[_cifar_records(*blobs[name], n_labels=2, n_classes=100)] for name in names]
    _, class_names = blobs.get("fine_label_names.txt", (None, b""))
    return _cifar("cifar100", parts, tuple(class_names.decode("latin-1").split()) or None, 100, random_state)


def _blobs(files: dict[str, Path], archive: str, needed: tuple[str, ...]) -> dict[str, tuple[Path, bytes]]:
    """The files' bytes by name, each with the file to blame, out of the archive or from a folder."""
    if archive not in files:
        names = next(iter(files.values())).parent / "fine_label_names.txt"
        extra = {names.name: names} if names.exists() else {}
        return {name: (path, read_bytes(path)) for name, path in {**files, **extra}.items()}
    wanted = (*needed, "fine_label_names.txt")
    found = members(files[archive], lambda parts: parts[-1] in wanted)
    blobs = {parts[-1]: (files[archive] / parts[-1], data) for parts, data in found}
    missing = [name for name in needed if name not in blobs]
    if missing:
        raise InputError(f"{files[archive]} holds no {', '.join(missing)}; it must be the binary version")
    return blobs


def _cifar_records(path: Path, data: bytes, n_labels: int, n_classes: int) -> Split:
    """Records of one or two label bytes (the last is the fine one) and 3,072 pixels."""
    length = n_labels + _PIXELS
    if not data or len(data) % length:
        raise InputError(f"{path} has {len(data):,} bytes; it must be a multiple of {length:,}, the size of a record")
    records = np.frombuffer(data, np.uint8).reshape(-1, length)
    y = records[:, n_labels - 1].astype(np.int64)
    if y.max() >= n_classes:
        raise InputError(f"{path} has label {y.max()} in record {y.argmax()}; allowed are 0 to {n_classes - 1}")
    return Split(records[:, n_labels:], y)


def _cifar(
    name: str, parts: list[list[Split]], class_names, n_classes: int, random_state: int, raw: bool = False
) -> Dataset:
    train, test = (
        Split(np.concatenate([s.X for s in splits]), np.concatenate([s.y for s in splits])) for splits in parts
    )
    if raw:
        return Dataset(name, train, Split(train.X[:0], train.y[:0]), test, n_classes, class_names=class_names)
    valid_rows, rows = split_rows(len(train), [share(len(train), 5_000, 50_000)], random_state)
    return Dataset(name, *_standardised(train, rows, valid_rows, test), n_classes, class_names=class_names)


def load_svhn(files: dict[str, Path], random_state: int) -> Dataset:
    """Training and extra digits together. Digit 0, which the files call 10, is class 0.

    As Huang et al. (2016) do, 400 images of each class from the training and 200 from the extra file, at random, are
    the validation part, 6,000 in all; the mean training image is subtracted and all is divided by the standard
    deviation of the training pixels. In full this takes 11 GB of memory.
    """
    train, extra, test = (_svhn_file(files[name]) for name in ("train_32x32.mat", "extra_32x32.mat", "test_32x32.mat"))
    # 4,000 of 73,257 and 2,000 of 531,131: so many of each class, in proportion where the files are smaller.
    sizes = (share(len(train), 4_000, 73_257) // 10, share(len(extra), 2_000, 531_131) // 10)
    valid_rows = np.concatenate(
        [_of_each_class(train.y, sizes[0], random_state), len(train) + _of_each_class(extra.y, sizes[1], random_state)]
    )
    both = Split(np.concatenate([train.X, extra.X]), np.concatenate([train.y, extra.y]))
    del train, extra
    rows = np.delete(np.arange(len(both)), valid_rows)
    return Dataset("svhn", *_standardised(both, rows, valid_rows, test), 10, class_names=tuple("0123456789"))


def _svhn_file(path: Path) -> Split:
    """X of 32 x 32 x 3 x n bytes and y of n labels, 1 to 10."""
    data = read_mat(path)
    missing = [name for name in ("X", "y") if name not in data]
    if missing:
        raise InputError(f"{path} has no array {missing[0]}; the published file has X and y")
    X, y = data["X"], data["y"].ravel()
    if X.dtype != np.uint8 or X.shape != (32, 32, 3, len(y)):
        given = f"X of {X.shape} {X.dtype} and {len(y)} labels"
        raise InputError(f"{path} has {given}; it must be (32, 32, 3, n) uint8 and n labels")
    if len(y) and not 1 <= y.min() <= y.max() <= 10:
        raise InputError(f"{path} has labels {y.min()} to {y.max()}; allowed are 1 to 10")
    return Split(X.transpose(3, 2, 0, 1).reshape(len(y), _PIXELS), y.astype(np.int64) % 10)


def _of_each_class(y: np.ndarray, size: int, random_state: int) -> np.ndarray:
    """Positions of `size` random examples of each class, in rising order."""
    order = shuffled(len(y), random_state)
    return np.sort(np.concatenate([order[y[order] == label][:size] for label in range(10)]))


def _standardised(train: Split, rows: np.ndarray, valid_rows: np.ndarray, test: Split) -> tuple[Split, Split, Split]:
    """Training, validation and test part, less the mean training image, over the deviation of the training pixels."""
    total, squares = np.zeros(_PIXELS), 0.0
    for start in range(0, len(rows), _ROWS):
        piece = train.X[rows[start : start + _ROWS]].astype(np.float64)
        total += piece.sum(axis=0)
        squares += float(np.vdot(piece, piece))
    n = max(1, len(rows))
    deviation = np.sqrt(max(0.0, squares / (n * _PIXELS) - (total.sum() / (n * _PIXELS)) ** 2)) or 1.0
    mean, deviation = (total / n).astype(np.float32), np.float32(deviation)

    def part(split: Split, chosen: np.ndarray) -> Split:
        X = np.empty((len(chosen), _PIXELS), np.float32)
        for start in range(0, len(chosen), _ROWS):
            X[start : start + _ROWS] = (split.X[chosen[start : start + _ROWS]] - mean) / deviation
        return Split(X, split.y[chosen])

    return part(train, rows), part(train, valid_rows), part(test, np.arange(len(test)))


def _published(archive: str, md5: str) -> Remote:
    """Return an archive of CIFAR; the checksums stand on the publisher's page."""
    return Remote(archive, (f"{_KRIZ}{archive}",), f"md5:{md5}")


RECIPES = (
    Recipe(
        DatasetInfo("cifar10", "colour images, 32 x 32", 50_000, 10_000, _PIXELS, 10, "dense"),
        ((*_CIFAR10_TRAIN, "test_batch.bin"), ("cifar-10-binary.tar.gz",)),
        load_cifar10,
        (_published("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"),),
        subfolders=("cifar-10-batches-bin",),
        options=("raw",),
    ),
    Recipe(
        DatasetInfo("cifar100", "colour images, 32 x 32", 50_000, 10_000, _PIXELS, 100, "dense"),
        (("train.bin", "test.bin"), ("cifar-100-binary.tar.gz",)),
        load_cifar100,
        (_published("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"),),
        subfolders=("cifar-100-binary",),
    ),
    Recipe(
        DatasetInfo("svhn", "house numbers, colour, 32 x 32", 604_388, 26_032, _PIXELS, 10, "dense"),
        (tuple(_SVHN_MD5),),
        load_svhn,
        tuple(Remote(name, (f"{_HOUSENUMBERS}{name}",), f"md5:{md5}") for name, md5 in _SVHN_MD5.items()),
    ),
)
