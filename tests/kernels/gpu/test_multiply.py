"""Products with matrices that are drawn or hashed on the fly."""

from decimal import Decimal

import numpy as np
import pytest
import torch

from sketchnet import random
from sketchnet.kernels import backend
from tests.kernels.gpu.tensors import DEVICE, KERNELS, assert_close, make_rows, there

REFERENCE = backend("reference")
SEED, STREAM = 2**64 - 5, 3
WIDE = 2**62 + 12_345  # columns


def product(rows, drawn, k):
    """scale * (csr @ P), given the rows of P that the entries meet, with a scale of one half."""
    (indptr, indices, values), exact = rows, np.empty((len(rows[0]) - 1, k))
    REFERENCE.multiply_panel(indptr, np.arange(len(indices)), values, drawn, 0.5, exact, slice(0, k))
    return exact


@pytest.mark.parametrize(("k", "ids", "d"), [(33, np.int32, 5000), (1030, np.int64, WIDE)])  # one tile of columns, two
def test_normals_and_signs(k, ids, d):
    rows = make_rows([3, 0, 2], d, ids, begin=5)
    drawn = np.empty((len(rows[1]), -(-k // 4) * 4), np.float32)
    out = torch.full((3, k), torch.nan, device=DEVICE)
    KERNELS.multiply_normals(*there(*rows), SEED, STREAM, 0.5, out)
    REFERENCE.draw_normals(SEED, STREAM, rows[1], 0, drawn)
    assert_close(out, product(rows, drawn, k))
    KERNELS.multiply_signs(*there(*rows), SEED, STREAM, 3, 0.5, out)
    REFERENCE.draw_signs(SEED, STREAM, rows[1], 0, 3, drawn)
    assert_close(out, product(rows, drawn, k), 1e-6)


def test_normals_of_every_radius():
    """Near zero the radius is a series, elsewhere a logarithm."""
    ids = np.arange(40)
    drawn, out = np.empty((1, 4000)), torch.empty(1, 4000, device=DEVICE)
    for seed in range(2):
        KERNELS.multiply_normals(*there(np.array([0, 1]), ids[:1], np.ones(1, np.float32)), seed, STREAM, 1.0, out)
        REFERENCE.draw_normals(seed, STREAM, ids[:1], 0, drawn)
        assert_close(out, drawn, 5e-6)
        radius = np.hypot(drawn[:, ::2], drawn[:, 1::2])
        assert radius.min() < 0.1
        assert radius.max() > 3.5


@pytest.mark.parametrize(("k", "density"), [(33, "0.2"), (1030, "0.002")])
def test_sparse_signs(k, density):
    rows = make_rows([3, 0, 2], WIDE, begin=5)
    thresholds = random.skip_thresholds(Decimal(density), k)
    out = torch.full((3, k), torch.nan, device=DEVICE)
    KERNELS.multiply_skips(*there(*rows), SEED, STREAM, *there(thresholds.view(np.int64)), 0.5, out)
    exact, (indptr, indices, values) = np.empty((3, k)), rows
    drawn = REFERENCE.draw_skips(SEED, STREAM, indices, k, thresholds, k * float(density))
    assert len(drawn[1]) > 3
    REFERENCE.multiply_sparse(indptr, np.arange(len(indices)), values, *drawn, 0.5, exact)
    assert_close(out, exact, 1e-6)


@pytest.mark.parametrize(("k", "ids", "d"), [(5, np.int32, 5000), (64, np.int64, WIDE)])
def test_count_sketch(k, ids, d):
    """Rows short and long, whose sums are made in two ways; many entries share a bucket."""
    rows, key = make_rows([30, 0, 1, 40, 32], d, ids, begin=7), random.hash_key(1, 4)
    out, exact = torch.full((5, k), torch.nan, device=DEVICE), np.empty((5, k))
    KERNELS.count_sketch(*there(*rows), key, out)
    REFERENCE.count_sketch(*rows, key, exact)
    assert_close(out, exact)
    whole = *rows[:2], np.round(rows[2])  # what bfloat16 holds exactly
    short = torch.full((5, k), torch.nan, device=DEVICE, dtype=torch.bfloat16)
    KERNELS.count_sketch(*there(*whole), key, short)
    REFERENCE.count_sketch(*whole, key, exact)
    assert_close(short, exact, 0)


def test_count_sketch_of_several_rows_a_program(monkeypatch):
    monkeypatch.setattr("sketchnet.kernels.gpu.multiply._PROGRAMS", 1)
    rows, key = make_rows([3, 0, 40, 2, 5], 100), random.hash_key(1, 4)
    out, exact = torch.full((5, 7), torch.nan, device=DEVICE), np.empty((5, 7))
    KERNELS.count_sketch(*there(*rows), key, out)
    REFERENCE.count_sketch(*rows, key, exact)
    assert_close(out, exact)
