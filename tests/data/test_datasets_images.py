"""Image sets: small files in the publishers' formats, written here byte by byte."""

import gzip
import io
import struct
import tarfile

import numpy as np
import pytest
from scipy.io import savemat

from sketchnet.data.datasets import load_dataset
from sketchnet.data.datasets.mat5 import read_mat
from sketchnet.data.datasets.norb import shrink_matrix
from sketchnet.errors import InputError

RNG = np.random.default_rng(0)


def load(name, folder, **options):
    return load_dataset(name, folder=folder, download=False, **options)


def split_sizes(data):
    return len(data.train), len(data.valid), len(data.test)


# ---------------------------------------------------------------- MNIST


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", size) for size in array.shape)
    return header + array.astype(np.uint8).tobytes()


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


# ---------------------------------------------------------------- NORB


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
    ],
)
def test_damaged_norb(tmp_path, kind, damage, message):
    write_norb(tmp_path)
    path = tmp_path / f"norb-5x46789x9x18x6x2x108x108-training-02-{kind}.mat"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=message) as caught:
        load("norb", tmp_path)
    assert str(path) in str(caught.value)


# ---------------------------------------------------------------- CIFAR


def records(n, n_classes, n_labels=1):
    labels = RNG.integers(0, n_classes, (n, 1), np.uint8)
    coarse = np.zeros((n, n_labels - 1), np.uint8)
    return np.hstack([coarse, labels, RNG.integers(0, 256, (n, 3072), np.uint8)])


def cifar10_files():
    names = [*(f"data_batch_{batch}.bin" for batch in range(1, 6)), "test_batch.bin"]
    return {name: records(8, 10) for name in names}


def tar_of(path, folder, contents):
    with tarfile.open(path, "w:gz") as tar:
        for name, data in contents.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


@pytest.mark.parametrize("layout", ["folder", "subfolder", "archive"])
def test_cifar10(tmp_path, layout):
    files = cifar10_files()
    contents = {name: array.tobytes() for name, array in files.items()}
    if layout == "archive":
        tar_of(tmp_path / "cifar-10-binary.tar.gz", "cifar-10-batches-bin", contents)
    else:
        folder = tmp_path if layout == "folder" else tmp_path / "cifar-10-batches-bin"
        folder.mkdir(exist_ok=True)
        for name, data in contents.items():
            (folder / name).write_bytes(data)
    data = load("cifar10", tmp_path)
    assert split_sizes(data) == (36, 4, 8)
    assert data.train.X.dtype == np.float32
    assert np.array_equal(data.test.y, files["test_batch.bin"][:, 0])
    assert data.class_names[3] == "cat"
    # less the mean training image, over one deviation for all
    assert np.abs(data.train.X.mean(axis=0)).max() < 1e-5
    raw = np.concatenate([array for name, array in files.items() if "data" in name])
    valid = {row.tobytes() for row in data.valid.X.round(3)}
    y = np.concatenate([data.train.y, data.valid.y])
    assert np.array_equal(np.sort(y), np.sort(raw[:, 0]))
    difference = data.test.X[0] - data.test.X[1]
    expected = files["test_batch.bin"][:, 1:].astype(float)
    ratio = (expected[0] - expected[1])[difference != 0] / difference[difference != 0]
    assert ratio.max() == pytest.approx(ratio.min(), rel=1e-3)
    assert ratio.mean() == pytest.approx(73.9, rel=0.01)  # deviation of uniform bytes
    assert len(valid) == 4


def test_cifar100(tmp_path):
    train, test = records(20, 100, 2), records(10, 100, 2)
    names = "\n".join(f"class{number}" for number in range(100)).encode()
    contents = {"train.bin": train.tobytes(), "test.bin": test.tobytes(), "fine_label_names.txt": names}
    tar_of(tmp_path / "cifar-100-binary.tar.gz", "cifar-100-binary", contents)
    data = load("cifar100", tmp_path)
    assert split_sizes(data) == (18, 2, 10)
    assert data.n_classes == 100
    assert data.class_names[:2] == ("class0", "class1")
    assert np.array_equal(data.test.y, test[:, 1])  # the fine label


def test_damaged_cifar(tmp_path):
    for name, array in cifar10_files().items():
        (tmp_path / name).write_bytes(array.tobytes())
    path = tmp_path / "data_batch_2.bin"
    good = path.read_bytes()
    path.write_bytes(good[:-5])
    with pytest.raises(InputError, match="data_batch_2.bin has .* it must be a multiple of 3,073"):
        load("cifar10", tmp_path)
    path.write_bytes(good[:3073] + b"\x0a" + good[3074:])
    with pytest.raises(InputError, match="data_batch_2.bin has label 10 in record 1"):
        load("cifar10", tmp_path)


def test_damaged_archives(tmp_path):
    path = tmp_path / "cifar-10-binary.tar.gz"
    contents = {name: array.tobytes() for name, array in cifar10_files().items()}
    tar_of(path, "cifar-10-batches-bin", {"data_batch_1": b"a pickle"})
    with pytest.raises(InputError, match="cifar-10-binary.tar.gz holds no data_batch_1.bin.* binary version"):
        load("cifar10", tmp_path)
    tar_of(path, "cifar-10-batches-bin", contents)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(InputError, match="cifar-10-binary.tar.gz is damaged or incomplete"):
        load("cifar10", tmp_path)
    path.write_bytes(b"no archive")
    with pytest.raises(InputError, match="cifar-10-binary.tar.gz is damaged or incomplete"):
        load("cifar10", tmp_path)


# ---------------------------------------------------------------- SVHN


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


@pytest.mark.parametrize("compress", [False, True])
def test_matlab_files_as_scipy_reads_them(tmp_path, compress):
    path = tmp_path / "a.mat"
    arrays = {
        "X": RNG.integers(0, 256, (3, 4, 2), np.uint8),
        "small": np.array([[7]], np.uint16),
        "name_of_some_length": RNG.standard_normal((5, 1)),
    }
    savemat(
        path,
        {**arrays, "text": "skipped", "z": np.array([1j]), "cell": np.array([1, "a"], object)},
        do_compression=compress,
    )
    read = read_mat(path)
    assert sorted(read) == sorted(arrays)
    for name, array in arrays.items():
        assert np.array_equal(read[name], array)
        assert read[name].dtype == array.dtype


def test_mutated_matlab_files_give_arrays_or_an_error(tmp_path):
    path = tmp_path / "a.mat"
    rng = np.random.default_rng(1)
    for compress in (False, True):
        savemat(path, {"X": rng.integers(0, 256, (8, 8), np.uint8), "y": np.ones((3, 1))}, do_compression=compress)
        good = path.read_bytes()
        failed = 0
        for _ in range(300):
            bad = bytearray(good)
            for at in rng.integers(0, len(bad), 2):
                bad[at] = rng.integers(256)
            path.write_bytes(bad[: rng.integers(1, 3 * len(bad))])
            try:
                read_mat(path)
            except InputError:
                failed += 1
        assert failed > 50
