"""Sparse matrices in scipy's .npz files, mapped rather than loaded.

`scipy.sparse.save_npz(path, X, compressed=False)` stores plain arrays in a zip archive; they can be mapped where they
lie. Compressed members are unpacked, a piece at a time, to a scratch folder first. Either way the matrix may be larger
than memory.
"""

from __future__ import annotations

import os
import shutil
import zipfile
import zlib
from pathlib import Path

import numpy as np

from sketchnet.data.csr import CsrBatch, real_values
from sketchnet.errors import InputError

_MEMBERS = ("indptr", "indices", "data")


def open_npz(path: str | Path, scratch: str | Path) -> tuple[CsrBatch, list[int]]:
    """The CSR matrix in `path`, mapped read-only, and its arrays' checksums. `scratch` is made if need be."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            layout = _small(archive, path, "format").item()
            if layout not in (b"csr", "csr"):
                raise InputError(f"{path} holds a {_text(layout)} matrix; save it by rows: save_npz(path, X.tocsr())")
            n_rows, n_columns = (int(x) for x in _small(archive, path, "shape"))
            indptr, indices, values = (_array(archive, path, name, Path(scratch)) for name in _MEMBERS)
            checksums = [archive.getinfo(f"{name}.npy").CRC for name in _MEMBERS]
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder, not a scipy .npz file") from None
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise InputError(f"{path} is not a complete scipy .npz file: {error}") from None
    if len(indptr) != n_rows + 1:
        raise InputError(f"{path} has {n_rows} rows but {len(indptr)} row offsets; there must be one more than rows")
    return CsrBatch(indptr, indices, real_values(values), n_columns), checksums


def _text(layout) -> str:
    return layout.decode("ascii", "replace") if isinstance(layout, bytes) else str(layout)


def _member(archive: zipfile.ZipFile, path: Path, name: str) -> zipfile.ZipInfo:
    try:
        return archive.getinfo(f"{name}.npy")
    except KeyError:
        raise InputError(f"{path} has no array {name!r}, so it is not a sparse matrix that scipy saved") from None


def _small(archive: zipfile.ZipFile, path: Path, name: str) -> np.ndarray:
    with archive.open(_member(archive, path, name)) as file:
        return _read(path, name, lambda: np.lib.format.read_array(file, allow_pickle=False))


def _array(archive: zipfile.ZipFile, path: Path, name: str, scratch: Path) -> np.ndarray:
    member = _member(archive, path, name)
    if member.compress_type == zipfile.ZIP_STORED:
        return _read(path, name, lambda: _map(path, _data_offset(path, member)))
    scratch.mkdir(exist_ok=True)
    unpacked = scratch / f"{name}.npy"
    with archive.open(member) as source, open(unpacked.with_suffix(".new"), "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)  # checks the member's checksum at its end
    os.replace(target.name, unpacked)  # never written in place: another process may have the old one mapped
    return _read(path, name, lambda: _map(unpacked, 0))


def _read(path: Path, name: str, reader) -> np.ndarray:
    try:
        return reader()
    except ValueError as error:
        raise InputError(f"{path}: array {name!r} cannot be read: {error}") from None


def _data_offset(path: Path, member: zipfile.ZipInfo) -> int:
    """Where a stored member's bytes begin: after its local header, whose name and extra fields vary in length."""
    with open(path, "rb") as file:
        file.seek(member.header_offset + 26)
        name_length, extra_length = np.frombuffer(file.read(4), "<u2")
        return member.header_offset + 30 + int(name_length) + int(extra_length)


def _map(path: Path, offset: int) -> np.ndarray:
    with open(path, "rb") as file:
        file.seek(offset)
        version = np.lib.format.read_magic(file)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in header:
            raise ValueError(f"version {version} of the .npy format")
        shape, _, dtype = header[version](file)
        if dtype.hasobject or len(shape) != 1:
            raise ValueError(f"it has shape {shape} and dtype {dtype}, not a line of numbers")
        if shape == (0,):  # nothing to map
            return np.empty(0, dtype)
        return np.memmap(path, dtype, mode="r", offset=file.tell(), shape=shape)
