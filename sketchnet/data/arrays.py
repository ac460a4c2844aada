"""NumPy's .npy format, mapped rather than loaded. What a header claims is compared with the bytes that are there."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sketchnet.errors import InputError, StorageError
from sketchnet.storage import check_regular

_READ_HEADER = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def map_npy(path: Path, n_dimensions: int = 1) -> np.ndarray:
    """Return the array in a .npy file, mapped read-only."""
    size = check_regular(path).st_size
    try:
        with open(path, "rb") as file:
            return map_array(file, 0, size, str(path), n_dimensions)
    except InputError:
        raise
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror or error}") from None


def map_array(file: BinaryIO, start: int, size: int, name: str, n_dimensions: int = 1) -> np.ndarray:
    """Return the array that lies in `size` bytes of a file, from `start` on, mapped read-only. `name` is what errors
    call it.
    """
    file.seek(start)
    dtype, shape, order = read_header(file, size, name, n_dimensions)
    if 0 in shape:  # nothing to map
        return np.empty(shape, dtype)
    placed: Any = {"offset": file.tell(), "shape": shape, "order": order}
    return np.memmap(file, dtype, mode="r", **placed)


def read_header(file: BinaryIO, size: int, name: str, n_dimensions: int) -> tuple[np.dtype, tuple[int, ...], str]:
    """Return dtype, shape and order of the array of `size` bytes, header and all, that begins here in a file."""
    start = file.tell()
    try:
        shape, is_fortran, dtype = _READ_HEADER[np.lib.format.read_magic(file)](file)
    except StorageError:
        raise
    except Exception as error:  # NumPy's parser fails in a dozen ways on damaged headers, at length on some
        if isinstance(error, OSError) and error.errno is not None:
            raise
        what = str(error).partition("\n")[0]
        raise InputError(f"{name} cannot be read as a .npy array: {what}") from None
    n_bytes = math.prod(shape) * dtype.itemsize  # in Python's integers, whatever the header claims
    fits = all(length >= 0 for length in shape) and file.tell() - start + n_bytes == size
    if dtype.hasobject or len(shape) != n_dimensions or not fits:
        raise InputError(f"{name} claims {shape} of {dtype} in {size} bytes")
    return dtype, shape, "F" if is_fortran else "C"
