"""Columns weighed by how well they tell classes apart."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from sketchnet.data import CsrBatch
from sketchnet.training import class_ratios, linear, linear_solver
from sketchnet.training.defaults import build_model
from sketchnet.training.examples import Examples, hold_back
from sketchnet.training.task import Task


def documents(n=1500, n_rare=4000, n_common=60, n_classes=2, seed=0):
    """Rows with a few of many rare columns, half of which stand in one class only, and loud ones that say nothing."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n)
    labels[:n_classes] = np.arange(n_classes)
    owner = rng.integers(0, 2 * n_classes, n_rare)  # of a rare column; from n_classes on, nobody
    allowed = [np.flatnonzero((owner == c) | (owner >= n_classes)) for c in range(n_classes)]
    rare = [rng.choice(allowed[c], 8, replace=False) for c in labels]
    rows = np.repeat(np.arange(n), 8)
    few = sparse.csr_array((rng.uniform(0.5, 1.5, 8 * n), (rows, np.concatenate(rare))), shape=(n, n_rare))
    loud = sparse.random_array((n, n_common), density=0.5, format="csr", rng=rng)
    return sparse.hstack([few, loud], format="csr").astype(np.float32), labels


def examples_of(X, labels, **settings):
    task = Task.of_labels(labels)
    data = CsrBatch(X.indptr, X.indices, X.data, X.shape[1])
    model = build_model(task, data, {"n_components": 16, "hidden": (8,), **settings}, 0)
    model.network.eval()
    return Examples(data, task.encode(labels)), model


def plain_ratios(X, labels, n_classes):
    """The law, column by column."""
    prior, out = 0.25 * X.data.mean(dtype=np.float64), []
    X = X.astype(np.float64)[:, np.flatnonzero(X.sum(axis=0))]
    for c in range(n_classes):
        p, q = (prior + X[labels == c].sum(axis=0), prior + X[labels != c].sum(axis=0))
        out.append(np.log((p / p.sum()) / (q / q.sum())))
    return np.stack(out, axis=1)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_ratios_of_shares(n_classes):
    X, labels = documents(n=300, n_classes=n_classes)
    _, model = examples_of(X, labels)
    part, rest = (examples_of(X[rows], labels[rows])[0] for rows in (slice(0, 200), slice(200, 300)))
    found = class_ratios.squared_class_ratios(model.network, [part, rest])
    seen = np.flatnonzero(X.sum(axis=0))
    exact = np.square(plain_ratios(X, labels, n_classes))
    np.testing.assert_allclose(found[seen], exact if n_classes > 2 else exact[:, 1:], rtol=1e-4, atol=1e-6)
    # Empty columns change nothing, so a wider table does not either; nor do ids that are hashed, where none collide.
    wide = sparse.csr_array((X.data, X.indices * 1000, X.indptr), shape=(300, 1000 * X.shape[1]))
    wide_examples, wide_model = examples_of(wide, labels, hashed_columns=1 << 22)
    again = class_ratios.squared_class_ratios(wide_model.network, [wide_examples])
    batch = wide_model.network.columns(wide_examples.data)
    places = dict(zip(X.indices.tolist(), batch.indices.tolist(), strict=True))
    alone = [c for c in seen.tolist() if list(places.values()).count(places[c]) == 1]
    assert len(alone) > 0.9 * len(seen)
    np.testing.assert_allclose(again[[places[c] for c in alone]], found[alone], rtol=0.02, atol=1e-3)


