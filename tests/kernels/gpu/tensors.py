"""Rows for GPU kernels, and the kernels themselves: `there` puts arrays where these run."""

import numpy as np
import pytest
import torch

from sketchnet.kernels.registry import gpu_missing

pytest.importorskip("triton")  # Linux has it

from sketchnet.kernels import gpu as KERNELS  # noqa: F401 - `backend("gpu")` asks for a GPU

DEVICE = "cpu" if gpu_missing() else "cuda"


def there(*arrays: np.ndarray) -> list[torch.Tensor]:
    return [torch.from_numpy(np.ascontiguousarray(array)).to(DEVICE) for array in arrays]


def make_rows(lengths, d, ids=np.int64, begin=0, seed=0):
    """CSR arrays with unsorted, repeated ids below d; offsets begin at `begin`."""
    rng, total = np.random.default_rng(seed), sum(lengths)
    indices = rng.integers(0, d, total).astype(ids)
    indices[3::4] = indices[2::4][: len(indices[3::4])]
    return begin + np.cumsum([0, *lengths]), indices, rng.standard_normal(total).astype(np.float32)


def assert_close(tensor: torch.Tensor, exact, error=1e-5):
    """Sums of a few terms of size one, to rounding."""
    np.testing.assert_allclose(tensor.double().cpu().numpy(), np.asarray(exact, np.float64), rtol=error, atol=error)
