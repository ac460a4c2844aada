"""Kernels of the learnable layer against the plain reference: as near to it as plain arithmetic of the same width."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from sketchnet import random
from sketchnet.kernels import backend
from sketchnet.kernels.cpu import threads
from tests.kernels.test_kernels import random_csr
from tests.statistics import assert_mean, sample_size

CPU, REFERENCE = backend("cpu"), backend("reference")

every_width = pytest.mark.parametrize(("dtype", "index"), [(np.float32, np.int32), (np.float64, np.int64)])


@dataclass(frozen=True)
class Case:
    """A batch of n rows, its columns numbered; weights for its columns and for a table; gradients and their state."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    local: np.ndarray
    starts: np.ndarray
    codes: np.ndarray
    weights: np.ndarray
    bias: np.ndarray
    table: np.ndarray
    late: np.ndarray  # weights, velocities, and the step that the row is at
    moments: np.ndarray  # weights, and their moments
    powers: np.ndarray
    rows: np.ndarray
    by_output: np.ndarray
    by_row: np.ndarray

    def to(self, dtype):
        floats = {name: x.astype(dtype) for name, x in vars(self).items() if x.dtype.kind == "f" and name != "powers"}
        return replace(self, **floats)

    @property
    def owners(self):
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    @property
    def dense(self):
        """The batch in its own numbering."""
        x = np.zeros((len(self.indptr) - 1, len(self.starts) - 1), self.values.dtype)
        np.add.at(x, (self.owners, self.local), self.values)
        return x

    @property
    def pattern(self):
        """The columns' weights, each at its output."""
        w = np.zeros((len(self.starts) - 1, self.by_output.shape[1]), self.weights.dtype)
        np.add.at(w, (self.slots, self.outputs), self.weights)
        return w

    @property
    def outputs(self):
        return np.where(self.codes < 0, ~self.codes, self.codes)

    @property
    def slots(self):
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def used(self):
        """The table's rows of the batch's columns."""
        columns = np.zeros(len(self.starts) - 1, np.int64)
        columns[self.local] = self.indices
        return self.table[columns]


def make_case(rng, n, d, k, dtype, index, per_row=None):
    csr = random_csr(rng, n, d, dtype, index)
    if per_row:
        csr = (
            7 + per_row * np.arange(n + 1, dtype=index),
            rng.integers(0, d, n * per_row).astype(index),
            rng.standard_normal(n * per_row).astype(dtype),
        )
    columns, local = REFERENCE.number_columns(csr[1])
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 5, len(columns)))])
    rows = rng.permutation(d)[: rng.integers(0, d + 1) if per_row is None else d]
    normal = lambda *shape: rng.standard_normal(shape).astype(dtype)  # noqa: E731
    step = np.array([[1 - 0.1 * 0.01, -0.1 * 0.9], [0.01, 0.9]])
    return Case(
        *csr, local.astype(np.int32), starts, rng.integers(-k, k, starts[-1], np.int32), normal(starts[-1]), normal(k),
        normal(d, k), np.hstack([normal(d, 2 * k), rng.integers(0, 20, (d, 1)).astype(dtype)]),
        np.hstack([normal(d, 2 * k), normal(d, k) ** 2]),
        np.array([np.linalg.matrix_power(step, m).ravel() for m in range(21)]), rows, normal(n, k),
        normal(len(rows), k),
    )  # fmt: skip


def into(function, *names):
    """A kernel that fills its last argument, as a function that returns it."""

    def call(kernels, case):
        out = np.full([len(case.indptr) - 1, case.by_output.shape[1]], np.nan, case.values.dtype)
        getattr(kernels, function)(*(getattr(case, name) for name in names), out)
        return (out,)

    return call


def returned(function, *names):
    def call(kernels, case):
        arguments = [getattr(case, name) if isinstance(name, str) else name(case) for name in names]
        return (getattr(kernels, function)(*arguments),)

    return call


def changed(function, table, *rest):
    """A kernel that changes its first argument, as a function that returns it, and what else the kernel returns."""

    def call(kernels, case):
        array = getattr(case, table).copy()
        arguments = [getattr(case, name) if isinstance(name, str) else name for name in rest]
        found = getattr(kernels, function)(array, case.rows, *arguments)
        return (array,) if found is None else (array, found)

    return call


