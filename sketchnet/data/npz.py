"""Sparse matrices in scipy's .npz files, mapped rather than loaded.

`scipy.sparse.save_npz(path, X, compressed=False)` stores plain arrays in a zip archive; they are mapped where they lie.
Compressed members are unpacked first, a piece at a time, to a file without a name, which the system removes with the
process. Either way the matrix may be larger than memory, and checksums are compared.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from sketchnet.data.arrays import map_array, read_header
from sketchnet.data.csr import CsrBatch, check_offsets, csr_of_whole, real_values
from sketchnet.errors import BadRows, InputError, MissingFile, StorageError
from sketchnet.storage import check_regular, writing

_MEMBERS = ("indptr", "indices", "data")
_PIECE = 1 << 20
_DEFLATED = 1032  # bytes that one may unpack to, at most


def open_npz(path: str | Path, scratch: str | Path) -> tuple[CsrBatch, list[int]]:
    """The CSR matrix in `path`, mapped read-only, and its arrays' checksums. Compressed arrays unpack in `scratch`."""
    path = Path(path)
    if not path.exists():
        raise MissingFile(f"there is no file {path}")
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a scipy .npz file")
    check_regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return _matrix(archive, path, Path(scratch))
    except BadRows as error:
        raise InputError(f"{path}: {error}") from None
    except (InputError, StorageError, MemoryError):
        raise
    except Exception as error:  # zipfile and NumPy's header parser fail in a dozen ways on damaged files
        # bz2 reports bad data without a number; EINVAL is a place that cannot be, such as one before the file
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise StorageError(f"cannot read {path}: {error.strerror}") from None
        what = str(error).partition("\n")[0]
        raise InputError(f"{path} is not a complete scipy .npz file: {what}") from None


def _matrix(archive: zipfile.ZipFile, path: Path, scratch: Path) -> tuple[CsrBatch, list[int]]:
    layout = _small(archive, path, "format").item()
    layout = layout.decode("ascii", "replace") if isinstance(layout, bytes) else str(layout)
    if layout != "csr":
        raise InputError(f"{path} holds a {layout} matrix; save it by rows: save_npz(path, X.tocsr())")
    shape = _small(archive, path, "shape")
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or not all(0 <= int(n) <= 2**63 for n in shape):
        allowed = "two integers from 0 to 2**63"
        raise InputError(
            f"{path} is not a complete scipy .npz file: its shape is {shape.tolist()}; it must be {allowed}"
        )
    n_rows, n_columns = map(int, shape)
    indptr, indices, values = (_array(archive, path, name, scratch) for name in _MEMBERS)
    for name, ids in (("indptr", indptr), ("indices", indices)):
        if ids.dtype.kind not in "iu":
            raise InputError(f"{path}: array {name!r} is of {ids.dtype}; it must be of integers")
    X = csr_of_whole(indptr, indices, real_values(values), (n_rows, n_columns))
    check_offsets(X)
    return X, [_member(archive, path, m).CRC for m in _MEMBERS]


def _member(archive: zipfile.ZipFile, path: Path, name: str) -> zipfile.ZipInfo:
    try:
        return archive.getinfo(f"{name}.npy")
    except KeyError:
        raise InputError(f"{path} has no array {name!r}, so it is not a sparse matrix that scipy saved") from None


def _small(archive: zipfile.ZipFile, path: Path, name: str) -> np.ndarray:
    member = _member(archive, path, name)
    if member.file_size > 4096:
        raise InputError(f"{path}: array {name!r} is too large to describe a matrix")
    with archive.open(member) as packed:
        content = packed.read()
    file, n_dimensions = io.BytesIO(content), {"format": 0, "shape": 1}[name]
    dtype, shape, _ = read_header(file, len(content), f"{path}: array {name!r}", n_dimensions)
    return np.frombuffer(content, dtype, offset=file.tell()).reshape(shape)


def _array(archive: zipfile.ZipFile, path: Path, name: str, scratch: Path) -> np.ndarray:
    """A line of numbers, mapped. Reading a member to its end makes zipfile compare its checksum."""
    member = _member(archive, path, name)
    with archive.open(member) as source:
        if member.compress_type != zipfile.ZIP_STORED:
            size = member.file_size
            if member.compress_type == zipfile.ZIP_DEFLATED and size > _DEFLATED * (member.compress_size + 1):
                raise InputError(f"{path}: array {name!r} claims {size:,} bytes, packed in {member.compress_size:,}")
            with writing(scratch):
                if size > shutil.disk_usage(scratch).free:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                file = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115 (closed below)
            with file:
                while piece := source.read(_PIECE):
                    with writing(scratch):
                        file.write(piece)
                with writing(scratch):
                    file.flush()
                return map_array(file, 0, member.file_size, f"{path}: array {name!r}")
        while source.read(_PIECE):
            pass
    with open(path, "rb") as file:
        file.seek(member.header_offset + 26)  # the local header ends with a name and extra fields of these lengths
        lengths = np.frombuffer(file.read(4), "<u2")
        start = member.header_offset + 30 + int(lengths.sum())
        return map_array(file, start, member.file_size, f"{path}: array {name!r}")
