"""Same seed, same P: whole = any slicing = any thread count = any budget = another process."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from sketchnet.data import CsrBatch
from sketchnet.errors import InputError
from sketchnet.projection.slicing import plan_panels, plan_rows
from tests.projection.schemes import LAWS, every_law

WIDTHS = [2**16 + 1, 2**31 + 1, 2**40]
widths = pytest.mark.parametrize("d", WIDTHS)
K = 100


def wide_rows(d: int, n: int = 200) -> sparse.csr_array:
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 60, n)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    ids = rng.integers(0, d, lengths.sum())
    ids[::7] = rng.integers(0, 50, len(ids[::7]))  # some columns are common
    ids[-1] = d - 1
    return sparse.csr_array((rng.standard_normal(lengths.sum()).astype(np.float32), ids, indptr), shape=(n, d))


def fingerprint(law: str, d: int) -> str:
    operator = LAWS[law](K, d).sample(d, 7)
    block = operator.block([0, 5, d // 2, d - 1])
    return hashlib.sha256(block.tobytes() + operator.apply(wide_rows(d)).tobytes()).hexdigest()


@every_law
@widths
def test_blocks_are_slices_of_the_whole(law, d):
    operator = LAWS[law](K, d).sample(d, 7)
    rows = np.unique(wide_rows(d).indices)[:50]
    whole = operator.block(rows)
    assert np.array_equal(operator.block(rows[10:20]), whole[10:20])
    assert np.array_equal(operator.block(rows[::-3], [3, 99, 7]), whole[::-3][:, [3, 99, 7]])
    for columns in (slice(0, 1), slice(1, 3), slice(13, 50), slice(98, 100)):
        assert np.array_equal(operator.block(rows, columns), whole[:, columns])
    assert operator.block([], slice(0, 5)).shape == (0, 5)


@every_law
@widths
def test_products_do_not_depend_on_slices_budgets_or_row_order(law, d):
    operator = LAWS[law](K, d).sample(d, 7)
    X = wide_rows(d)
    whole = operator.apply(X)
    exact = np.zeros((len(whole), K))
    ids, local = np.unique(X.indices, return_inverse=True)
    exact = sparse.csr_array((X.data, local, X.indptr), shape=(len(whole), len(ids))) @ operator.block(ids, dtype=float)
    assert np.abs(whole - exact).max() < 1e-4
    assert np.array_equal(np.vstack([operator.apply(X[:7]), operator.apply(X[7:90]), operator.apply(X[90:])]), whole)
    order = np.random.default_rng(0).permutation(len(whole))
    assert np.array_equal(operator.apply(X[order]), whole[order])
    for memory in ("40KB", "200 KiB", 10**6, "4GiB"):
        assert np.array_equal(operator.apply(X, memory=memory), whole)


@every_law
def test_products_do_not_depend_on_threads(law, monkeypatch):
    X = wide_rows(2**31 + 1, 2000)
    operator = LAWS[law](K, X.shape[1]).sample(X.shape[1], 7)
    results = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("SKETCHNET_THREADS", threads)
        results.append(operator.apply(X))
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_another_process_draws_the_same():
    code = "\n".join(
        [
            "from tests.projection.test_slicing import *",
            "for law in LAWS:",
            "    for d in WIDTHS: print(fingerprint(law, d))",
        ]
    )
    env = {**os.environ, "SKETCHNET_THREADS": "3"}
    there = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert there.stdout.split() == [fingerprint(law, d) for law in LAWS for d in WIDTHS]


@every_law
def test_seeds_differ(law):
    d = WIDTHS[0]
    blocks = [LAWS[law](K, d).sample(d, seed).block(range(200)) for seed in (0, 1, 2**32, 2**64 - 1)]
    for i in range(4):
        for j in range(i):
            assert np.mean(blocks[i] != blocks[j]) > 1e-3


def tiles(plan, n, k):
    """How often each entry of the output is covered."""
    cover = np.zeros((n, k), int)
    for unit in plan.units:
        cover[unit.rows, unit.columns] += 1
    return cover


@pytest.mark.parametrize("budget", [7_000, 100_000, 10**9])
@pytest.mark.parametrize("d", [40, 2**40])
def test_plans_cover_the_output_once(budget, d):
    indptr = wide_rows(2**40).indptr
    assert (tiles(plan_panels(indptr, d, 100, budget), 200, 100) == 1).all()
    for bytes_per_column in (0, 24):
        assert (tiles(plan_rows(indptr, d, 100, bytes_per_column, budget), 200, 100) == 1).all()


def test_a_row_too_long_for_the_budget_is_an_error():
    X = sparse.csr_array(np.ones((1, 5000), np.float32))
    with pytest.raises(
        InputError, match="a row has 5000 entries, too many for a memory budget of 98 KiB; at least 547 KiB"
    ):
        LAWS["gaussian"](K, 5000).sample(5000, 0).apply(X, memory=100_000)


def test_a_batch_of_views_is_projected_without_copies():
    X = wide_rows(2**40)
    operator = LAWS["count_sketch"](K, 2**40).sample(2**40, 7)
    batch = CsrBatch(X.indptr, X.indices, X.data, 2**40)
    part = batch.rows(slice(50, 120))
    assert part.indices.base is not None
    assert np.array_equal(operator.apply(part), operator.apply(X)[50:120])
