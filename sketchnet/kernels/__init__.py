"""Kernels: the inner loops, on plain arrays with 64-bit offsets. `registry.backend(name)` picks an implementation."""

from sketchnet.kernels.registry import backend, gpu_missing

__all__ = ["backend", "gpu_missing", "n_threads"]


def __getattr__(name: str):
    if name == "n_threads":  # on first use: it loads numba
        from sketchnet.kernels.cpu.threads import n_threads

        return n_threads
    raise AttributeError(f"module 'sketchnet.kernels' has no attribute {name!r}")