CSR, NUMBERED = ("indptr", "indices", "values"), ("indptr", "local", "values")
# Each kernel as it is called, and the same in the simplest dense arithmetic.
PRODUCTS = {
    "scatter_forward": (
        into("scatter_forward", *NUMBERED, "starts", "codes", "weights", "bias"),
        lambda c: c.dense @ c.pattern + c.bias,
    ),
    "scatter_backward": (
        returned("scatter_backward", *NUMBERED, "starts", "codes", "by_output"),
        lambda c: (c.dense.T @ c.by_output)[c.slots, c.outputs],
    ),
    "scatter_values": (
        returned("scatter_values", "indptr", "local", "starts", "codes", "weights", "by_output"),
        lambda c: (c.by_output @ c.pattern.T)[c.owners, c.local],
    ),
    "multiply_table": (into("multiply_table", *CSR, "table"), lambda c: c.dense @ c.used),
    "multiply_transposed": (
        returned("multiply_transposed", *NUMBERED, lambda c: len(c.starts) - 1, "by_output"),
        lambda c: c.dense.T @ c.by_output,
    ),
}
UPDATES = {
    "momentum_read": changed("momentum_read", "late", 20, "powers"),
    "momentum_step": changed("momentum_step", "late", "by_row", 20, 0.1, 0.9, 0.01),
    "adam_step": changed("adam_step", "moments", "by_row", 0.01, 0.9, 0.999, 1e-8, 1 / np.sqrt(1 - 0.999**3), 0.02),
}


def assert_as_good_as_plain(ours, plain, exact, dtype):
    """At most twice the error of plain arithmetic in the same width, and what two roundings of size ten may add."""
    assert ours.shape == exact.shape
    assert ours.dtype == dtype
    allowed = 2 * np.abs(plain - exact).max(initial=0) + 20 * np.finfo(dtype).eps
    assert np.abs(ours - exact).max(initial=0) <= allowed


def shapes(seed):
    rng = np.random.default_rng(seed)
    return rng, int(rng.integers(0, 60)), int(rng.integers(1, 80)), int(rng.integers(1, 24))


@every_width
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_and_their_gradients(name, dtype, index):
    """Over random shapes: repeated and unsorted ids, empty rows, empty batches, offsets that begin at 5."""
    call, plain = PRODUCTS[name]
    for seed in range(25):
        case = make_case(*shapes(seed), dtype, index)
        (ours,), (exact,) = call(CPU, case), call(REFERENCE, case.to(np.float64))
        assert_as_good_as_plain(ours, plain(case), exact, dtype)


@every_width
@pytest.mark.parametrize("name", UPDATES)
def test_updates_of_rows(name, dtype, index):
    for seed in range(25):
        case = make_case(*shapes(seed), dtype, index)
        before = case.moments if name == "adam_step" else case.late
        others = np.setdiff1d(np.arange(len(before)), case.rows)
        ours = UPDATES[name](CPU, case)
        for array, plain, exact in zip(
            ours, UPDATES[name](REFERENCE, case), UPDATES[name](REFERENCE, case.to(np.float64))
        ):
            assert_as_good_as_plain(array, plain, exact, dtype)
        assert np.array_equal(ours[0][others], before[others])  # rows that were not named stay as they are
        assert name == "adam_step" or (ours[0][case.rows, -1] == 20).all()


@every_width
@pytest.mark.parametrize("name", [name for name in PRODUCTS if name.startswith("scatter")])
def test_one_weight_a_column(name, dtype, index):
    """`starts` need not be given where column u has the weight u."""
    for seed in range(10):
        case = make_case(*shapes(seed), dtype, index)
        n = len(case.starts) - 1
        rng = np.random.default_rng(seed)
        k = case.by_output.shape[1]
        one = replace(case, starts=np.arange(n + 1), codes=rng.integers(-k, k, n, np.int32))
        one = replace(one, weights=rng.standard_normal(n).astype(dtype))
        (short,), (long,) = PRODUCTS[name][0](CPU, replace(one, starts=None)), PRODUCTS[name][0](CPU, one)
        assert short.tobytes() == long.tobytes()
        (plain,), (plain_long,) = (PRODUCTS[name][0](REFERENCE, x) for x in (replace(one, starts=None), one))
        assert np.array_equal(plain, plain_long)


@pytest.mark.parametrize("name", [*PRODUCTS, *UPDATES])
def test_results_do_not_depend_on_the_number_of_threads(name, monkeypatch):
    """To the last bit, and even where the work is too small to be worth splitting."""
    call = PRODUCTS[name][0] if name in PRODUCTS else UPDATES[name]
    case = make_case(np.random.default_rng(0), 300, 1000, 8, np.float32, np.int32, per_row=30)
    monkeypatch.setattr(threads, "_SMALL", 1)
    results = []
    for number in ("1", "2", "5"):
        monkeypatch.setenv("SKETCHNET_THREADS", number)
        results.append(call(CPU, case))
    for other in results[1:]:
        for ours, theirs in zip(results[0], other):
            assert ours.tobytes() == theirs.tobytes()


