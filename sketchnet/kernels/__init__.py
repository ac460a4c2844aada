"""Kernels: the inner loops, on plain arrays with 64-bit offsets. `registry.backend(name)` picks an implementation."""

from sketchnet.kernels.registry import backend

__all__ = ["backend"]
