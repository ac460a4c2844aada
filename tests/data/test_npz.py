import errno
import io
import os
import zipfile

import numpy as np
import pytest
from scipy import sparse

from sketchnet.data.npz import open_npz
from sketchnet.errors import InputError, StorageError


def matrix():
    return sparse.random_array((50, 1000), density=0.05, format="csr", rng=np.random.default_rng(0))


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool])
def test_reads_what_scipy_wrote(compressed, dtype, tmp_path):
    X = (matrix() * 100).astype(dtype)
    sparse.save_npz(tmp_path / "x.npz", X, compressed=compressed)
    batch, checksums = open_npz(tmp_path / "x.npz", tmp_path)
    assert isinstance(batch.values, np.memmap)
    assert batch.n_columns == 1000
    assert np.array_equal(batch.indptr, X.indptr)
    assert np.array_equal(batch.indices, X.indices)
    assert np.array_equal(batch.values, X.data)
    assert len(checksums) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["x.npz"]


def test_empty_matrix(tmp_path):
    sparse.save_npz(tmp_path / "x.npz", sparse.csr_array((3, 10)), compressed=False)
    assert open_npz(tmp_path / "x.npz", tmp_path)[0].n_rows == 3


def test_other_data_has_other_checksums(tmp_path):
    X = matrix()
    sparse.save_npz(tmp_path / "x.npz", X)
    X.data[3] += 1
    sparse.save_npz(tmp_path / "y.npz", X)
    assert open_npz(tmp_path / "x.npz", tmp_path)[1] != open_npz(tmp_path / "y.npz", tmp_path)[1]


def damaged(change):
    """A saved matrix with one array replaced."""
    X = matrix()
    arrays = {"format": b"csr", "shape": X.shape, "data": X.data, "indices": X.indices, "indptr": X.indptr}
    arrays.update(change)
    file = io.BytesIO()
    np.savez(file, **{name: np.asarray(value) for name, value in arrays.items() if value is not None})
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not a zip", "is not a complete scipy .npz file"),
        (damaged({})[:-300], "is not a complete scipy .npz file"),
        (damaged({"indices": None}), "has no array 'indices'"),
        (damaged({"format": b"csc"}), "holds a csc matrix; save it by rows"),
        (damaged({"indptr": np.zeros(7, int)}), "there are 7 row offsets for 50 rows"),
        (damaged({"data": np.array([{}] * 5, object)}), "array 'data' claims"),
        (damaged({"data": np.zeros((5, 5))}), r"array 'data' claims \(5, 5\) of float64"),
        (damaged({"data": np.zeros(2500, complex)}), "dtype complex128; allowed are real numbers"),
        (damaged({"format": np.array([{}], object)}), r"array 'format' claims \(1,\) of object"),
        (damaged({"format": np.array([b"csr", b"csc"])}), r"array 'format' claims \(2,\) of"),
        (damaged({"shape": (1, 2, 3)}), r"its shape is \[1, 2, 3\]; it must be two integers from 0 to 2\*\*63"),
        (damaged({"shape": np.array([50, 2**64 - 5], np.uint64)}), r"its shape is \[50, 18446744073709551611\]"),
        (damaged({"shape": (50.0, 1000.0)}), r"its shape is \[50.0, 1000.0\]"),
        (damaged({"shape": (-50, 1000)}), r"its shape is \[-50, 1000\]"),
        (damaged({"shape": 5}), r"array 'shape' claims \(\) of int64"),
        (
            damaged({"indptr": matrix().indptr.astype(complex)}),
            "array 'indptr' is of complex128; it must be of integers",
        ),
        (damaged({"indices": np.zeros(2500)}), "array 'indices' is of float64; it must be of integers"),
        (damaged({"indptr": matrix().indptr + 3}), "the row offsets begin at 3; in a scipy matrix they begin at 0"),
        (damaged({"indptr": np.minimum(matrix().indptr, 9)[::-1]}), "the row offsets begin at 9"),
        (damaged({"indptr": np.append(0, matrix().indptr[:0:-1])}), "row 1 ends before it begins"),
        (
            damaged({"indptr": 2 * matrix().indptr}),
            "the row offsets do not fit 2500 stored entries: they run from 0 to 5000",
        ),
        (damaged({"data": np.zeros(2499)}), "there are 2500 column ids but 2499 values"),
        (damaged({"shape": np.zeros(10**4)}), "array 'shape' is too large"),
        (damaged({}).replace(b"(2500,)", b"(9999,)"), "is not a complete scipy .npz file: Bad CRC"),
    ],
)
def test_damaged_files(content, message, tmp_path):
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(InputError, match=rf"^{tmp_path}/x.npz.*{message}") as error:
        open_npz(tmp_path / "x.npz", tmp_path)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("claimed", ["(10**13,)", "(-1,)", "(True,)", "(2**70,)"])
