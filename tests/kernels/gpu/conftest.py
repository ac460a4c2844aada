"""Each GPU kernel against plain arithmetic: on the GPU if there is one, else interpreted by Triton on the processor.

The interpreter takes every program as it stands, one after the other: what it cannot show is how the compiler, many
programs at a time and a GPU's own rounding turn out. tests/gpu is for that.
"""

from types import SimpleNamespace

import pytest

from sketchnet.kernels.registry import gpu_missing


@pytest.fixture(autouse=True)
def libdevice(monkeypatch):
    """The interpreter has none of NVIDIA's functions: the two that kernels call are stood in for."""
    if gpu_missing():
        from sketchnet.kernels.gpu import draw, hadamard

        stand_in = SimpleNamespace(fast_log2f=lambda x: draw.tl.log2(x), popc=count_bits)
        for module in (draw, hadamard):
            monkeypatch.setattr(module, "libdevice", stand_in)


def count_bits(x):
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x & 0x0F0F0F0F) + ((x >> 4) & 0x0F0F0F0F)
    x = (x & 0x00FF00FF) + ((x >> 8) & 0x00FF00FF)
    return (x & 0x0000FFFF) + ((x >> 16) & 0x0000FFFF)
