"""Selection as scikit-learn transformers."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_selection import SelectKBest
from sklearn.feature_selection import chi2 as their_chi2
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sketchnet.data import open_shards
from sketchnet.data.csr import as_csr
from sketchnet.errors import InputError
from sketchnet.estimators import ColumnSelector, SparseSVD
from sketchnet.estimators.selection import SCORES
from sketchnet.selection import chi2
from tests.data.test_shards import write
from tests.selection.labelled import counts, write_shards


@parametrize_with_checks([*(ColumnSelector(name, n_columns=2) for name in SCORES), SparseSVD(), SparseSVD(1)])
def test_scikit_learn_contracts(estimator, check):
    check(estimator)


def test_keeps_what_scikit_learn_keeps():
    X, y = counts()
    ours, theirs = ColumnSelector("chi2", 10).fit(X, y), SelectKBest(their_chi2, k=10).fit(X, y)
    assert np.array_equal(ours.get_support(), theirs.get_support())
    assert np.array_equal(ours.get_support(indices=True), ours.columns_)
    kept = ours.transform(X)
    assert sparse.issparse(kept)
    assert np.array_equal(kept.toarray(), X.toarray()[:, ours.columns_])
    assert np.array_equal(ours.transform(X.toarray()), kept.toarray())
    assert SelectKBest(chi2, k=10).fit(X, y).get_support().tolist() == ours.get_support().tolist()


@pytest.mark.parametrize("name", SCORES)
def test_from_disk(name, tmp_path):
    X, y = counts()
    folder = write_shards(tmp_path, X, y)
    memory, disk = ColumnSelector(name, 12).fit(X, y), ColumnSelector(name, 12).fit(folder)
    np.testing.assert_allclose(memory.scores_, disk.scores_, rtol=1e-9, atol=1e-13)
    assert np.array_equal(memory.columns_, disk.columns_)
    assert len(open_shards(folder).parts) > 1
    assert np.array_equal(disk.transform(folder).toarray(), memory.transform(X).toarray())
    with pytest.raises(InputError, match="50 columns, but ColumnSelector is expecting 20 features"):
        ColumnSelector(name, 5).fit(X[:, :20], y).transform(folder)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
def test_values_keep_float32_and_are_float64_else(dtype, tmp_path):
    X, y = counts()
    X = X.astype(dtype)
    batch = as_csr(X, X.shape[1])
    for rows in (X, X.toarray(), batch, write(tmp_path / "x", [batch])):
        kept = ColumnSelector(n_columns=5).fit(rows, y).transform(rows)
        assert kept.dtype == (np.float32 if dtype == np.float32 else np.float64)


@pytest.mark.parametrize("name", SCORES)
def test_ties_and_columns_without_score(name):
    """Columns 1, 3, 5 are equal, 0 and 4 say nothing, 2 says less than the equal ones."""
    X = np.zeros((8, 6))
    X[:4, [1, 3, 5]] = 1
    X[0, [1, 3, 5]] = 0
    X[:2, 2] = 1
    y = [0] * 4 + [1] * 4
    for n, expected in ((1, [1]), (2, [1, 3]), (3, [1, 3, 5]), (4, [1, 2, 3, 5]), (5, [0, 1, 2, 3, 5])):
        assert ColumnSelector(name, n).fit(X, y).columns_.tolist() == expected
    assert ColumnSelector(name, 100).fit(X, y).columns_.tolist() == [0, 1, 2, 3, 4, 5]


def test_refused():
    X, y = counts()
    with pytest.raises(InputError, match="criterion='gini' is not possible; allowed are chi2, f_score, information_g"):
        ColumnSelector("gini").fit(X, y)
    with pytest.raises(InputError, match="n_columns=0 is not possible"):
        ColumnSelector(n_columns=0).fit(X, y)


def test_works_in_a_pipeline():
    X, y = counts(n=600, n_classes=2)
    model = make_pipeline(ColumnSelector("f_score", n_columns=20), LogisticRegression()).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.8
