"""Which implementations of the kernels exist.

"reference" is plain NumPy: slow, short, what the tests compare with. "cpu", by numba, has the same functions. "gpu", by
Triton, takes torch tensors on a CUDA device and has functions of its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from sketchnet.checks import check_device, cuda_number
from sketchnet.errors import InputError

_BACKENDS = ("reference", "cpu", "gpu")


@cache
def backend(name: str = "cpu") -> ModuleType:
    """The kernel module called `name`, imported on first use (numba takes a while to load)."""
    if name not in _BACKENDS:
        raise InputError(f"there is no kernel backend {name!r}; there are {', '.join(_BACKENDS)}")
    if name == "gpu" and (missing := gpu_missing()):
        raise InputError(f"kernel backend {name!r} is not possible here: {missing}")
    return import_module(f"sketchnet.kernels.{name}")


def cuda_missing(number: int | None = None) -> str | None:
    """Why there is no CUDA device of that number, or none at all; None if there is."""
    import torch

    if not torch.cuda.is_available():
        return "torch finds no CUDA device"
    there = torch.cuda.device_count()
    return f"torch finds CUDA devices 0 to {there - 1} only" if number is not None and number >= there else None


def cuda_device(device: str, missing: Callable[[int | None], str | None]) -> str | None:
    """Return the CUDA device that a setting asks for, or that "auto" finds; None for the processor."""
    device = check_device(device)
    if device == "cpu":
        return None
    why = missing(cuda_number(device))
    if why and device != "auto":
        raise InputError(f"device {device!r} is not possible here: {why}")
    return None if why else device.replace("auto", "cuda")


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
