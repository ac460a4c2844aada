"""The linear expert against scikit-learn's solvers at the same strength, and what it chooses."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from sketchnet.data import CsrBatch
from sketchnet.errors import InputError
from sketchnet.experts.blend import row_losses
from sketchnet.experts.linear import LinearExpert, LinearProblem
from sketchnet.experts.rows import Sample, SeenColumns
from sketchnet.kernels.cpu import threads
from sketchnet.kernels.cpu.linear_rows import SharedColumns, sum_columns


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
    check_contributions_and_state(expert, valid)


def check_contributions_and_state(expert, sample):
    rows, logits = sample.rows, expert.logits(sample.rows)
    outputs = np.random.default_rng(0).integers(0, expert.n_outputs, rows.n_rows)
    parts = expert.contributions(rows, outputs)
    assert parts.shape == rows.values.shape
    owners = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
    sums = expert.bias[outputs] + np.bincount(owners, parts, rows.n_rows)
    np.testing.assert_allclose(sums, logits[np.arange(rows.n_rows), outputs], atol=1e-4 * np.abs(logits).max())
    arrays, settings = expert.state()
    other = LinearExpert(expert.kind, expert.n_outputs)
    other.restore({name: array.copy() for name, array in arrays.items()}, json.loads(json.dumps(settings)))
    np.testing.assert_array_equal(other.logits(rows), logits)
    assert other.chosen == expert.chosen


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
    expert.chosen = {"strength": 1.0, "emphasis": 1.0}
    expert.refit(examples)
    one = CsrBatch(np.array([0, 1]), np.array([2**40]), np.ones(1, np.float32), 2**41)
    np.testing.assert_array_equal(expert.logits(columns.compact(one)), expert.bias[None])


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, settings: arrays.pop("weights"),
        lambda arrays, settings: arrays.update(weights=arrays["weights"][:, 0]),
        lambda arrays, settings: arrays.update(weights=arrays["weights"].astype(np.float64)),
        lambda arrays, settings: arrays["weights"].fill(np.nan),
        lambda arrays, settings: arrays.update(bias=np.zeros(7, np.float32)),
        lambda arrays, settings: settings.update(chosen={"strength": -1.0, "emphasis": 1.0}),
        lambda arrays, settings: settings.update(trials=None),
    ],
)
def test_states_that_cannot_be_are_refused(change):
    examples, _, _ = problem("binary", n=100)
    expert = LinearExpert("binary", 1)
    expert.fit(examples, examples)
    arrays, settings = expert.state()
    change(arrays, settings)
    with pytest.raises(InputError, match="linear model"):
        LinearExpert("binary", 1).restore(arrays, settings)


def test_rare_columns_that_tell_classes_apart_are_emphasised():
    """A few columns of each class among many that say nothing: weighing them by class ratios must win."""
    rng = np.random.default_rng(0)
    n, d = 1200, 6000
    y = rng.integers(0, 2, n)
    ids = np.c_[rng.integers(100, d, (n, 40)), rng.integers(0, 50, (n, 2)) + 50 * y[:, None]]
    flipped = rng.random(n) < 0.2
    ids[flipped, -2:] = rng.integers(0, 100, (flipped.sum(), 2))
    rows = CsrBatch(np.arange(n + 1) * 42, ids.ravel(), np.ones(n * 42, np.float32), d)
    examples = Sample(SeenColumns.count(rows).compact(rows), y)
    expert = LinearExpert("binary", 1)
    expert.fit(examples.take(np.arange(800)), examples.take(np.arange(800, n)))
    assert expert.chosen["emphasis"] > 1
    *plain, last = expert.trials
    assert last["loss"] < 0.95 * min(trial["loss"] for trial in plain)
    expert.refit(examples)
    check_contributions_and_state(expert, examples)


@pytest.mark.parametrize("scaled", [False, True])
def test_rows_without_lonely_columns(scaled, monkeypatch):
    monkeypatch.setattr(threads, "_SMALL", 1)
    rng = np.random.default_rng(0)
    X = sparse.random_array((60, 900), density=0.02, format="csr", rng=rng, dtype=np.float32)
    scales = rng.random(900).astype(np.float32) + 0.5 if scaled else None
    scaled_rows = X.toarray() * (scales if scaled else 1)
    shared = (X.toarray() != 0).sum(axis=0) > 1
    rows = SharedColumns(X.indptr, X.indices, X.data, 900, scales)
    offsets, ids, values = rows.arrays
    dense = sparse.csr_array((values, ids.astype(np.int64), offsets), shape=(60, shared.sum())).toarray()
    np.testing.assert_array_equal(dense, scaled_rows[:, shared])
    np.testing.assert_allclose(rows.norms, 1 + np.square(scaled_rows).sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(rows.own, np.square(scaled_rows[:, ~shared]).sum(axis=1), rtol=1e-6)
    signs, alpha = rng.choice(np.array([-1, 1], np.int8), (60, 2)), rng.random((60, 2)).astype(np.float32)
    pulls = np.c_[scaled_rows, np.ones(60)].T @ (alpha * signs)
    out = np.empty((901, 2), np.float32)
    rows.write_weights(signs, alpha, pulls[np.r_[shared, True]].astype(np.float32), out)
    expected = pulls * (np.r_[scales, 1][:, None] if scaled else 1)
    np.testing.assert_allclose(out, expected, atol=1e-5)
    sums, row_weights = np.zeros((900, 3)), rng.random(60)
    sum_columns(X.indptr, X.indices, X.data, row_weights, signs[:, 0], sums)
    there = (X.toarray() != 0) * row_weights[:, None]
    ours = signs[:, 0] > 0
    np.testing.assert_allclose(sums[:, :2], np.c_[there[ours].sum(axis=0), there[~ours].sum(axis=0)], atol=1e-9)
    np.testing.assert_allclose(sums[:, 2], row_weights @ np.square(X.toarray()), atol=1e-6)


def test_the_gap_that_a_solver_states_is_that_of_its_objectives():
    examples, _, _ = problem("multiclass", d=3000)
    work = LinearProblem(LinearExpert("multiclass", 3), examples)
    for strength, gap in ((1.0, 0.1), (30.0, 0.03), (30.0, 1e-4)):
        weights, stated = work.solve(strength, gap)
        costs = np.full(400, strength / work.mean_norm)
        margins = (examples.rows.scipy() @ weights[:-1] + weights[-1]) * work._targets
        size = np.square(weights, dtype=np.float64).sum(axis=0) / 2
        primal = size + costs @ np.square(np.maximum(1 - margins, 0))
        alpha = np.concatenate([part[2] for part in work._parts], axis=1).astype(np.float64)
        dual = alpha.sum(axis=0) - (1 / (4 * costs)) @ np.square(alpha) - size
        assert (primal - dual <= gap * primal).all()
        assert stated <= gap


def test_memory_maps_can_be_rows(tmp_path):
    examples, _, _ = problem("binary", d=2000)
    names = "indptr", "indices", "values"
    for name, array in zip(names, examples.rows.arrays):
        np.save(tmp_path / f"{name}.npy", array)
    mapped = CsrBatch(*(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in names), examples.rows.n_columns)
    experts = LinearExpert("binary", 1), LinearExpert("binary", 1)
    for expert, rows in zip(experts, (examples.rows, mapped)):
        expert.chosen = {"strength": 3.0, "emphasis": 2.0}
        expert.refit(Sample(rows, examples.targets))
    np.testing.assert_array_equal(experts[0].weights, experts[1].weights)
