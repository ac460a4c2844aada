"""MATLAB files as scipy writes and reads them, and mutated ones."""

import numpy as np
import pytest
from scipy.io import savemat

from sketchnet.data.datasets.mat5 import read_mat
from sketchnet.errors import InputError
from tests.data.image_files import RNG


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
