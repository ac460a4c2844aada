"""Scores of columns beside scikit-learn's, from memory and from disk, and what is refused."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import feature_selection

from sketchnet.data import CsrBatch, open_shards
from sketchnet.errors import InputError
from sketchnet.selection import chi2, chi2_scores, f_classif, f_scores, information_gain, scores
from tests.selection.labelled import counts, write_shards


def quietly(function, *args, **kwargs):
    """scikit-learn warns of columns without entries, and that numbers look continuous."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_equals_scikit_learn(n_classes, dtype):
    X, y = counts(n_classes=n_classes)
    exact = X.astype(np.float64)  # in which scikit-learn then adds
    X = X.astype(dtype)
    for ours, theirs in ((chi2, feature_selection.chi2), (f_classif, feature_selection.f_classif)):
        for a, b in zip(ours(X, y), quietly(theirs, exact, y)):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    theirs = quietly(feature_selection.mutual_info_classif, exact, y, discrete_features=True)
    np.testing.assert_allclose(information_gain(X, y), theirs, atol=1e-13)


def test_signed_data():
    X, y = counts()
    X.data *= np.where(np.random.default_rng(0).random(len(X.data)) < 0.5, -0.5, 1)
    np.testing.assert_allclose(chi2(X, y)[0], feature_selection.chi2(abs(X), y)[0], rtol=1e-9)
    np.testing.assert_allclose(f_classif(X, y)[0], quietly(feature_selection.f_classif, X, y)[0], rtol=1e-9)
    theirs = quietly(feature_selection.mutual_info_classif, X, y, discrete_features=True)
    np.testing.assert_allclose(information_gain(X, y), theirs, atol=1e-13)


def test_real_values_are_values_each():
    """Real numbers that never repeat give away the class of each row in which they are not zero."""
    X = sparse.random_array((200, 5), density=0.3, format="csr", rng=np.random.default_rng(0))
    y = np.arange(200) % 2
    theirs = quietly(feature_selection.mutual_info_classif, X, y, discrete_features=True)
    np.testing.assert_allclose(information_gain(X, y), theirs, atol=1e-13)
    stored = np.diff(X.tocsc().indptr)
    assert np.argmax(information_gain(X, y)) == np.argmax(stored)


