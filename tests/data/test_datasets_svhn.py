"""SVHN, from small files like the published ones."""

import numpy as np
import pytest
from scipy.io import savemat

from sketchnet.errors import InputError
from tests.data.image_files import RNG, load, split_sizes


def write_svhn(folder):
    written = {}
    for name, n in (("train", 800), ("extra", 8000), ("test", 30)):
        X = RNG.integers(0, 256, (32, 32, 3, n), np.uint8)
        y = np.resize(np.arange(1, 11), n)[:, None].astype(np.uint8)
        savemat(folder / f"{name}_32x32.mat", {"X": X, "y": y})
        written[name] = X, y
    return written


def test_svhn(tmp_path):
    written = write_svhn(tmp_path)
    data = load("svhn", tmp_path)
    # 4 of each class from train and 3 from extra, as 400 and 200 from the published files
    assert split_sizes(data) == (8800 - 70, 70, 30)
    assert np.bincount(data.valid.y).tolist() == [7] * 10
    X, y = written["test"]
    assert np.array_equal(data.test.y, y.ravel() % 10)
    assert data.test.y[9] == 0  # the files call it 10
    assert np.abs(data.train.X.mean(axis=0)).max() < 1e-4
    # red, green, blue, each line by line
    difference = data.test.X[0] - data.test.X[1]
    expected = (X[..., 0].astype(float) - X[..., 1]).transpose(2, 0, 1).ravel()
    assert np.corrcoef(difference, expected)[0, 1] > 0.9999


def test_damaged_svhn(tmp_path):
    write_svhn(tmp_path)
    path = tmp_path / "test_32x32.mat"
    good = path.read_bytes()
    for bad in (good[: len(good) // 2], b"no MATLAB file", b"", good[:200]):
        path.write_bytes(bad)
        with pytest.raises(InputError, match="test_32x32.mat"):
            load("svhn", tmp_path)
    savemat(path, {"X": np.zeros((32, 32, 3, 2), np.uint8)})
    with pytest.raises(InputError, match="test_32x32.mat has no array y"):
        load("svhn", tmp_path)
    savemat(path, {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.array([[0], [1]])})
    with pytest.raises(InputError, match="allowed are 1 to 10"):
        load("svhn", tmp_path)
    savemat(path, {"X": np.zeros((28, 28, 2), np.uint8), "y": np.array([[0], [1]])})
    with pytest.raises(InputError, match=r"it must be \(32, 32, 3, n\)"):
        load("svhn", tmp_path)
