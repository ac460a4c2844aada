"""The linear model that is blended into the wide path."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from sketchnet.data import CsrBatch
from sketchnet.training import class_ratios, linear, linear_solver
from sketchnet.training.defaults import build_model, make_configs
from sketchnet.training.examples import Examples, hold_back
from sketchnet.training.rows import scale_input
from sketchnet.training.task import Task


def planted(n=3000, d=40, n_classes=2, seed=0):
    """Rows whose class is a linear function of them."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, d), density=0.3, format="csr", rng=rng, dtype=np.float32)
    scores = X @ rng.standard_normal((d, n_classes))
    labels = scores.argmax(axis=1)
    task = Task.of_labels(labels)
    return Examples(CsrBatch(X.indptr, X.indices, X.data, d), task.encode(labels)), task


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("trial_rows", [10**6, 200])
def test_an_untrained_network_becomes_the_linear_model(n_classes, trial_rows, monkeypatch):
    """It knows nothing, so validation rows ask for the linear model, which is solved on all rows in the end."""
    monkeypatch.setattr(linear, "_TRIAL_ROWS", trial_rows)
    examples, task = planted(n_classes=n_classes)
    examples, valid = hold_back(examples, 0.2, 0)
    model = build_model(task, examples.data, {"n_components": 16, "hidden": (8,)}, 0)
    model.network.eval()
    untrained = np.mean(task.numbers(model.outputs(valid.data)) != valid.targets)
    record = linear.blend_linear(model, examples, valid)
    assert record["linear_valid_error"] < 0.2 < untrained
    assert record["share"] > 0.5
    assert record["valid_error"] <= record["linear_valid_error"] + 0.02
    for part in (examples, valid):  # the validation rows are learnt too
        assert np.mean(task.numbers(model.outputs(part.data)) != part.targets) < 0.2


def outcomes(n, wrong, rng):
    """Outputs of one class or the other, of which some are wrong."""
    classes = rng.integers(0, 2, n)
    outputs = np.where(classes == 1, 1.0, -1.0)
    outputs[rng.permutation(n)[:wrong]] *= -1
    return outputs, classes


def weigh(outputs, margins, classes):
    angle, _, errors = linear._weigh(outputs[:, None], margins[:, None], classes, "binary")
    return angle, errors


def test_a_good_network_beside_a_bad_linear_model_stays_alone():
    rng = np.random.default_rng(0)
    outputs, classes = outcomes(2000, 20, rng)
    angle, errors = weigh(outputs, rng.standard_normal(2000) * 0.5, classes)
    assert angle < np.pi / 4
    assert errors <= 40


def test_where_validation_rows_cannot_tell_it_is_the_linear_model():
    rng = np.random.default_rng(1)
    outputs, classes = outcomes(2000, 100, rng)
    margins, wrong = outputs.copy(), (outputs > 0) != classes
    for rows in (np.flatnonzero(wrong)[:3], np.flatnonzero(~wrong)[:4]):  # three for, four against: chance
        margins[rows] *= -1
    assert weigh(outputs, 0.99 * margins, classes)[0] == np.pi / 2


def test_what_is_chosen_is_within_a_standard_error_of_the_best():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        classes = rng.integers(0, 2, 150)
        signs = np.where(classes == 1, 1.0, -1.0)
        outputs, margins = (signs * rng.normal(0.7, 1, 150) for _ in range(2))
        blends = [np.cos(a) * outputs + np.sin(a) * margins for a in linear._ANGLES]
        wrong = np.array([(blend > 0) != classes for blend in blends])
        angle, errors = weigh(outputs, margins, classes)
        chosen, best = int(np.argmin(np.abs(linear._ANGLES - angle))), wrong.sum(axis=1).argmin()
        assert errors == wrong[chosen].sum()
        allowed = 2 if angle == np.pi / 2 else 1  # standard errors; 150 rows can hardly tell
        assert errors - wrong[best].sum() <= allowed * np.sqrt((wrong[chosen] != wrong[best]).sum())


def test_more_features_are_dropped_where_rows_have_many_rare_ones():
    def chosen(n_entries, n_columns, **settings):
        return make_configs(Task("binary", (0, 1)), 1000, n_columns, n_entries, settings, 0)[0].feature_dropout

    assert chosen(100_000, 10**6) == 0.5
    assert chosen(10_000, 10**6) == 0.3  # short rows
    assert chosen(100_000, 784) == 0.3  # dense ones
    assert chosen(100_000, 10**6, feature_dropout=0.1) == 0.1
    assert chosen(100_000, 10**6, learn=False, wide=False) == 0


