"""Which implementations of the kernels exist. Each is a module with the same functions; see `kernels.reference`."""

from __future__ import annotations

import os
import shutil
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from sketchnet.errors import InputError

_BACKENDS = {
    "reference": "sketchnet.kernels.reference",  # plain NumPy: slow, short, what the tests compare with
    "cpu": "sketchnet.kernels.cpu",  # numba
}
_ON_DEVICE = {"gpu": "sketchnet.kernels.gpu"}  # Triton: takes torch tensors on a CUDA device, has functions of its own


@cache
def backend(name: str = "cpu") -> ModuleType:
    """The kernel module called `name`, imported on first use (numba takes a while to load)."""
    if name in _ON_DEVICE:
        missing = gpu_missing()
        if missing:
            raise InputError(f"kernel backend {name!r} is not possible here: {missing}")
        return import_module(_ON_DEVICE[name])
    if name not in _BACKENDS:
        raise InputError(f"there is no kernel backend {name!r}; there are {', '.join([*_BACKENDS, *_ON_DEVICE])}")
    return import_module(_BACKENDS[name])


def cuda_missing(number: int | None = None) -> str | None:
    """Why there is no CUDA device of that number, or none at all; None if there is."""
    import torch

    if not torch.cuda.is_available():
        return "torch finds no CUDA device"
    there = torch.cuda.device_count()
    return f"torch finds CUDA devices 0 to {there - 1} only" if number is not None and number >= there else None


def gpu_missing(number: int | None = None) -> str | None:
    """What keeps the "gpu" kernels from running on the CUDA device of that number, or on torch's current one; None if
    nothing does.
    """
    if find_spec("triton") is None:  # asked first, because it does not load torch
        return "triton is not installed"
    missing = cuda_missing(number)
    if missing:
        return missing
    import torch

    if torch.cuda.get_device_capability(number) < (8, 0):
        return "the CUDA device is older than what the kernels are written for (compute capability 8)"
    # Triton compiles the code that starts a kernel when it is first wanted.
    found = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    return None if found else "triton needs a C compiler, and there is none"