@pytest.mark.parametrize("name", ["indptr", "indices", "data", "shape", "format"])
def test_headers_that_claim_too_much(name, claimed, tmp_path):
    """They are packed with a checksum of their own, as a program would that means it."""
    X, dtype = matrix(), "'<i8'"
    arrays = {"format": np.array(b"csr"), "shape": np.array(X.shape), "data": X.data}
    arrays |= {"indices": X.indices, "indptr": X.indptr}
    header = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {eval(claimed)}, }}\n".encode()
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        for key, array in arrays.items():
            file = io.BytesIO()
            np.save(file, array)
            start = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header
            archive.writestr(f"{key}.npy", start if key == name else file.getvalue())
    with pytest.raises(InputError, match=f"x.npz: array '{name}' claims"):
        open_npz(tmp_path / "x.npz", tmp_path)


def test_room_behind_the_last_row_is_left_out(tmp_path):
    X = matrix()
    (tmp_path / "x.npz").write_bytes(damaged({"indices": np.append(X.indices, 7), "data": np.append(X.data, np.nan)}))
    batch, _ = open_npz(tmp_path / "x.npz", tmp_path)
    assert np.array_equal(batch.indices, X.indices)
    assert np.array_equal(batch.values, X.data)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_never_ends_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "zero.npz").symlink_to("/dev/zero")
    for name in ("pipe.npz", "zero.npz"):
        with pytest.raises(InputError, match=f"{name} is no regular file"):
            open_npz(tmp_path / name, tmp_path)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_flipped_bit_is_seen(compressed, tmp_path):
    sparse.save_npz(tmp_path / "x.npz", matrix(), compressed=compressed)
    content = bytearray((tmp_path / "x.npz").read_bytes())
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        member = archive.getinfo("data.npy")
    content[member.header_offset + 30 + 8 + member.compress_size // 2] ^= 16
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(InputError, match="is not a complete scipy .npz file"):
        open_npz(tmp_path / "x.npz", tmp_path)


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        open_npz(tmp_path / "x.npz", tmp_path)
    with pytest.raises(InputError, match="is a folder"):
        open_npz(tmp_path, tmp_path)


def refusing(number):
    def refuse(*args, **options):
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("place", ["ZipFile", "ZipExtFile.read"])
def test_a_file_that_the_system_does_not_let_us_read(place, compressed, tmp_path, monkeypatch):
    sparse.save_npz(tmp_path / "x.npz", matrix(), compressed=compressed)
    monkeypatch.setattr(f"zipfile.{place}", refusing(errno.EIO))
    with pytest.raises(StorageError, match=r"cannot read .*x\.npz: Input/output error"):
        open_npz(tmp_path / "x.npz", tmp_path / "scratch")


def test_no_room_to_unpack(tmp_path, monkeypatch):
    (tmp_path / "scratch").mkdir()
    sparse.save_npz(tmp_path / "x.npz", matrix(), compressed=True)
    monkeypatch.setattr("tempfile.TemporaryFile", refusing(errno.ENOSPC))
    with pytest.raises(StorageError, match="no room on the disk for .*scratch"):
        open_npz(tmp_path / "x.npz", tmp_path / "scratch")


def test_members_that_claim_too_much(tmp_path):
    """They are refused before a byte of them is unpacked."""
    path = tmp_path / "x.npz"
    sparse.save_npz(path, sparse.csr_array((10**6, 5)), compressed=True)
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("indptr.npy").file_size.to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(size, (2**32 - 2).to_bytes(4, "little")))
    with pytest.raises(InputError, match="array 'indptr' claims 4,294,967,294 bytes, packed in"):
        open_npz(path, tmp_path)


def test_damaged_bz2_members(tmp_path):
    """Which bz2 reports as an error of the system, though without a number."""
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("format.npy", np.random.default_rng(0).bytes(2000))
    content = bytearray((tmp_path / "x.npz").read_bytes())
    content[30 + len("format.npy") + 1000] ^= 16
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(InputError, match="is not a complete scipy .npz file"):
        open_npz(tmp_path / "x.npz", tmp_path)
