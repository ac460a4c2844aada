"""MNIST, from small files like the published ones."""

import gzip

import numpy as np
import pytest

from sketchnet.errors import InputError
from tests.data.image_files import RNG, idx, load, split_sizes


def write_mnist(folder, n=60, n_test=10, compress=False):
    parts = {}
    for prefix, size in (("train", n), ("t10k", n_test)):
        X, y = RNG.integers(0, 256, (size, 4, 5)), RNG.integers(0, 10, size)
        parts[prefix] = X, y
        for name, array in ((f"{prefix}-images-idx3-ubyte", X), (f"{prefix}-labels-idx1-ubyte", y)):
            if compress:
                (folder / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
            else:
                (folder / name).write_bytes(idx(array))
    return parts


@pytest.mark.parametrize("compress", [False, True])
def test_mnist(tmp_path, compress):
    parts = write_mnist(tmp_path, compress=compress)
    data = load("mnist", tmp_path)
    assert split_sizes(data) == (50, 10, 10)
    assert data.train.X.dtype == np.float32
    X, y = parts["t10k"]
    assert np.array_equal(data.test.X, X.reshape(10, 20).astype(np.float32) / np.float32(255))
    assert np.array_equal(data.test.y, y)
    assert data.test.X.max() <= 1
    # the training images come back, each once, with their labels
    X, y = parts["train"]
    pairs = {(row.tobytes(), label) for row, label in zip((X.reshape(60, 20) / np.float32(255)).astype(np.float32), y)}
    given = [(row.tobytes(), label) for part in (data.train, data.valid) for row, label in zip(part.X, part.y)]
    assert len(given) == 60
    assert set(given) == pairs


def test_random_state_draws_the_validation_part(tmp_path):
    write_mnist(tmp_path)
    first, again, other = (load("mnist", tmp_path, random_state=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.valid.X, again.valid.X)
    assert not np.array_equal(first.valid.X, other.valid.X)
    assert np.array_equal(first.test.X, other.test.X)


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("train-images-idx3-ubyte", lambda b: b[:-1], "bytes; its header says"),
        ("train-images-idx3-ubyte", lambda b: b + b"\0", "bytes; its header says"),
        ("train-images-idx3-ubyte", lambda b: b"\0\0\x08\x01" + b[4:], "begins with 00 00 08 01"),
        ("train-images-idx3-ubyte", lambda b: b[:4] + b"\xff" * 12 + b[16:], "its header says"),
        ("train-images-idx3-ubyte", lambda b: b"", "begins with"),
        ("train-images-idx3-ubyte", lambda b: b"<html>", "begins with"),
        ("t10k-labels-idx1-ubyte", lambda b: b[:-1] + b"\x0a", "label 10 at position 9"),
        ("t10k-labels-idx1-ubyte", lambda b: idx(np.zeros(11)), "11 labels"),
    ],
)
def test_damaged_mnist(tmp_path, name, damage, message):
    write_mnist(tmp_path)
    path = tmp_path / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=message) as caught:
        load("mnist", tmp_path)
    assert str(path) in str(caught.value)


def test_truncated_gzip(tmp_path):
    write_mnist(tmp_path, compress=True)
    path = tmp_path / "train-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(InputError, match=f"{path.name} is damaged or incomplete"):
        load("mnist", tmp_path)
