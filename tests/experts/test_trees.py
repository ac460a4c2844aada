"""The trees on generated tables: what they must learn, count, store and explain."""

import numpy as np
import pytest
from scipy import sparse

from sketchnet.data import CsrBatch
from sketchnet.errors import InputError
from sketchnet.experts.blend import row_losses
from sketchnet.experts.field_pairs import choose_pairs
from sketchnet.experts.field_statistics import FieldStatistics, draw_folds
from sketchnet.experts.fields import find_fields
from sketchnet.experts.rows import Sample, SeenColumns
from sketchnet.experts.trees import TreesExpert
from sketchnet.kernels.cpu.threads import limited

KINDS = [("binary", 1), ("multiclass", 3), ("regression", 1)]


def draw_problem(kind, n=4000, sizes=(30, 40, 5), seed=0, interaction=2.0):
    """Return a table whose targets hang on values of the first two fields together, and on a number."""
    rng = np.random.default_rng(seed)
    values = np.stack([rng.integers(0, size, n) for size in sizes], axis=1)
    number = rng.standard_normal(n)
    effects = np.random.default_rng(9)
    together = interaction * effects.standard_normal((sizes[0], sizes[1] // 8 + 1, 3))
    scores = together[values[:, 0], values[:, 1] // 8] + 1.5 * np.outer(number, [1, -1, 0])
    targets = {
        "binary": lambda: (scores[:, 0] + rng.logistic(size=n) > 0).astype(int),
        "multiclass": lambda: (scores + rng.gumbel(size=(n, 3))).argmax(axis=1),
        "regression": lambda: (scores[:, 0] + 0.3 * rng.standard_normal(n)) / scores[:, 0].std(),
    }[kind]()
    starts = np.cumsum([0, *sizes[:-1]])
    X = np.zeros((n, sum(sizes)))
    for field, start in enumerate(starts):
        X[np.arange(n), start + values[:, field]] = 1
    X = sparse.csr_array(np.c_[X, number].astype(np.float32))
    batch = CsrBatch(X.indptr, X.indices, X.data, X.shape[1])
    columns = SeenColumns.count(batch)
    rows = columns.compact(batch)
    return Sample(rows, targets, None, None, find_fields(rows, columns.ids))


def split(sample, at=3000):
    n = sample.rows.n_rows
    return sample.take(np.arange(at)), sample.take(np.arange(at, n))


def fitted(kind, n_outputs, sample=None, effort="quick"):
    train, valid = split(sample or draw_problem(kind))
    expert = TreesExpert(kind, n_outputs, effort=effort)
    return expert, expert.fit(train, valid), train, valid


@pytest.mark.parametrize(("kind", "n_outputs"), KINDS)
def test_what_a_table_says_is_learnt(kind, n_outputs):
    expert, logits, train, valid = fitted(kind, n_outputs, effort="auto")
    assert logits.dtype == np.float32
    assert logits.shape == (valid.rows.n_rows, n_outputs)
    np.testing.assert_array_equal(expert.logits(valid.rows), logits)
    loss, knows_shares = row_losses(kind, logits, valid.targets).mean(), {"binary": 0.6931, "multiclass": 1.0986}
    assert loss < 0.8 * knows_shares.get(kind, 1.0)
    expert.refit(train)
    again = row_losses(kind, expert.logits(valid.rows), valid.targets).mean()
    assert again < 1.02 * loss


def test_pairs_are_used_where_they_say_something():
    sample = draw_problem("binary", n=12_000, sizes=(10, 16, 5), interaction=3.0)
    expert, *_ = fitted("binary", 1, sample)
    assert expert.chosen["order"] == 2
    rng = np.random.default_rng(1)
    noise = Sample(sample.rows, rng.integers(0, 2, sample.rows.n_rows), None, None, sample.fields)
    expert, *_ = fitted("binary", 1, noise)
    assert expert.chosen["order"] == 1


def test_numbers_alone():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 6)).astype(np.float32)
    targets = np.sign(X[:, 0] * X[:, 1]) + 0.1 * X[:, 2]
    batch = CsrBatch(np.arange(0, 24_001, 6), np.tile(np.arange(6), 4000), X.ravel(), 6)
    columns = SeenColumns.count(batch)
    rows = columns.compact(batch)
    sample = Sample(rows, targets, None, None, find_fields(rows, columns.ids))
    assert TreesExpert.applies(sample, "regression", 1)
    _, logits, _, valid = fitted("regression", 1, sample)
    assert row_losses("regression", logits, valid.targets).mean() < 0.15


@pytest.mark.parametrize(("kind", "n_outputs"), KINDS)
def test_statistics_are_those_of_other_folds(kind, n_outputs):
    """Against the plain computation, with weights and rows that lack a field."""
    sample = draw_problem(kind, n=300, sizes=(4, 6))
    rng = np.random.default_rng(2)
    weights = rng.random(300) * 3
    fields = sample.fields.copy()
    fields[[2, 5]] = -1  # of no field, so rows lack one
    sample = Sample(sample.rows, sample.targets, weights, None, fields)
    statistics = FieldStatistics(kind, n_outputs, fields, np.array([[0, 1]]))
    features, applied = statistics.learn(sample, 7, 1), statistics.apply(sample.rows)
    folds, values = draw_folds(sample, 7, 1), statistics.read(sample.rows)
    w, y = weights * (300 / weights.sum()), np.asarray(sample.targets, float)[:, None]
    y = (y == np.arange(3)) if kind == "multiclass" else y
    prior = (w[:, None] * y).sum(axis=0) / w.sum()
    assert (values == 0).any()
    for g, group in enumerate([(0,), (1,), (0, 1)]):
        for r in range(0, 300, 7):
            same = (values[list(group)] == values[list(group), r][:, None]).all(axis=0)
            for rows, out, share in ((same & (folds != folds[r]), features, 1), (same, applied, 7 / 8)):
                mean = ((w[rows, None] * y[rows]).sum(axis=0) + 3 * prior) / (w[rows].sum() + 3)
                wanted = mean if kind == "regression" else np.log(mean / (1 - mean))
                wanted = np.r_[wanted, np.log1p(w[rows].sum() * share)]
                np.testing.assert_allclose(
                    out[r, g * (n_outputs + 1) : (g + 1) * (n_outputs + 1)], wanted, rtol=2e-5, atol=1e-6
                )
    dense = sample.rows.scipy().toarray()
    np.testing.assert_array_equal(features[:, 3 * (n_outputs + 1) :], dense[:, np.flatnonzero(fields[:-1] < 0)])


def test_a_weight_of_two_counts_as_two_rows():
    sample = draw_problem("binary", n=500)
    double = sample.take(np.r_[np.arange(500), np.arange(100)])
    weighed = Sample(sample.rows, sample.targets, np.r_[np.full(100, 2.0), np.ones(400)], None, sample.fields)
    probe = draw_problem("binary", n=50, seed=5).rows
    features = []
    for one in (double, weighed):
        statistics = FieldStatistics("binary", 1, sample.fields, np.array([[0, 1]]))
        statistics.learn(one, 0)
        features.append(statistics.apply(probe))
    # Weights are scaled to a mean of one: counts, and what shrinkage does, differ by that factor.
    log_counts = [part[:, 1:6:2] for part in features]
    assert not np.array_equal(*log_counts)
    np.testing.assert_allclose(np.expm1(log_counts[0]), 1.2 * np.expm1(log_counts[1]), rtol=1e-4, atol=1e-5)


def test_rows_of_a_group_share_a_fold():
    sample = draw_problem("binary", n=600)
    groups = np.random.default_rng(0).integers(0, 90, 600) * 1000
    folds = draw_folds(Sample(sample.rows, sample.targets, None, groups, sample.fields), 0, 0)
    assert len(np.unique(folds)) == 8
    assert all(len(np.unique(folds[groups == group])) == 1 for group in np.unique(groups))


def test_held_back_targets_choose_but_do_not_teach():
    """Labels of the held-back rows that nothing can foretell stay unforetold."""
    sample = draw_problem("binary", sizes=(2000, 3))
    targets = np.random.default_rng(3).integers(0, 2, 4000)
    _, logits, _, valid = fitted("binary", 1, Sample(sample.rows, targets, None, None, sample.fields))
    assert row_losses("binary", logits, valid.targets).mean() > 0.68


def test_pairs_that_matter_are_chosen_among_many():
    rng = np.random.default_rng(0)
    n, fields = 4000, 16
    values = rng.integers(0, 6, (n, fields))
    targets = (np.random.default_rng(1).random((6, 6)) > 0.5)[values[:, 3], values[:, 11]].astype(int)
    columns = (values + 6 * np.arange(fields)).ravel()
    rows = CsrBatch(
        np.arange(0, n * fields + 1, fields), columns.astype(np.uint32), np.ones(n * fields, np.float32), 6 * fields + 1
    )
    sample = Sample(rows, targets, None, None, np.r_[np.repeat(np.arange(fields), 6), -1].astype(np.int32))
    pairs = choose_pairs(FieldStatistics("binary", 1, sample.fields), sample, 0)
    assert len(pairs) == 66
    assert [3, 11] in pairs.tolist()
    expert, logits, _, valid = fitted("binary", 1, sample)
    assert expert.chosen["order"] == 2
    assert row_losses("binary", logits, valid.targets).mean() < 0.05


@pytest.mark.parametrize(("kind", "n_outputs"), KINDS)
def test_stored_and_restored(kind, n_outputs):
    expert, _, train, valid = fitted(kind, n_outputs)
    expert.refit(train)
    arrays, settings = expert.state()
    other = TreesExpert(kind, n_outputs)
    other.restore(arrays, settings)
    np.testing.assert_array_equal(other.logits(valid.rows), expert.logits(valid.rows))
    assert other.chosen == expert.chosen
    assert other.state()[1] == settings


def test_threads_do_not_matter():
    answers = []
    for threads in (1, 3):
        with limited(threads):
            expert, logits, train, valid = fitted("binary", 1, draw_problem("binary"), "auto")
            expert.refit(train)
            answers.append((logits, expert.logits(valid.rows), expert.state()[1]))
    np.testing.assert_array_equal(answers[0][0], answers[1][0])
    np.testing.assert_array_equal(answers[0][1], answers[1][1])
    assert answers[0][2] == answers[1][2]


@pytest.mark.parametrize(("kind", "n_outputs"), KINDS)
def test_contributions_add_up_to_the_logit(kind, n_outputs):
    """But for a constant: every row has all of its fields, so none of a feature's share is lost."""
    expert, _, _, valid = fitted(kind, n_outputs)
    rows, outputs = valid.rows, np.arange(valid.rows.n_rows) % n_outputs
    parts = expert.contributions(rows, outputs)
    assert parts.shape == (rows.n_entries,)
    sums = np.add.reduceat(parts, rows.indptr[:-1])
    rest = expert.logits(rows)[np.arange(rows.n_rows), outputs] - sums
    for output in range(n_outputs):
        assert np.ptp(rest[outputs == output]) < 1e-3
    number = rows.indices == np.flatnonzero(valid.fields[:-1] < 0)[0]
    assert np.abs(parts[number]).mean() > 3 * np.abs(parts[valid.fields[rows.indices] == 2]).mean()


def test_columns_never_seen_and_empty_rows():
    expert, *_, valid = fitted("binary", 1)
    last = valid.rows.n_columns - 1
    rows = CsrBatch(np.array([0, 0, 2]), np.array([last, 0], np.uint32), np.ones(2, np.float32), last + 1)
    assert np.isfinite(expert.logits(rows)).all()
    assert expert.contributions(rows, np.zeros(2, int))[0] == 0
    assert expert.logits(rows.rows(slice(0, 0))).shape == (0, 1)
    part = valid.rows.rows(slice(100, 140))  # whose offsets do not begin at zero
    np.testing.assert_array_equal(expert.logits(part), expert.logits(valid.rows)[100:140])


def test_where_they_apply():
    sample = draw_problem("binary", n=100)
    assert TreesExpert.applies(sample, "binary", 1)
    assert not TreesExpert.applies(sample, "multilabel", 3)
    assert not TreesExpert.applies(sample, "multiclass", 500)
    assert not TreesExpert.applies(Sample(sample.rows, sample.targets), "binary", 1)


def text_of(arrays):
    return arrays["text"].tobytes().decode()


def bytes_of(text):
    return np.frombuffer(text.encode(), np.uint8)


def damage(text, kind):
    place = {"half": len(text) // 2, "head": 300}.get(kind)
    if place:
        return text[:place]
    first, _, rest = text.partition(f"{kind}=")
    line, _, after = rest.partition("\n")
    return f"{first}{kind}={' '.join(['99999'] * len(line.split()))}\n{after}"


@pytest.mark.parametrize(
    "kind", ["half", "head", "left_child", "right_child", "split_feature", "num_leaves", "decision_type", "num_cat"]
)
def test_damaged_trees_are_refused(kind):
    expert, *_ = fitted("binary", 1)
    arrays, settings = expert.state()
    with pytest.raises(InputError):
        TreesExpert("binary", 1).restore(arrays | {"text": bytes_of(damage(text_of(arrays), kind))}, settings)


def test_a_cycle_is_refused():
    expert, *_ = fitted("binary", 1)
    arrays, settings = expert.state()
    first, _, rest = text_of(arrays).partition("left_child=")
    line, _, after = rest.partition("\n")
    numbers = line.split()
    numbers[next(i for i, number in enumerate(numbers) if int(number) > 0)] = "0"
    text = f"{first}left_child={' '.join(numbers)}\n{after}"
    with pytest.raises(InputError, match="do not make a tree"):
        TreesExpert("binary", 1).restore(arrays | {"text": bytes_of(text)}, settings)


@pytest.mark.parametrize("name", ["fields", "pairs", "sizes", "keys", "tables"])
def test_damaged_arrays_are_refused(name):
    expert, *_ = fitted("binary", 1)
    arrays, settings = expert.state()
    wrong = [arrays[name][:-1], arrays[name].astype(np.float64), None]
    if name != "pairs":
        far = arrays[name].copy()
        far.flat[0] = np.nan if name == "tables" else -5
        wrong.append(far)
    for array in wrong:
        if name == "pairs" and array is not None and len(array) == len(arrays[name]) == 0 and array.dtype == np.int64:
            continue  # nothing was cut off
        with pytest.raises(InputError):
            TreesExpert("binary", 1).restore(arrays | {name: array}, settings)


@pytest.mark.parametrize("wrong", [{"chosen": None}, {"chosen": {"order": 1.0}}])
def test_damaged_settings_are_refused(wrong):
    expert, *_ = fitted("binary", 1)
    arrays, settings = expert.state()
    with pytest.raises(InputError):
        TreesExpert("binary", 1).restore(arrays, settings | wrong)
    assert set(settings["chosen"]) == {"order", "trees", "leaves", "rate"}
    with pytest.raises(InputError, match="positive"):
        TreesExpert("binary", 1).restore(arrays, settings | {"chosen": settings["chosen"] | {"trees": "many"}})