def test_columns_are_counted_beyond_what_float32_can_count():
    """Two columns have 2**24 in the first rows of class 0, to which float32 cannot add 1; one goes on by ones."""
    n = 200_000
    labels, columns, counts = np.zeros(n, np.int64), np.zeros(n, np.int64), np.ones(n, np.float32)
    labels[:2], columns[[1, 3]], counts[[2, 3]] = 1, 1, 2**24
    X = sparse.csr_array((counts, columns, np.arange(n + 1)), shape=(n, 2))
    examples, model = examples_of(X, labels)
    parts = [Examples(examples.data.rows(rows), examples.targets[rows]) for rows in (slice(0, 4), slice(4, n))]
    found = class_ratios.squared_class_ratios(model.network, parts)
    np.testing.assert_allclose(found, np.square(plain_ratios(X, labels, 2))[:, 1:], rtol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_margins_are_those_of_scaled_columns(n_classes, monkeypatch):
    """LIBLINEAR on columns that are multiplied for each class by its own ratios, and the same C."""
    monkeypatch.setattr(linear_solver, "GAP", 1e-8)
    monkeypatch.setattr(linear_solver, "_PASSES", 2000)
    X, labels = documents(n=200, n_rare=200, n_common=5, n_classes=n_classes)
    examples, model = examples_of(X, labels)
    squares = class_ratios.squared_class_ratios(model.network, [examples])
    solver = linear_solver.LinearSolver(model.network, [examples], squares)
    solver.solve(3.0)
    squared = X.astype(np.float64).power(2)
    norm = 1 + np.mean([(squared @ column).mean() for column in squares.T.astype(np.float64)])
    for j, column in enumerate(squares.T.astype(np.float64)):
        scaled = (X.astype(np.float64) @ sparse.diags_array(np.sqrt(column))).tocsr()
        scaled = sparse.csr_matrix((scaled.data, scaled.indices.astype(np.int32), scaled.indptr.astype(np.int32)))
        peer = LinearSVC(C=3.0 / norm, tol=1e-8, max_iter=100_000).fit(scaled, labels == j + (n_classes == 2))
        np.testing.assert_allclose(solver.margins(examples.data)[:, j], peer.decision_function(scaled), atol=2e-3)


def test_data_without_counts_has_no_ratios():
    X, labels = documents(n=300)
    examples, model = examples_of(X * 0, labels)
    assert class_ratios.squared_class_ratios(model.network, [examples]) is None


@pytest.mark.parametrize("where", ["validation", "training"])
def test_one_negative_value_in_rows_that_were_not_tried(where, monkeypatch):
    """Weighed columns would help here, but their machine is solved on all rows in the end."""
    monkeypatch.setattr(linear, "_TRIAL_ROWS", 1000)
    X, labels = documents(n=2500)
    examples, model = examples_of(X, labels)
    rest, valid = hold_back(examples, 0.4, 0)
    not_tried = hold_back(rest, 1 - 1000 / rest.data.n_rows, model.training.seed)[1]
    row = valid.data.numbers[0] if where == "validation" else not_tried.data.numbers[0]
    X.data[X.indptr[row]] = -1e-3
    examples, model = examples_of(X, labels)
    assert class_ratios.has_negative(model.network, [examples])
    assert linear.blend_linear(model, *hold_back(examples, 0.4, 0))["columns"] == "plain"


def test_more_than_two_standard_errors():
    def better(gained, lost):
        than = np.arange(1000) < 100 + gained
        wrong = than.copy()
        wrong[:gained], wrong[1000 - lost :] = False, True
        return linear._surely_better(wrong, than)

    assert better(9, 1)  # by 8, of 10 that differ: 6.3 are chance
    assert not better(8, 2)
    assert not better(2, 8)
    assert not better(0, 0)
    assert not better(4, 0)  # just two standard errors
    assert better(5, 0)


@pytest.mark.parametrize("trial_rows", [10**6, 1000])
def test_weighed_columns_are_taken_where_they_surely_help(trial_rows, monkeypatch):
    monkeypatch.setattr(linear, "_TRIAL_ROWS", trial_rows)
    X, labels = documents(n=2500)
    examples, model = examples_of(X, labels)
    rest, valid = hold_back(examples, 0.4, 0)
    record = linear.blend_linear(model, rest, valid)
    assert record["columns"] == "weighed"
    monkeypatch.setattr(linear, "_DOUBT", np.inf)
    _, other = examples_of(X, labels)
    refused = linear.blend_linear(other, rest, valid)
    assert refused["columns"] == "plain"
    assert record["linear_valid_error"] < refused["linear_valid_error"]


def test_the_wide_path_takes_the_mean_of_both(monkeypatch):
    X, labels = documents()
    examples, model = examples_of(X, labels)
    rest, valid = hold_back(examples, 0.4, 0)
    monkeypatch.setattr(linear, "_weigh", lambda *_: (np.pi / 2, 1.0, 0))  # the linear model alone
    added, add = [], linear._add

    def noted(network, solver, factor):
        added.append(factor * solver.margins(examples.data))
        add(network, solver, factor)

    monkeypatch.setattr(linear, "_add", noted)
    assert linear.blend_linear(model, rest, valid)["columns"] == "weighed"
    assert len(added) == 2
    np.testing.assert_allclose(model.outputs(examples.data), added[0] + added[1], atol=1e-5)


def test_where_all_columns_tell_as_much_it_stays_plain():
    rng = np.random.default_rng(0)
    X = sparse.random_array((1500, 40), density=0.3, format="csr", rng=rng, dtype=np.float32)
    labels = (X @ rng.standard_normal((40, 3))).argmax(axis=1)
    examples, model = examples_of(X, labels)
    assert linear.blend_linear(model, *hold_back(examples, 0.4, 0))["columns"] == "plain"
