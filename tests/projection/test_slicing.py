"""Same seed, same P: whole = any slicing = any thread count = any budget = another process."""

import hashlib
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse

from sketchnet.data import CsrBatch
from sketchnet.errors import InputError
from sketchnet.projection import SRHT, CountSketch
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
        assert np.array_equal(operator.block(rows=rows, cols=columns), whole[:, columns])
    assert operator.block([], slice(0, 5)).shape == (0, 5)


def test_blocks_of_the_sparse_form_are_drawn_in_pieces_that_fit(monkeypatch):
    operator = SRHT(K, form="sparse", density=0.01).sample(10_000, 7)
    whole, widths, picks = operator.block(range(50), range(3, 90)), [], type(operator).picks
    monkeypatch.setattr("sketchnet.projection.srht.DEFAULT_BUDGET", 100_000)
    monkeypatch.setattr(
        type(operator),
        "picks",
        lambda self, span, kernels: widths.append(span.stop - span.start) or picks(self, span, kernels),
    )
    assert np.array_equal(operator.block(range(50), range(3, 90)), whole)
    assert sum(widths) == 87
    assert max(widths) < 15


@pytest.mark.parametrize("d", [1000, 2**63])
def test_ids_up_to_the_last_by_slices_and_ranges(d):
    operator = CountSketch(8).sample(d, 0)
    for ids in (
        range(d - 3, d),
        range(d - 1, d - 6, -2),
        range(0, d, d // 3),
        range(d - 1, d, 2**70),
        range(5, 5),
        range(9, 5),
    ):
        assert np.array_equal(operator.block(ids), operator.block(np.array(ids, np.int64)))
    assert np.array_equal(operator.block(slice(d - 2, d)), operator.block([d - 2, d - 1]))
    assert np.array_equal(operator.block(slice(-2, None)), operator.block([d - 2, d - 1]))
    for ids in (range(d - 1, d + 1), range(1, -2, -1), [d - 1, d]):
        with pytest.raises(InputError, match="row ids"):
            operator.block(ids)
    with pytest.raises(InputError, match="9223372036854775808 row ids are too many for one block"):
        CountSketch(8).sample(2**63, 0).block(slice(None))


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
def test_products_of_long_rows_do_not_depend_on_slices_or_budgets(law):
    """Rows so full that SRHT transforms them, and P is drawn for all columns at once."""
    d = 1000
    X = sparse.random_array((300, d), density=0.5, format="csr", rng=np.random.default_rng(0)).astype(np.float32)
    operator = LAWS[law](300, d).sample(d, 7)
    whole = operator.apply(X)
    assert np.abs(whole - X @ operator.block(slice(None), dtype=np.float64)).max() < 1e-3
    assert np.array_equal(np.vstack([operator.apply(X[:7]), operator.apply(X[7:])]), whole)
    for memory in (900_000, 2 * 10**6, 10**9):
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


@pytest.mark.parametrize("budget", [9_000, 100_000, 10**9])
@pytest.mark.parametrize("d", [40, 2**40])
def test_plans_cover_the_output_once(budget, d):
    indptr = wide_rows(2**40).indptr
    assert (tiles(plan_panels(indptr, d, 100, budget), 200, 100) == 1).all()
    for bytes_per_column in (0, 24):
        assert (tiles(plan_rows(indptr, d, 100, bytes_per_column, budget), 200, 100) == 1).all()


def test_row_offsets_of_32_bits_are_not_converted_again_and_again():
    """Planning for ten million rows takes a moment, not a minute."""
    indptr = np.arange(10_000_001, dtype=np.int32) * 30
    start = time.perf_counter()
    assert len(plan_rows(indptr, 10**6, 1000, 0, 10**9).units) > 500
    assert time.perf_counter() - start < 2


def test_a_very_long_row_is_no_trouble_where_nothing_is_stored():
    X = sparse.csr_array(np.ones((1, 5_000_000), np.float32))
    for law in ("count_sketch", "li"):
        assert LAWS[law](10, X.shape[1]).sample(X.shape[1], 0).apply(X, memory="2GiB").shape == (1, 10)


def test_ids_up_to_the_end_of_64_bits():
    """After kernels were compiled for narrower data, and at the edge of what an id can be."""
    for d in (1000, 2**40, 2**62 + 1, 2**63):
        batch = CsrBatch(np.array([0, 2]), np.array([d - 1, 5]), np.ones(2, np.float32), d)
        for law in LAWS.values():
            operator = law(20, d).sample(d, 7)
            expected = operator.block([d - 1, 5], dtype=float, backend="reference").sum(axis=0)
            assert np.allclose(operator.apply(batch), expected, atol=1e-5)
        assert SRHT(1).sample(d, 0).apply(batch).shape == (1, 1)


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (SRHT(4, form="sparse", density=0.5), "a column of S has 2097152 non-zeros, too many for .* 131072 KiB"),
        (SRHT(1000), "transforming a row of 4194304 columns needs a memory budget of at least 65536 KiB"),
    ],
)
def test_srht_that_cannot_fit_its_budget_says_so(law, message):
    d = 2**22
    n = 200_000 if law.form == "subsampled" else 1  # a row to transform; a row that needs no more than S
    X = CsrBatch(np.array([0, n]), np.arange(n), np.ones(n, np.float32), d)
    with pytest.raises(InputError, match=message):
        law.sample(d, 0).apply(X, memory="1MB")


def test_a_row_too_long_for_the_budget_is_an_error():
    X = sparse.csr_array(np.ones((1, 5000), np.float32))
    with pytest.raises(
        InputError, match="a row has 5000 entries, too many for a memory budget of 98 KiB; at least 704 KiB are needed"
    ):
        LAWS["gaussian"](K, 5000).sample(5000, 0).apply(X, memory=100_000)
    assert LAWS["gaussian"](K, 5000).sample(5000, 0).apply(X, memory="704KiB").shape == (1, K)


def test_a_batch_of_views_is_projected_without_copies():
    X = wide_rows(2**40)
    operator = LAWS["count_sketch"](K, 2**40).sample(2**40, 7)
    batch = CsrBatch(X.indptr, X.indices, X.data, 2**40)
    part = batch.rows(slice(50, 120))
    assert part.indices.base is not None
    assert np.array_equal(operator.apply(part), operator.apply(X)[50:120])
