"""CIFAR-10 and CIFAR-100, from small files and archives like the published ones."""

import io
import tarfile

import numpy as np
import pytest

from sketchnet.errors import InputError
from tests.data.image_files import RNG, load, split_sizes


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
    bytes_alone = load("cifar10", tmp_path, raw=True)
    assert split_sizes(bytes_alone) == (40, 0, 8)
    assert bytes_alone.train.X.dtype == np.uint8
    assert np.array_equal(bytes_alone.train.X, raw[:, 1:])
    assert np.array_equal(bytes_alone.train.y, raw[:, 0])
    assert np.array_equal(bytes_alone.test.X, files["test_batch.bin"][:, 1:])


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