def repeated(data, times):
    """The same rows, each entry as so many parts that add up to it, one row of parts behind the other."""
    parts = np.random.default_rng(0).dirichlet(np.ones(times), data.n_entries)
    spans = [slice(*span) for span in zip(data.indptr, data.indptr[1:])]
    indices = np.concatenate([np.tile(data.indices[span], times) for span in spans])
    values = np.concatenate([(data.values[span, None] * parts[span]).T.ravel() for span in spans])
    return CsrBatch(data.indptr.astype(np.int64) * times, indices, values.astype(np.float32), data.n_columns)


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_repeated_ids_add_up(n_classes, weighed, monkeypatch):
    """A row's norm is that of the sums. By its entries alone, steps are too long and the weights grow without bound."""
    monkeypatch.setattr(linear_solver, "GAP", 1e-8)  # so that the order of rows does not matter
    monkeypatch.setattr(linear_solver, "_PASSES", 1000)
    examples, task = planted(n=600, n_classes=n_classes)
    several = Examples(repeated(examples.data, 30), examples.targets)
    found = []
    for rows in (examples, several):
        model = build_model(task, rows.data, {"n_components": 8, "hidden": (4,)}, 0)
        squares = class_ratios.squared_class_ratios(model.network, [rows]) if weighed else None
        solver = linear_solver.LinearSolver(model.network, [rows], squares)
        solver.solve(3.0)
        found.append(solver.margins(examples.data))
    np.testing.assert_allclose(*found, atol=1e-3)


def tables(n=2000, fields=8, values=60, n_classes=2, seed=0):
    """Rows of a table with categories, one column for each value: many passes, and the objective goes up and down."""
    rng = np.random.default_rng(seed)
    ids = np.minimum(rng.geometric(0.08, (n, fields)), values) - 1 + values * np.arange(fields)
    X = sparse.csr_array((np.ones(n * fields, np.float32), ids.ravel(), np.arange(0, n * fields + 1, fields)))
    scores = X @ rng.standard_normal((X.shape[1], n_classes)) + rng.normal(0, 2, (n, n_classes))
    labels, task = scores.argmax(axis=1), Task.of_labels(range(n_classes))
    return Examples(CsrBatch(X.indptr, X.indices, X.data, X.shape[1]), task.encode(labels)), task


def solver_of(rows, task):
    model = build_model(task, rows.data, {"n_components": 8, "hidden": (4,)}, 0)
    return linear_solver.LinearSolver(model.network, [rows])


def objectives(margins, sizes, classes, c):
    """Of each output, by its definition."""
    signs = np.where(classes[:, None] == (np.arange(margins.shape[1]) + (margins.shape[1] == 1)), 1, -1)
    return sizes / 2 + c * np.square(np.maximum(1 - signs * margins, 0)).sum(axis=0)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("strength", [0.01, 1.0, 30.0])
def test_the_objective_is_within_the_gap_of_the_best(strength, n_classes):
    rows, task = tables(n_classes=n_classes)
    solver, classes = solver_of(rows, task), rows.targets.astype(int)
    solver.solve(strength)
    c = strength / (8 + 1)  # rows have a norm of 8, and the constant
    sizes = np.square(solver.weights, dtype=np.float64).sum(axis=0) + np.square(solver.bias, dtype=np.float64)
    found = objectives(solver.margins(rows.data).astype(np.float64), sizes, classes, c).sum()
    X, best = sparse.csr_matrix((rows.data.values, rows.data.indices, rows.data.indptr)), 0
    for j in range(solver.weights.shape[1]):
        peer = LinearSVC(C=c, tol=1e-6, max_iter=100_000).fit(X, classes == j + (n_classes == 2))
        theirs = peer.decision_function(X)[:, None]
        size = np.square(peer.coef_).sum() + peer.intercept_**2
        best += objectives(theirs, size, np.where(classes == j + (n_classes == 2), 1, 0), c)[0]
    assert solver.gap <= linear_solver.GAP
    assert found / best - 1 <= solver.gap + 1e-4


def test_the_best_answer_stays_where_passes_run_out(monkeypatch):
    monkeypatch.setattr(linear_solver, "GAP", 1e-4)
    monkeypatch.setattr(linear_solver, "_PASSES", 12)
    seen, measure = [], linear_solver.LinearSolver._objective

    def noted(solver, *args):
        seen.append(measure(solver, *args))
        return seen[-1]

    monkeypatch.setattr(linear_solver.LinearSolver, "_objective", noted)
    worse_at_the_end = 0
    for seed in range(5):
        rows, task = tables(seed=seed)
        solver = solver_of(rows, task)
        seen.clear()
        solver.solve(30.0)
        softness = solver._norms.mean() / 60
        best = min(objective for objective, _ in seen)
        worse_at_the_end += seen[-1][0] > best
        assert measure(solver, softness, None)[0] == pytest.approx(best, rel=1e-5)
        assert solver.gap > 1e-4
    assert worse_at_the_end  # or this shows nothing


def test_a_limit_that_was_met_is_told(monkeypatch):
    monkeypatch.setattr(linear_solver, "_PASSES", 2)
    monkeypatch.setattr(linear, "_STRENGTHS", (30.0,))
    examples, task = tables()
    examples, valid = hold_back(examples, 0.2, 0)
    model = build_model(task, examples.data, {"n_components": 8, "hidden": (4,)}, 0)
    record = linear.blend_linear(model, examples, valid)
    assert record["gap"] > linear_solver.GAP
    assert record["stopped"] == "at the limit of passes"


def test_the_largest_value_of_a_column_is_that_of_sums():
    examples, task = planted(n=200)
    scales = []
    for data in (examples.data, repeated(examples.data, 3)):
        model = build_model(task, data, {"n_components": 8, "hidden": (4,), "scale_input": "max_abs"}, 0)
        scale_input(model.network, data, lambda record: None)
        scales.append(model.network.input_scale.numpy())
    np.testing.assert_allclose(*scales, rtol=1e-6)