@pytest.mark.parametrize("score", [chi2_scores, f_scores, information_gain])
def test_every_kind_of_rows_and_labels(score, tmp_path):
    X, y = counts()
    expected = score(X, y)
    batch = CsrBatch(X.indptr, X.indices, X.data, X.shape[1], labels=y.astype(np.float32))
    folder = write_shards(tmp_path, X, y)
    shards = open_shards(folder)
    assert len(shards.parts) > 1
    for rows, labels in (
        (X.toarray(), y),
        (X.tocsc(), y),
        (X.astype(np.float32), y - 5),
        (X, np.array(["a", "b", "c"])[y]),
        (X, y * 10.5),
        (X, y * 10**9),
        (X, y[:, None]),
        (batch, None),
        (shards, None),
        (str(folder), y),
    ):
        np.testing.assert_allclose(score(rows, labels), expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("score", [chi2_scores, f_scores, information_gain])
def test_columns_in_parts(score):
    X, y = counts()
    assert np.array_equal(score(X, y, memory=500), score(X, y), equal_nan=True)


@pytest.mark.parametrize("score", [chi2_scores, f_scores, information_gain])
def test_repeated_and_unordered_ids_add_up(score):
    X, y = counts()
    X.data *= np.random.default_rng(1).choice([-1.0, 0.5], len(X.data))
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    twice = np.concatenate([rows, rows]), np.concatenate([X.indices, X.indices])
    order = np.lexsort((np.random.default_rng(0).random(2 * len(rows)), twice[0]))
    doubled = sparse.csr_array(
        (np.concatenate([3 * X.data, -2 * X.data])[order], twice[1][order], 2 * X.indptr), shape=X.shape
    )
    before = doubled.indices.copy()
    np.testing.assert_allclose(score(doubled, y), score(X, y), rtol=1e-9, atol=1e-13)
    assert np.array_equal(doubled.indices, before)


def test_repeated_ids_that_add_up_to_infinity():
    X = sparse.csr_array((np.full(4, 3e38, np.float32), np.array([0, 0, 0, 1]), np.array([0, 2, 4])), shape=(2, 2))
    with pytest.raises(InputError, match="values of a repeated id add up to more than float32 can hold"):
        chi2_scores(X, [0, 1])


def test_columns_without_a_score():
    X = np.array([[0, 1, 1.0], [0, 1, 2], [0, 1, 3], [0, 1, 5]])
    y = [0, 0, 1, 1]
    assert np.isnan(chi2(X, y)[0]).tolist() == [True, False, False]
    assert np.isnan(f_classif(X, y)[0]).tolist() == [True, True, False]
    assert information_gain(X, y).tolist()[:2] == [0, 0]


@pytest.mark.parametrize("score", [chi2, f_classif, information_gain])
class TestRefused:
    def test_values(self, score):
        X, y = counts()
        for bad in (np.nan, np.inf):
            X.data[7] = bad
            with pytest.raises(InputError, match="Input X contains NaN or infinity: .* in row"):
                score(X, y)
            with pytest.raises(InputError, match="Input X contains NaN or infinity"):
                score(X.toarray(), y)
        with pytest.raises(InputError, match="dtype complex128"):
            score(X.astype(complex), y)

    def test_ids(self, score):
        X, y = counts()
        for bad in (-1, X.shape[1]):
            ids = X.indices.copy()
            ids[3 if bad < 0 else -1] = bad
            with pytest.raises(InputError, match=f"has column id {bad}; allowed are 0 to 49"):
                score(CsrBatch(X.indptr, ids, X.data, X.shape[1]), y)
        with pytest.raises(InputError, match="ends before it begins"):
            score(CsrBatch(X.indptr[::-1].copy(), X.indices, X.data, 50), y)
        with pytest.raises(InputError, match="but 3 values"):
            score(CsrBatch(X.indptr, X.indices, X.data[:3], 50), y)

    def test_labels(self, score):
        X, y = counts()
        for bad, message in (
            (y[:-1], "y has 299 labels, but X has 300 rows"),
            (np.zeros(300), "y has 1 class"),
            (np.full(300, np.nan), "Input y contains NaN"),
            (np.zeros((300, 2)), "y has 2 dimensions"),
            (sparse.csr_array((300, 2)), "several labels a row"),
            (None, "there is no y"),
            ([{}, 1] * 150, "cannot be sorted"),
        ):
            with pytest.raises(InputError, match=message):
                score(X, bad)

    def test_shapes(self, score):
        with pytest.raises(InputError, match="X has 0 rows"):
            score(sparse.csr_array((0, 3)), [])
        with pytest.raises(InputError, match="X has 1 dimensions"):
            score(np.ones(3), [0, 1, 1])
        wide = CsrBatch(np.array([0, 1, 1]), np.array([2**50]), np.ones(1), 2**60)
        with pytest.raises(InputError, match="columns, for which .* each takes .*; this machine has"):
            score(wide, [0, 1])


def test_a_constant_column_has_no_f_score():
    """With 93 and 7 rows, products with 1 / 93 and 1 / 7 would leave something between the classes."""
    y = np.r_[np.zeros(93), np.ones(7)]
    X = np.random.default_rng(0).random((100, 3))
    X[:, 1] = 1
    assert np.isnan(f_scores(sparse.csr_array(X), y)).tolist() == [False, True, False]


@pytest.mark.parametrize("score", [chi2_scores, f_scores, information_gain])
def test_arrays_that_are_parts_of_others(score):
    X, y = counts()
    records = np.empty(len(X.data), [("id", np.int32), ("value", np.float64)])
    records["id"], records["value"] = X.indices, X.data
    strided = CsrBatch(X.indptr, records["id"], records["value"], X.shape[1])
    assert np.array_equal(score(strided, y), score(X, y), equal_nan=True)


@pytest.mark.parametrize("score", [chi2_scores, f_scores])
@pytest.mark.parametrize("limits", [(40, 1000), (10**6, 7), (1, 1)])
def test_blocks_of_rows_change_nothing(score, limits, monkeypatch):
    X, y = counts()
    X = sparse.vstack([sparse.csr_array((9, X.shape[1])), X, sparse.csr_array((9, X.shape[1]))], format="csr")
    y = np.r_[y[:9], y, y[:9]]
    expected = score(X, y)
    for name, limit in zip(("_BLOCK_ENTRIES", "_BLOCK_ROWS"), limits):
        monkeypatch.setattr(scores, name, limit)
    assert np.array_equal(score(X, y), expected, equal_nan=True)
