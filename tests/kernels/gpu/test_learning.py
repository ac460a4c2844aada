"""The sparse layers in training: forward, backward, Adam for the columns used; dropout of dense layers."""

import numpy as np
import pytest
import torch

from sketchnet import random
from sketchnet.kernels import backend
from tests.kernels.gpu.tensors import DEVICE, KERNELS, assert_close, make_rows, there

REFERENCE = backend("reference")
D = 60  # columns
ROWS = make_rows([5, 0, 40, 1, 20], D)  # a program takes 16 or 32 entries at a time
BATCH = np.array([4, 2, 1, 2])
KEYS = np.array([0x9E3779B97F4A7C15, 12345], np.uint64)

every_rate = pytest.mark.parametrize("rate", [0.0, 0.3])


def keep_below(rate):
    return int((1 - rate) * 2**32)


def taken(rate):
    """The rows of the batch, without the entries that are dropped: each by its hash in the row's place in the batch."""
    indptr, indices, values = REFERENCE.gather_rows(*ROWS, BATCH)
    lengths = np.diff(indptr)
    place = (np.repeat(np.arange(len(BATCH)), lengths) << 32) + np.concatenate([np.arange(n) for n in lengths])
    kept = random.hash64(place.astype(np.uint64), *KEYS) >> np.uint64(32) < keep_below(rate)
    return indptr, indices, np.where(kept, values / (1 - rate), 0)


def normal(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def batch(rate):
    rows, keys, *csr = there(BATCH, KEYS.view(np.int64), *ROWS)
    return rows, csr, keys if rate else None, rate


@every_rate
@pytest.mark.parametrize("k", [5, 1030])
@pytest.mark.parametrize("look_up", [False, True])
def test_sketch(k, look_up, rate):
    key, weight, bias, gradient = random.hash_key(3, 4), normal(D), normal(k), normal(len(BATCH), k)
    codes = REFERENCE.draw_buckets(key, np.arange(D), k)
    codes = np.where(codes < 0, ~codes, codes)
    where = there(codes.astype(np.int32))[0] if look_up else key
    out, exact = torch.full((len(BATCH), k), torch.nan, device=DEVICE), np.empty((len(BATCH), k))
    KERNELS.sketch_forward(*batch(rate), where, *there(weight, bias), out)
    REFERENCE.scatter_forward(*taken(rate), None, codes, weight, bias, exact)
    assert_close(out, exact)
    sums = torch.ones(D, device=DEVICE)
    KERNELS.sketch_backward(*batch(rate), where, *there(gradient), sums)
    assert_close(sums, 1 + REFERENCE.scatter_backward(*taken(rate), None, codes, gradient))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # lanes beyond the width reckon with whatever lies there
@pytest.mark.parametrize("width", [1, 5])
def test_adam_of_the_columns_used(width):
    """Each is moved once, however many entries have it; those without a gradient or outside the batch stay."""
    weight, first, second = normal(3, D, width)
    second, moved = second**2, np.unique(taken(0.0)[1])[:-3]
    gradient = np.zeros((D, width), np.float32)
    gradient[moved] = normal(len(moved), width)
    long = np.hstack([weight, first, second]).astype(np.float64)
    REFERENCE.adam_step(long, moved, gradient[moved], 0.1, 0.9, 0.99, 1e-8, 1.5, 0.01)
    rows, csr, _, _ = batch(0.0)
    g, w, m, v, rates = there(gradient, weight, first, second, np.array([0.1, 1.5, 0.01], np.float32))
    KERNELS.adam_rows(rows, csr, g, w, (m, v), rates, (0.9, 0.99), 1e-8)
    assert not g.any()
    for tensor, exact in zip((w, m, v), np.split(long, 3, axis=1)):
        assert_close(tensor, exact)


@pytest.mark.parametrize("decays", [False, True])
def test_adam_of_a_whole_tensor(decays):
    weight, first, second, gradient = normal(4, 1100)  # two programs
    long = np.hstack([weight, first, second**2])[None].astype(np.float64)
    REFERENCE.adam_step(long, np.arange(1), gradient, 0.1, 0.9, 0.99, 1e-8, 1.5, 0.01 if decays else 0.0)
    w, g, m, v, rates = there(weight, gradient, first, second**2, np.array([0.1, 1.5, 0.01], np.float32))
    KERNELS.adam_all(w, None, g, (m, v), rates, (0.9, 0.99), 1e-8, decays)
    for tensor, exact in zip((w, m, v), np.split(long[0], 3)):
        assert_close(tensor, exact)


def test_adam_leaves_a_copy_in_bfloat16():
    w, g, m, rates = there(*normal(3, 100), np.array([0.1, 1.5, 0.01], np.float32))
    shadow = torch.full((100,), torch.nan, dtype=torch.bfloat16, device=DEVICE)
    KERNELS.adam_all(w, shadow, g, (m, m**2), rates, (0.9, 0.99), 1e-8, True)
    assert ((shadow - w).abs() < 2**-7 * w.abs()).all()  # the interpreter cuts off bits, where a GPU rounds


def kept_places(n, layer, rate):
    """Which of n numbers stay: by a 32-bit hash of their places, keyed by the layer's hash."""
    x = np.arange(n, dtype=np.uint32) ^ random.hash64(np.uint64([layer]), *KEYS).astype(np.uint32)
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
    return (x ^ (x >> 16)) < keep_below(rate)


@pytest.mark.parametrize("layer", [0, 3])
def test_relu_dropout(layer):
    rate, (x, gradient) = 0.3, normal(2, 30, 40)  # two programs
    passed = kept_places(x.size, layer, rate).reshape(x.shape) & (x > 0)
    keys, x, gradient = there(KEYS.view(np.int64), x, gradient)
    out = KERNELS.relu_dropout(x, keys, layer, rate)
    assert_close(out, np.where(passed, x.cpu() / (1 - rate), 0), 1e-6)
    by_x = KERNELS.relu_dropout_backward(out, gradient, rate)
    assert_close(by_x, np.where(passed, gradient.cpu() / (1 - rate), 0), 1e-6)
