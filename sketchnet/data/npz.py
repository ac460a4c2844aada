"""Sparse matrices in scipy's .npz files, mapped rather than loaded.

`scipy.sparse.save_npz(path, X, compressed=False)` stores plain arrays in a zip archive; they are mapped where they lie.
Compressed members are unpacked first, a piece at a time, to a file without a name, which the system removes with the
process. Either way the matrix may be larger than memory, and checksums are compared.
"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

import numpy as np

from sketchnet.data.csr import CsrBatch, real_values
from sketchnet.errors import InputError, MissingFile, StorageError
from sketchnet.storage import writing

_MEMBERS = ("indptr", "indices", "data")
_PIECE = 1 << 20


def open_npz(path: str | Path, scratch: str | Path) -> tuple[CsrBatch, list[int]]:
    """The CSR matrix in `path`, mapped read-only, and its arrays' checksums. Compressed arrays unpack in `scratch`."""
    path = Path(path)
    if not path.exists():
        raise MissingFile(f"there is no file {path}")
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a scipy .npz file")
    try:
        with zipfile.ZipFile(path) as archive:
            return _matrix(archive, path, Path(scratch))
    except (InputError, StorageError, MemoryError):
        raise
    except Exception as error:  # zipfile and NumPy's header parser fail in a dozen ways on damaged files
        if isinstance(error, OSError) and error.errno is not None:  # bz2 reports bad data without a number
            raise StorageError(f"cannot read {path}: {error.strerror}") from None
        raise InputError(f"{path} is not a complete scipy .npz file: {error}") from None


def _matrix(archive: zipfile.ZipFile, path: Path, scratch: Path) -> tuple[CsrBatch, list[int]]:
    layout = _small(archive, path, "format").item()
    layout = layout.decode("ascii", "replace") if isinstance(layout, bytes) else str(layout)
    if layout != "csr":
        raise InputError(f"{path} holds a {layout} matrix; save it by rows: save_npz(path, X.tocsr())")
    n_rows, n_columns = (int(x) for x in _small(archive, path, "shape"))
    indptr, indices, values = (_array(archive, path, name, scratch) for name in _MEMBERS)
    if len(indptr) != n_rows + 1:
        raise InputError(f"{path} has {n_rows} rows but {len(indptr)} row offsets; there must be one more than rows")
    return CsrBatch(indptr, indices, real_values(values), n_columns), [_member(archive, path, m).CRC for m in _MEMBERS]


def _member(archive: zipfile.ZipFile, path: Path, name: str) -> zipfile.ZipInfo:
    try:
        return archive.getinfo(f"{name}.npy")
    except KeyError:
        raise InputError(f"{path} has no array {name!r}, so it is not a sparse matrix that scipy saved") from None


def _small(archive: zipfile.ZipFile, path: Path, name: str) -> np.ndarray:
    member = _member(archive, path, name)
    if member.file_size > 4096:
        raise InputError(f"{path}: array {name!r} is too large to describe a matrix")
    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _array(archive: zipfile.ZipFile, path: Path, name: str, scratch: Path) -> np.ndarray:
    """A line of numbers, mapped. Reading a member to its end makes zipfile compare its checksum."""
    member = _member(archive, path, name)
    with archive.open(member) as source:
        if member.compress_type != zipfile.ZIP_STORED:
            with writing(scratch):
                file = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115 (closed below)
            with file:
                while piece := source.read(_PIECE):
                    with writing(scratch):
                        file.write(piece)
                with writing(scratch):
                    file.flush()
                return _map(path, name, file, 0, member.file_size)
        while source.read(_PIECE):
            pass
    with open(path, "rb") as file:
        file.seek(member.header_offset + 26)  # the local header ends with a name and extra fields of these lengths
        lengths = np.frombuffer(file.read(4), "<u2")
        return _map(path, name, file, member.header_offset + 30 + int(lengths.sum()), member.file_size)


def _map(path: Path, name: str, file, start: int, size: int) -> np.ndarray:
    file.seek(start)
    version = np.lib.format.read_magic(file)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, _, dtype = read_header(file)
    if dtype.hasobject or len(shape) != 1 or file.tell() - start + shape[0] * dtype.itemsize != size:
        raise InputError(f"{path}: array {name!r} claims {shape} of {dtype} in {size} bytes")
    if shape == (0,):  # nothing to map
        return np.empty(0, dtype)
    return np.memmap(file, dtype, mode="r", offset=file.tell(), shape=shape)