@every_width
def test_gather(dtype, index, monkeypatch):
    rng = np.random.default_rng(0)
    table = rng.standard_normal((1000, 5)).astype(dtype)
    monkeypatch.setattr(threads, "_SMALL", 1)
    for n in (0, 1, 7, 20_000):
        rows = rng.integers(0, 1000, n).astype(index)
        for number in ("1", "2"):
            monkeypatch.setenv("SKETCHNET_THREADS", number)
            assert CPU.gather(table, rows, 3).dtype == dtype
            assert np.array_equal(CPU.gather(table, rows, 3), REFERENCE.gather(table, rows, 3))


@every_width
def test_max_abs(dtype, index):
    for seed in range(10):
        case = make_case(*shapes(seed), dtype, index)
        ours = np.abs(case.table[:, 0]) / 2
        theirs = ours.copy()
        CPU.max_abs(case.indices, case.values, ours)
        REFERENCE.max_abs(case.indices, case.values, theirs)
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize(
    "ids",
    [
        np.empty(0, np.int64),
        np.array([5], np.int32),
        np.full(1000, 2**31 - 1, np.int32),
        np.random.default_rng(0).integers(0, 50, 3000).astype(np.int32),
        np.random.default_rng(1).integers(0, 2**63 - 1, 5000, endpoint=True),
        np.array([2**63 - 1, 0, 2**32, 2**63 - 1, 2**31, 2**32, 0]),
        np.arange(2000) << 50,  # ids that differ in their high bits only
        np.arange(5000)[::-1] * 2**20,
    ],
    ids=["none", "one", "same", "few", "any", "largest", "high bits", "falling"],
)
def test_number_columns(ids):
    ids.flags.writeable = False  # as from a mapped file
    columns, local = CPU.number_columns(ids)
    expected_columns, expected_local = REFERENCE.number_columns(ids)
    assert columns.dtype == np.int64
    assert np.array_equal(columns, expected_columns)
    assert np.array_equal(local, expected_local)
    assert np.array_equal(columns[local], ids)


@every_width
@pytest.mark.parametrize("rate", [0.0, 0.3, 0.999])
def test_dropping_entries(rate, dtype, index):
    for seed in range(10):
        case = make_case(*shapes(seed), dtype, index)
        csr, key = (case.indptr, case.indices, case.values), random.hash_key(seed, random.STREAM_FEATURE_DROPOUT)
        ours = CPU.drop_entries(*csr, rate, key)
        for array, again, expected in zip(
            ours, CPU.drop_entries(*csr, rate, key), REFERENCE.drop_entries(*csr, rate, key)
        ):
            assert np.array_equal(array, expected)
            assert np.array_equal(array, again)
        assert ours[1].dtype == index
        assert ours[2].dtype == dtype
        if rate == 0:
            assert np.array_equal(ours[2], case.values)


def kept(n, rate, row):
    """Which of n entries a step keeps, as 0 and 1."""
    key = random.hash_key(7, random.STREAM_FEATURE_DROPOUT, row)
    _, indices, values = CPU.drop_entries(np.array([0, n]), np.arange(n), np.ones(n, np.float32), rate, key)
    assert (values == np.float32(1 / (1 - rate))).all()
    found = np.zeros(n)
    found[indices] = 1
    return found


def check_share_kept(rate, stated):
    """Entries are kept with probability 1 - rate, whatever their neighbours and other steps do."""
    p = 1 - stated
    n = sample_size(p * (1 - p), 0.01)
    first, second = kept(n, rate, 0), kept(n, rate, 1)
    assert_mean(first, p, p * (1 - p))
    for products in (first[1:] * first[:-1], first * second):
        assert_mean(products, p**2, p**2 * (1 - p**2))


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_the_share_of_entries_that_is_kept(rate):
    check_share_kept(rate, rate)
    with pytest.raises(AssertionError, match="is not"):
        check_share_kept(rate + 0.01, rate)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout_mask(rate, monkeypatch):
    key = random.hash_key(3, random.STREAM_FEATURE_DROPOUT)
    mask = backend("cpu").dropout_mask(200_001, rate, key)
    np.testing.assert_array_equal(mask, backend("reference").dropout_mask(200_001, rate, key))
    monkeypatch.setenv("SKETCHNET_THREADS", "1")
    np.testing.assert_array_equal(mask, backend("cpu").dropout_mask(200_001, rate, key))
    # six standard deviations: fails once in 10**9 if the law is right
    assert abs(np.count_nonzero(mask) - 200_001 * (1 - rate)) < 6.2 * (200_001 * rate * (1 - rate)) ** 0.5
