"""Kernels: the inner loops, on plain arrays with 64-bit offsets. `registry.backend(name)` picks an implementation."""

from sketchnet.kernels.registry import backend, gpu_missing
from sketchnet.lazy import load_on_use

__all__ = ["backend", "gpu_missing", "n_threads"]
__getattr__, __dir__ = load_on_use(__name__, {"n_threads": "cpu.threads"})  # which loads numba
