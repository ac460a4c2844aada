"""NORB, from small files like the published ones."""

import gzip
import struct

import numpy as np
import pytest

from sketchnet.data.datasets.norb import shrink_matrix
from sketchnet.errors import InputError
from tests.data.image_files import RNG, load, split_sizes


def matrix(array):
    """LeCun's binary matrix: magic, number of dimensions, at least three dimensions, data; all little-endian."""
    magic = {"u1": 0x1E3D4C55, "i4": 0x1E3D4C54}[array.dtype.str[1:]]
    dimensions = [*array.shape, 1, 1][: max(3, array.ndim)]
    return struct.pack(f"<II{len(dimensions)}i", magic, array.ndim, *dimensions) + array.tobytes()


def write_norb(folder, n=5, compress=False):
    written = {}
    names = [f"norb-5x46789x9x18x6x2x108x108-training-{part:02}" for part in range(1, 11)]
    names += [f"norb-5x01235x9x18x6x2x108x108-testing-{part:02}" for part in range(1, 3)]
    for name in names:
        X, y = RNG.integers(0, 256, (n, 2, 108, 108), np.uint8), RNG.integers(0, 6, n, np.int32)
        written[name] = X, y
        # the publisher has info files too; they are not needed
        info = np.zeros((n, 10), np.int32)
        for kind, array in (("dat", X), ("cat", y), ("info", info)):
            if compress and kind == "dat":
                (folder / f"{name}-{kind}.mat.gz").write_bytes(gzip.compress(matrix(array), 1))
            else:
                (folder / f"{name}-{kind}.mat").write_bytes(matrix(array))
    return written


def test_norb(tmp_path):
    written = write_norb(tmp_path, compress=True)
    data = load("norb", tmp_path)
    assert split_sizes(data) == (40, 10, 10)
    assert data.train.X.shape == (40, 2048)
    assert data.train.X.dtype == np.float32
    for part in (data.train, data.valid, data.test):
        assert np.abs(part.X.mean(axis=1)).max() < 1e-5
    assert data.train.X.std() == pytest.approx(1, abs=1e-5)
    X, y = written["norb-5x01235x9x18x6x2x108x108-testing-01"]
    assert np.array_equal(data.test.y[:5], y)
    # left and right camera side by side: up to one scale for all, the mean of each stretch of 108/32 pixels
    image = data.test.X[3].reshape(32, 64)
    fine = np.repeat(np.repeat(X[3].astype(float), 32, axis=1), 32, axis=2)  # 108 * 32 = 3456 a side
    small = fine.reshape(2, 32, 108, 32, 108).mean(axis=(2, 4))
    small = np.hstack([small[0], small[1]])
    small -= small.mean()
    scale = (image * small).sum() / (small * small).sum()
    assert np.abs(image - scale * small).max() < 1e-4


def test_shrinking_averages():
    weights = shrink_matrix(108, 32)
    assert weights.sum(axis=1) == pytest.approx(np.ones(32))
    assert weights.sum(axis=0) == pytest.approx(np.full(108, 32 / 108))


@pytest.mark.parametrize(
    ("kind", "damage", "message"),
    [
        ("dat", lambda b: b[:-1], "ends early: 1 bytes are missing"),
        ("dat", lambda b: b + b"\0", "goes on after"),
        ("dat", lambda b: b"MATL" + b[4:], "magic number 0x4c54414d"),
        ("dat", lambda b: b"", "magic number 0x00000000"),
        ("dat", lambda b: matrix(np.zeros((5, 2, 96, 96), np.uint8)), r"dimensions \[5, 2, 96, 96\]"),
        ("dat", lambda b: matrix(np.zeros((4, 2, 108, 108), np.uint8)), "4 cases, but"),
        ("dat", lambda b: b[:4] + b"\xff" * 20, "dimensions"),
        ("cat", lambda b: b[:-4] + struct.pack("<i", 6), "allowed are 0 to 5"),
        ("cat", lambda b: b[:12], "ends early|dimensions"),
        ("cat", lambda b: b[:8] + struct.pack("<i", 2**31 - 1) + b[12:], "ends early: 8,589,934,568 bytes are missing"),
    ],
)
def test_damaged_norb(tmp_path, kind, damage, message):
    write_norb(tmp_path)
    path = tmp_path / f"norb-5x46789x9x18x6x2x108x108-training-02-{kind}.mat"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=message) as caught:
        load("norb", tmp_path)
    assert str(path) in str(caught.value)
