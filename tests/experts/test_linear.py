"""The linear expert against scikit-learn's solvers at the same strength, and what it chooses."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from sketchnet.data import CsrBatch
from sketchnet.experts.blend import row_losses
from sketchnet.experts.linear import LinearExpert, LinearProblem
from sketchnet.experts.rows import Sample, SeenColumns


def problem(kind, n=400, d=50, n_outputs=3, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, d), density=0.2, format="csr", rng=rng, dtype=np.float32)
    scores = X @ rng.standard_normal((d, n_outputs if kind in ("multiclass", "multilabel") else 1))
    scores += noise * scores.std() * rng.standard_normal(scores.shape)
    targets = {
        "binary": lambda: (scores[:, 0] > 0).astype(int),
        "multiclass": lambda: scores.argmax(axis=1),
        "multilabel": lambda: sparse.csr_array((scores > 0.5).astype(np.float32)),
        "regression": lambda: scores[:, 0],
    }[kind]()
    rows = CsrBatch(X.indptr, X.indices, X.data, d)
    columns = SeenColumns.count(rows)
    return Sample(columns.compact(rows), targets), columns, X


def solved(expert, examples, cost, gap=1e-8):
    """Weights (outputs x columns of X, bias last) at C = cost."""
    work = LinearProblem(expert, examples)
    weights, reached = work.solve(cost * work.mean_norm, gap)
    assert reached <= gap
    return weights.T


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("cost", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("d", [50, 3000])
def test_the_minimum_is_that_of_liblinear(d, cost, n_outputs):
    """Wide rows are solved in the dual with the squared hinge, long ones in the primal with the logistic loss."""
    kind = "binary" if n_outputs == 1 else "multiclass"
    examples, columns, X = problem(kind, d=d)
    expert = LinearExpert(kind, n_outputs)
    weights = solved(expert, examples, cost, 1e-6 if d > 400 else 1e-10)
    if d > 400:
        peer = LinearSVC(C=cost, tol=1e-8, max_iter=100_000)
    else:
        peer = LogisticRegression(C=cost, solver="liblinear", tol=1e-8, max_iter=10_000)
    for output in range(n_outputs):
        signs = examples.targets == (output if n_outputs > 1 else 1)
        peer.fit(X, signs)
        theirs = np.r_[peer.coef_[0][columns.ids], 0, peer.intercept_]
        np.testing.assert_allclose(weights[output], theirs, atol=2e-3 * np.abs(theirs).max())


@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_weights_of_rows_are_as_good_as_repeating_them(kind):
    examples, _, X = problem(kind)
    times = np.random.default_rng(1).integers(0, 4, X.shape[0])
    repeated = X[np.repeat(np.arange(X.shape[0]), times)]
    columns = SeenColumns.count(CsrBatch(X.indptr, X.indices, X.data, X.shape[1]))
    other = columns.compact(CsrBatch(repeated.indptr, repeated.indices, repeated.data, X.shape[1]))
    once, twice = LinearExpert(kind, 1), LinearExpert(kind, 1)
    weighed = LinearProblem(once, Sample(examples.rows, examples.targets, times.astype(float)))
    several = LinearProblem(twice, Sample(other, np.repeat(examples.targets, times)))
    mean = weighed.mean_norm, several.mean_norm
    share = times.sum() / len(times)  # weights are made to average one
    first, _ = weighed.solve(2.0 * share * mean[0], 1e-12)
    second, _ = several.solve(2.0 * mean[1], 1e-12)
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_numbers_are_ridge_regression():
    examples, columns, X = problem("regression")
    weights = solved(LinearExpert("regression", 1), examples, 2.0, 1e-14)[0]
    with_constant = sparse.hstack([X, np.ones((X.shape[0], 1))]).tocsr()
    peer = Ridge(alpha=0.5, fit_intercept=False, tol=1e-12, solver="lsqr").fit(with_constant, examples.targets)
    np.testing.assert_allclose(weights, np.r_[peer.coef_[columns.ids], 0, peer.coef_[-1]], atol=1e-5)


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "regression"])
@pytest.mark.parametrize("d", [50, 3000])
def test_it_learns_and_chooses_a_strength(kind, d):
    examples, _, _ = problem(kind, n=1500, d=d, noise=0.3)
    train, valid = (examples.take(np.arange(*span)) for span in ((0, 1200), (1200, 1500)))
    n_outputs = 3 if kind in ("multiclass", "multilabel") else 1
    expert = LinearExpert(kind, n_outputs)
    logits = expert.fit(train, valid)
    assert logits.shape == (valid.rows.n_rows, n_outputs)
    losses = [trial["loss"] for trial in expert.trials]
    assert expert.chosen["strength"] == expert.trials[int(np.argmin(losses))]["strength"]
    nothing = row_losses(kind, np.zeros_like(logits), valid.targets).mean()
    assert min(losses) < (0.5 if d == 50 else 0.95) * nothing
    np.testing.assert_array_equal(expert.logits(valid.rows), logits)
    expert.refit(train)
    assert expert.gap <= 1e-2
    np.testing.assert_allclose(expert.logits(valid.rows), logits, atol=0.3 * np.abs(logits).max())


def test_threads_change_nothing(monkeypatch):
    found = []
    for number in ("1", "2"):
        monkeypatch.setenv("SKETCHNET_THREADS", number)
        examples, _, _ = problem("multiclass", d=2000)
        found.append(solved(LinearExpert("multiclass", 3), examples, 1.0, 1e-4))
    assert np.array_equal(*found)


def test_columns_that_never_occurred_have_no_weight():
    examples, columns, _ = problem("binary")
    expert = LinearExpert("binary", 1)
    expert.chosen = {"strength": 1.0}
    expert.refit(examples)
    one = CsrBatch(np.array([0, 1]), np.array([2**40]), np.ones(1, np.float32), 2**41)
    np.testing.assert_array_equal(expert.logits(columns.compact(one)), expert.bias[None])
