"""What goes in and what comes out: formats, dtypes, odd rows, and bad input with a clear error."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse

from sketchnet.data import CsrBatch, open_shards
from sketchnet.errors import InputError, SketchnetError
from sketchnet.memory import anonymous_memory
from sketchnet.projection import SRHT, Achlioptas, CountSketch, Gaussian, Li, make_scheme
from tests.data.test_shards import write
from tests.projection.schemes import LAWS, every_law

D, K = 300, 40


def operator_of(law):
    return LAWS[law](K, D).sample(D, 3)


def data(dtype=np.float32):
    X = sparse.random_array((60, D), density=0.1, format="csr", rng=np.random.default_rng(0))
    return (X * 100).astype(dtype)


@every_law
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr"])
def test_sparse_formats_give_the_same(law, form):
    X = data()
    assert np.allclose(operator_of(law).apply(X.asformat(form)), operator_of(law).apply(X), rtol=1e-4, atol=1e-2)


def shards(folder, *parts):
    """A data set on disk; the first of its shards happens to be narrower."""
    batches = [CsrBatch(part.indptr, part.indices, part.data, D) for part in parts]
    width = int(batches[0].indices.max()) + 1
    return write(folder, [replace(batches[0], n_columns=width), *batches[1:]])


def narrow(X):
    """Without the last columns of the first rows."""
    X = X.tolil()
    X[:25, 200:] = 0
    return X.tocsr()


@every_law
def test_data_sets_give_what_their_rows_give(law, tmp_path):
    X, operator = narrow(data()), operator_of(law)
    folder = shards(tmp_path / "x", X[:25], X[25:26], X[26:26], X[26:])
    for given in (open_shards(folder), folder, str(folder), open_shards(folder)[:]):
        assert np.array_equal(operator.apply(given), operator.apply(X))
        assert np.array_equal(operator.apply(given, memory="60KB"), operator.apply(X))
        assert operator.apply(given, dtype=np.float64).dtype == np.float64
    if operator.sparse:
        ours = operator.apply(folder, sparse_output=True)
        assert (ours != operator.apply(X, sparse_output=True)).nnz == 0


def test_data_sets_with_shards_of_different_types_and_without_rows(tmp_path):
    X, operator = narrow(data()), operator_of("li")
    mixed = shards(tmp_path / "mixed", X[:25], X[25:].astype(np.float64))
    assert operator.apply(mixed).dtype == np.float64
    empty = write(tmp_path / "empty", [CsrBatch(np.zeros(1, int), np.empty(0, int), np.empty(0, np.float32), D)])
    assert operator.apply(empty).shape == operator.apply(empty, sparse_output=True).shape == (0, K)


def test_bad_values_of_data_sets_are_found_by_their_rows(tmp_path):
    X = data()
    X.data[X.indptr[40]] = np.nan
    with pytest.raises(InputError, match="NaN or infinity: nan in row 40, column"):
        operator_of("li").apply(shards(tmp_path / "x", X[:25], X[25:]))
    with pytest.raises(InputError, match="X has 300 columns, but the projection was made for 301"):
        Li(K).sample(D + 1, 0).apply(tmp_path / "x")
    with pytest.raises(InputError, match="there is no folder nowhere"):
        operator_of("li").apply("nowhere")


@every_law
def test_tensors(law):
    X, operator = data(), operator_of(law)
    tensor = torch.from_numpy(X.toarray())
    for given in (tensor.to_sparse_csr(), tensor.to_sparse_coo()):
        assert np.array_equal(operator.apply(given), operator.apply(X))
    assert np.array_equal(operator.apply(tensor), operator.apply(X.toarray()))


@every_law
def test_dense_equals_sparse(law):
    X = data()
    dense, exact = X.toarray(), X.toarray().astype(float) @ operator_of(law).block(slice(None), dtype=np.float64)
    for array in (dense, np.asfortranarray(dense), dense.tolist(), np.repeat(dense, 2, axis=0)[::2]):
        assert np.allclose(operator_of(law).apply(array), exact, rtol=1e-4, atol=1e-2)
    assert np.allclose(operator_of(law).apply(dense, memory="20KB"), exact, rtol=1e-4, atol=1e-2)


@every_law
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int16, np.int64, np.float16, np.float32, np.float64, ">f4"])
def test_dtypes(law, dtype):
    dense = data().toarray().astype(dtype)
    exact = dense.astype(np.float64) @ operator_of(law).block(slice(None), dtype=np.float64)
    scipy_takes_it = np.dtype(dtype).isnative and dtype != np.float16
    for given in (dense, sparse.csr_array(dense)) if scipy_takes_it else (dense,):
        result = operator_of(law).apply(given)
        assert result.dtype == (np.float32 if np.dtype(dtype).name in ("float16", "float32") else np.float64)
        assert np.allclose(result, exact, rtol=1e-4, atol=1e-2)
    assert operator_of(law).apply(dense, dtype=np.float64).dtype == np.float64


@every_law
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_index_widths(law, index):
    X = data()
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    assert np.array_equal(operator_of(law).apply(X), operator_of(law).apply(data()))


@every_law
def test_float64_is_more_exact_than_float32(law):
    X = data(np.float64)
    exact = X @ operator_of(law).block(slice(None), dtype=np.float64)
    assert np.abs(operator_of(law).apply(X) - exact).max() < 1e-10


@every_law
def test_empty_and_zero_rows_give_zeros(law):
    X = sparse.csr_array(([0.0, 2.0], [5, 7], [0, 0, 1, 1, 2, 2]), shape=(5, D))
    for given in (X, X.toarray()):
        result = operator_of(law).apply(given)
        assert not result[[0, 1, 2, 4]].any()
        assert result.shape == (5, K)
    assert operator_of(law).apply(sparse.csr_array((0, D))).shape == (0, K)
    assert operator_of(law).apply(np.empty((0, D))).shape == (0, K)


@every_law
def test_duplicates_add_up_and_order_does_not_matter(law):
    X = sparse.csr_array(([1.0, 2.0, 4.0], [9, 5, 9], [0, 3]), shape=(1, D))
    assert not X.has_canonical_format
    tidy = sparse.csr_array(([2.0, 5.0], [5, 9], [0, 2]), shape=(1, D))
    assert np.allclose(operator_of(law).apply(X), operator_of(law).apply(tidy))
    assert X.indices.tolist() == [9, 5, 9]  # left as it was


@every_law
def test_read_only_memory_maps(law, tmp_path):
    X = data()
    for name in ("indptr", "indices", "data"):
        np.save(tmp_path / f"{name}.npy", getattr(X, name))
    parts = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("data", "indices", "indptr")]
    mapped = sparse.csr_array(tuple(parts), shape=X.shape)
    assert np.array_equal(operator_of(law).apply(mapped), operator_of(law).apply(X))
    dense = np.asarray(X.toarray())
    dense.flags.writeable = False
    assert np.allclose(operator_of(law).apply(dense), operator_of(law).apply(X), rtol=1e-4, atol=1e-2)


@every_law
def test_out_is_filled(law):
    out = np.full((60, K), np.nan, np.float64)
    assert operator_of(law).apply(data(), out=out) is out
    assert np.array_equal(out, operator_of(law).apply(data(), dtype=np.float64))
    with pytest.raises(InputError, match=r"out has shape \(60, 41\); the result has shape \(60, 40\)"):
        operator_of(law).apply(data(), out=np.empty((60, 41), np.float32))


@pytest.mark.parametrize("law", ["li", "li-5", "count_sketch"])
def test_sparse_output(law):
    for X in (data(), data(np.float64), data().toarray(), sparse.csr_array((3, D), dtype=np.float32)):
        result = operator_of(law).apply(X, sparse_output=True)
        assert sparse.issparse(result)
        assert result.format == "csr"
        assert result.dtype == X.dtype
        assert np.allclose(result.toarray(), operator_of(law).apply(X), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("law", ["gaussian", "achlioptas", "srht"])
def test_sparse_output_of_dense_schemes_is_an_error(law):
    with pytest.raises(InputError, match="sparse_output needs a sparse scheme"):
        operator_of(law).apply(data(), sparse_output=True)


@every_law
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_values_are_errors(law, bad):
    X = data()
    row, column = 17, int(X.indices[X.indptr[17]])
    X.data[X.indptr[17]] = bad
    for given in (X, X.toarray()):
        with pytest.raises(InputError, match=f"NaN or infinity: {bad} in row {row}, column {column}"):
            operator_of(law).apply(given)


@every_law
@pytest.mark.parametrize("bad", [-1, D, 2**31 - 1])
def test_column_ids_out_of_range_are_errors(law, bad):
    X = data()
    X.indices[X.indptr[5]] = bad
    with pytest.raises(InputError, match=f"row 5 has column id {bad}; allowed are 0 to 299"):
        operator_of(law).apply(X)


def read_only(shape):
    array = np.empty(shape, np.float32)
    array.flags.writeable = False
    return array


def test_a_bad_value_that_meets_an_empty_column_of_s_is_seen():
    with pytest.raises(InputError, match="NaN"):
        SRHT(1, form="sparse", density=0.6).sample(2, 3).apply([[np.nan, 1]])


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.uint32, np.uint64, ">i4", ">i8"])
def test_batches_with_ids_of_any_width(dtype):
    X = data()
    batch = CsrBatch(X.indptr.astype(dtype), X.indices.astype(dtype), X.data.astype(">f4"), D)
    assert np.array_equal(operator_of("count_sketch").apply(batch), operator_of("count_sketch").apply(X))


def test_batches_with_impossible_ids():
    with pytest.raises(InputError, match="too large; allowed are ids below"):
        operator_of("li").apply(CsrBatch(np.array([0, 1]), np.array([2**63], np.uint64), np.ones(1), D))
    with pytest.raises(InputError, match="must be integers, not float64"):
        operator_of("li").apply(CsrBatch(np.array([0, 1]), np.array([5.0]), np.ones(1), D))


def test_scipy_matrices_with_spare_room_and_odd_offsets():
    X = data()
    roomy = sparse.csr_array(X.shape, dtype=np.float32)
    roomy.data, roomy.indices, roomy.indptr = np.append(X.data, np.float32(np.nan)), np.append(X.indices, -7), X.indptr
    assert np.array_equal(operator_of("li").apply(roomy), operator_of("li").apply(X))
    X.indptr = X.indptr + 1
    with pytest.raises(InputError, match="the row offsets begin at 1"):
        operator_of("li").apply(X)


def by_hand(format, **arrays):
    X = data().asformat(format)
    for name, array in arrays.items():
        setattr(X, name, array)
    return X


def torch_csr(indptr):
    X = data()
    return torch.sparse_csr_tensor(*map(torch.from_numpy, (indptr, X.indices, X.data)), X.shape, check_invariants=False)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X: CsrBatch(X.indptr[:-1], X.indices, X.data, D), "the row offsets do not fit .* they run from 0 to"),
        (lambda X: CsrBatch(np.maximum(X.indptr, 3), X.indices, X.data, D), "they run from 3 to"),
        (lambda X: CsrBatch(X.indptr, X.indices, X.data[1:], D), "column ids but"),
        (lambda X: CsrBatch(X.indptr[:0], X.indices, X.data, D), "there are no row offsets"),
        (lambda X: by_hand("csr", indptr=X.indptr[:-1]), "row offsets for .* rows; there must be one more than rows"),
        (lambda X: by_hand("csr", indptr=2 * X.indptr), "the row offsets do not fit"),
        (lambda X: by_hand("csr", indptr=X.indptr[::-1] - X.indptr[-1]), "ends before it begins"),
        (
            lambda X: by_hand("csc", indices=by_hand("csc").indices + X.shape[0]),
            "the arrays of X do not fit each other",
        ),
        (lambda X: by_hand("coo", row=by_hand("coo").row - 1), "X has entries beyond its shape"),
        (lambda X: torch_csr(np.maximum(X.indptr, 3)), "the row offsets begin at 3"),
        (lambda X: torch_csr(2 * X.indptr), "the row offsets do not fit"),
    ],
)
def test_offsets_that_fit_nothing(make, message):
    with pytest.raises(InputError, match=message):
        operator_of("count_sketch").apply(make(data()))


def test_a_matrix_that_says_it_has_no_repeats():
    X = sparse.csr_array((np.ones(4, np.float32), [2, 2, 5, 1], [0, 3, 4]), shape=(2, D))
    expected = operator_of("count_sketch").apply(X)
    X.has_canonical_format = True
    assert np.array_equal(operator_of("count_sketch").apply(X), expected)


@pytest.mark.parametrize("law", ["li", "count_sketch"])
def test_sparse_output_of_a_slice_in_little_memory(law):
    X = data()
    batch = CsrBatch(X.indptr, X.indices, X.data, D).rows(slice(10, 50))
    result = operator_of(law).apply(batch, sparse_output=True, memory="90KB")
    assert np.allclose(result.toarray(), operator_of(law).apply(X)[10:50], rtol=1e-4, atol=1e-2)


def test_overflow_is_not_bad_input():
    X = np.full((1, D), 3e38, np.float32)
    assert not np.isfinite(operator_of("gaussian").apply(X)).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((3, D + 1)), "X has 301 columns, but the projection was made for 300"),
        (sparse.csr_array((3, D - 1)), "X has 299 columns"),
        (np.zeros(D), "X has 1 dimensions; it must have two"),
        (np.zeros((3, D), complex), "dtype complex128; allowed are real numbers"),
        (sparse.csr_array(np.ones((3, D), complex)), "dtype complex128"),
        (np.full((3, D), "a"), "dtype <U1"),
    ],
)
def test_unusable_data(given, message):
    with pytest.raises(InputError, match=message):
        operator_of("count_sketch").apply(given)


def test_broken_offsets_are_errors():
    X = data()
    X.indptr[10] = X.indptr[11] + 1
    with pytest.raises(InputError, match="row 10 ends before it begins"):
        operator_of("count_sketch").apply(X)
    X = data()
    X.indptr[-1] += 5
    with pytest.raises(InputError, match="the row offsets do not fit"):
        operator_of("count_sketch").apply(X)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(0), "k=0 is not possible; it must be an integer from 1 to"),
        (lambda: Gaussian(10.5), "k=10.5 is not possible"),
        (lambda: Gaussian(True), "k=True is not possible"),
        (lambda: Gaussian("many"), "k='many' is not possible"),
        (lambda: CountSketch(2**31 + 1), "is not possible"),
        (lambda: Achlioptas(10, s=2), "s=2 is not possible for Achlioptas; it is 1 or 3"),
        (lambda: Li(10, s=0.5), "s=0.5 is not possible for Li"),
        (lambda: Li(10, s=float("nan")), "s=nan is not possible for Li"),
        (lambda: SRHT(10, form="fast"), "form='fast' is not possible"),
        (lambda: SRHT(10, form="sparse"), "density=None is not possible"),
        (lambda: SRHT(10, density=0.1), "density and entries belong to form"),
        (lambda: SRHT(10, form="sparse", density=0.1, entries="uniform"), "entries='uniform' is not possible"),
        (lambda: Gaussian(10).sample(0), "d=0 is not possible"),
        (lambda: Gaussian(10).sample(2**63 + 1), "is not possible"),
        (lambda: Gaussian(10).sample(10, seed=-1), "seed=-1 is not possible"),
        (lambda: make_scheme("fourier", 10), "no scheme 'fourier'; there are gaussian, achlioptas"),
        (lambda: make_scheme(["li"], 10), r"no scheme \['li'\]; there are gaussian, achlioptas"),
        (lambda: make_scheme("li", 10, q=3), "li has no option 'q'; it has s"),
        (lambda: make_scheme("gaussian", 10, s=3), "gaussian has no option 's'; it has none"),
        (lambda: Gaussian(10).sample(10).block([10]), "row ids run from 10 to 10; allowed are 0 to 9"),
        (lambda: Gaussian(10).sample(10).block([0], [-1]), "column ids run from -1 to -1"),
        (lambda: Gaussian(10).sample(10).block([0.5]), "row ids must be a one-dimensional array of integers"),
        (lambda: Gaussian(10).sample(10).apply(np.zeros((1, 10)), dtype=int), "results are float32 or float64"),
        (lambda: Li(5).sample(-1), "d=-1 is not possible"),
        (lambda: SRHT(8, form="sparse", density=0.1).sample(2**63).block([0], [1]), "a column of S has 9.* at least 5"),
        (lambda: SRHT(5).sample("abc"), "d='abc' is not possible"),
        (lambda: Li(5, s=1e70), "s=1e.70 is not possible"),
        (lambda: operator_of("li").apply(sparse.coo_array(np.ones(D))), "X has 1 dimensions"),
        (lambda: operator_of("li").apply(data(), out=read_only((60, K))), "out is read-only"),
        (lambda: operator_of("li").apply(data(), out=np.ones((60, K)), sparse_output=True), "leave it out"),
    ],
)
def test_unusable_arguments(make, message):
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, SketchnetError)


@every_law
def test_operators_pickle_small_and_compare_by_what_they_draw(law):
    operator = operator_of(law)
    operator.apply(data())  # derives whatever it caches
    stored = pickle.dumps(operator)
    assert len(stored) < 500
    assert np.array_equal(pickle.loads(stored).apply(data()), operator.apply(data()))
    assert operator.config()["seed"] == 3


def test_sparse_output_costs_the_non_zeros_whatever_k():
    """Memory and time of k for each unit of rows would make this minutes, and 256 MB."""
    X = sparse.random_array((3000, 1000), density=0.01, format="csr", rng=np.random.default_rng(0))
    operator = CountSketch(2**25).sample(1000, 3)
    before = anonymous_memory()
    result = operator.apply(X, sparse_output=True)
    assert anonymous_memory() - before < 2**26
    np.testing.assert_allclose(result.power(2).sum(axis=1), X.power(2).sum(axis=1), rtol=1e-9)  # no two columns meet
    assert result.shape == (3000, 2**25)
