"""Which implementations of the kernels exist. Each is a module with the same functions; see `kernels.reference`."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from sketchnet.errors import InputError

_BACKENDS = {
    "reference": "sketchnet.kernels.reference",  # plain NumPy: slow, short, what the tests compare with
    "cpu": "sketchnet.kernels.cpu",  # numba
}


def backend(name: str = "cpu") -> ModuleType:
    """The kernel module called `name`, imported on first use (numba takes a while to load)."""
    if name not in _BACKENDS:
        raise InputError(f"there is no kernel backend {name!r}; there are {', '.join(_BACKENDS)}")
    return import_module(_BACKENDS[name])
