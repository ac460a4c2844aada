"""The columns expert: its kernels against plain references, and what it learns from generated rows."""

import numpy as np
import pytest
from scipy import sparse

from sketchnet.data import CsrBatch
from sketchnet.errors import InputError
from sketchnet.experts.blend import fit_blend, row_losses
from sketchnet.experts.column_statistics import ColumnStatistics, choose_knots, draw_folds, mean_one
from sketchnet.experts.columns import ColumnsExpert
from sketchnet.experts.rows import Sample
from sketchnet.kernels.cpu import column_statistics as kernels

KINDS = {"binary": 1, "multiclass": 4, "multilabel": 3, "regression": 1}


def problem(kind, n=600, d=400, length=12, seed=0, values="positive"):
    """Columns that speak for one output each, some more than others; values that matter little."""
    random = np.random.default_rng(seed)
    n_outputs = KINDS[kind]
    X = sparse.random_array((n, d), density=length / d, format="csr", rng=random, dtype=np.float32)
    X.data[:] = {"ones": lambda: 1, "positive": lambda: 0.5 + X.data, "signed": lambda: X.data - 0.5}[values]()
    scores = X @ (random.standard_normal((d, n_outputs)) * (1 + 2 * (random.random((d, 1)) < 0.3)))
    targets = {
        "binary": lambda: (scores[:, 0] > 0).astype(int),
        "multiclass": lambda: scores.argmax(axis=1),
        "multilabel": lambda: sparse.csr_array((scores > 1).astype(np.float32)),
        "regression": lambda: (scores[:, 0] - scores.mean()) / scores.std(),
    }[kind]()
    return Sample(CsrBatch(X.indptr, X.indices, X.data, d + 1), targets), n_outputs


def halves(sample):
    n = sample.rows.n_rows
    return sample.take(np.arange(0, n, 4)), sample.take(np.setdiff1d(np.arange(n), np.arange(0, n, 4)))


def hats(values, knots):
    """Return how near each value is to each knot, by NumPy's interpolation."""
    return np.stack([np.interp(values, knots, unit) for unit in np.eye(len(knots))], axis=1)


def dense_sums(sample, kind, n_outputs, knots, folds, without):
    """Return (own, total): own[column, output, knot], total[column, knot]."""
    rows, n = sample.rows, sample.rows.n_rows
    weights = mean_one(sample) * (folds != without)
    if kind == "multilabel":
        shares = sample.targets.toarray()
    elif kind == "regression":
        shares = sample.targets[:, None]
    else:
        shares = (sample.targets[:, None] == (np.arange(n_outputs) if n_outputs > 1 else 1)).astype(float)
    own, total = np.zeros((rows.n_columns, n_outputs, len(knots))), np.zeros((rows.n_columns, len(knots)))
    for row in range(n):
        for t in range(rows.indptr[row], rows.indptr[row + 1]):
            near = hats(rows.values[t : t + 1], knots)[0] * weights[row]
            own[rows.indices[t]] += shares[row][:, None] * near
            total[rows.indices[t]] += near
    return own, total


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("values", ["ones", "positive", "signed"])
def test_statistics_are_the_sums_of_the_other_folds(kind, values):
    sample, n_outputs = problem(kind, n=150, d=40, length=4, values=values)
    random = np.random.default_rng(1)
    sample = Sample(sample.rows, sample.targets, weights=random.random(150))
    folds, knots = draw_folds(sample, 4, random), choose_knots(sample.rows.values)
    assert len(knots) == {"ones": 1, "positive": 3, "signed": 9}[values]
    statistics = ColumnStatistics(sample, kind, n_outputs, knots, folds)
    shares = statistics.shares
    for without in (-1, 2):
        columns = random.permutation(sample.rows.n_columns)[:30]
        described = statistics.describe(columns, without)
        own, total = dense_sums(sample, kind, n_outputs, knots, folds, without)
        weights = mean_one(sample)
        scale = weights.sum() / weights[folds != without].sum()
        own, total = own * scale, total * scale
        if len(knots) > 1:
            own, total = np.dstack([own, own.sum(axis=2)]), np.c_[total, total.sum(axis=1)]
        for i, column in enumerate(columns):
            groups = slice(described.starts[i], described.starts[i + 1])
            outputs, numbers = described.outputs[groups], described.numbers[groups]
            if n_outputs > 1:
                occurs = np.flatnonzero(own[column].any(axis=1))
                assert outputs[1:].tolist() == occurs.tolist()
                expected = [(np.zeros(len(total[0])), 1.0)] + [(own[column, j], shares[j]) for j in occurs]
            else:
                expected = [(own[column, 0], shares[0])]
            whole = total[column]
            for (mine, share), got in zip(expected, numbers, strict=True):
                if kind == "regression":
                    wanted = np.r_[np.log1p(whole), mine / (1 + whole)]
                else:
                    ratio = np.log((mine / share + 0.5) / (whole + 0.5))
                    wanted = np.c_[np.log1p(mine), np.log1p(np.abs(whole - mine)), ratio].ravel()
                np.testing.assert_allclose(got, wanted, atol=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_what_it_learns_from_is_as_large_as_what_it_predicts_from(kind):
    """Columns are equally frequent here: an eighth of the rows less would look like other columns."""
    sample, n_outputs = problem(kind, n=4000, d=100, values="ones")
    folds = draw_folds(sample, 8, np.random.default_rng(0))
    statistics = ColumnStatistics(sample, kind, n_outputs, np.ones(1, np.float32), folds)
    columns = np.arange(100)
    every = statistics.describe(columns).numbers.mean(axis=0)
    for fold in range(8):
        np.testing.assert_allclose(statistics.describe(columns, fold).numbers.mean(axis=0), every, atol=0.03)


@pytest.mark.parametrize("kind", KINDS)
def test_its_logits_need_no_other_scale(kind):
    sample, n_outputs = problem(kind, n=8000, values="ones")
    valid, train = halves(sample)
    logits = ColumnsExpert(kind, n_outputs).fit(train, valid)
    raw = row_losses(kind, logits, valid.targets).mean()
    assert raw < 1.15 * fit_blend(kind, [logits], valid.targets).loss


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("n_knots", [1, 3])
def test_sums_slopes_and_shares_of_entries_are_those_of_dense_weights(several, n_knots):
    random = np.random.default_rng(0)
    n_outputs, d = (4, 20) if several else (1, 20)
    X = sparse.random_array((50, d), density=0.3, format="csr", rng=random, dtype=np.float32)
    knots = np.linspace(0.1, 0.9, n_knots).astype(np.float32)
    owners = [np.flatnonzero(random.random(n_outputs) < 0.5) for _ in range(d)] if several else [[0]] * d
    starts = np.cumsum([0] + [len(some) + several for some in owners])
    outputs = np.concatenate([np.r_[[-1] * several, some] for some in owners]).astype(np.int32)
    weights = random.standard_normal((len(outputs), n_knots)).astype(np.float32)
    group = np.array([[starts[c] for _ in range(n_outputs)] for c in range(d)])
    for c in range(d):
        for place, output in enumerate(owners[c]):
            group[c, output] = starts[c] + several + place
    near = hats(X.data, knots)
    each = np.einsum("tk,tok->to", near, weights[group[X.indices]])
    owner = np.repeat(np.arange(50), np.diff(X.indptr))
    wanted = np.zeros((50, n_outputs))
    np.add.at(wanted, owner, each)
    place = (X.indptr, X.indices, X.data, starts, outputs)
    np.testing.assert_allclose(kernels.add_up(*place, weights, knots, n_outputs), wanted, atol=1e-5)

    slopes = random.standard_normal((50, n_outputs)).astype(np.float32)
    wanted = np.zeros(weights.shape)
    for output in range(n_outputs):
        np.add.at(wanted, group[X.indices, output], near * slopes[owner, output][:, None])
    out = np.zeros_like(weights)
    kernels.slopes_of_weights(*place, knots, slopes, out)
    np.testing.assert_allclose(out, wanted, atol=1e-4)

    chosen = random.integers(0, n_outputs, 50)
    got = kernels.entry_weights(X.indptr, X.indices, X.data, chosen, *place[3:], weights, knots, several)
    np.testing.assert_allclose(got, each[np.arange(X.nnz), chosen[owner]], atol=1e-5)


def test_columns_are_numbered_and_the_numbers_taken_back():
    indices, numbers = np.array([7, 3, 7, 9, 3]), np.full(10, -1, np.int32)
    columns, places = kernels.number_columns(indices, numbers)
    assert columns[places].tolist() == indices.tolist()
    assert columns.tolist() == [7, 3, 9]
    assert (numbers == -1).all()


def test_rows_of_a_group_share_a_fold():
    sample, _ = problem("binary", n=200)
    groups = np.random.default_rng(0).integers(0, 60, 200)
    folds = draw_folds(Sample(sample.rows, sample.targets, groups=groups), 8, np.random.default_rng(0))
    assert all(len(set(folds[groups == group])) == 1 for group in groups)
    assert len(set(folds)) == 8
    assert np.bincount(draw_folds(sample, 8, np.random.default_rng(0))).tolist() == [25] * 8


def law(n=6000, d=1500, length=15, seed=0):
    """Rows of noise; in those of the second class a fifth of the columns have larger values."""
    random = np.random.default_rng(seed)
    X = sparse.random_array((n, d), density=length / d, format="csr", rng=random, dtype=np.float32)
    X.data[:] = random.standard_normal(X.nnz)
    signal, targets = random.random(d) < 0.2, np.arange(n) % 2
    marked = signal[X.indices] & (np.repeat(targets, np.diff(X.indptr)) == 1)
    X.data[marked] += 3 + random.standard_normal(marked.sum())
    return Sample(CsrBatch(X.indptr, X.indices, X.data, d + 1), targets), signal


def best_answers(train, test, signal):
    """Return the logits of who knows the law, and has seen the same rows."""
    ratio = lambda v: -0.5 * np.log(2) - (v - 3) ** 2 / 4 + v**2 / 2  # noqa: E731
    second = np.repeat(train.targets, np.diff(train.rows.indptr)) == 1
    seen = np.bincount(train.rows.indices[second], ratio(train.rows.values[second].astype(float)), train.rows.n_columns)
    chance = 1 / (1 + np.exp(-(seen + np.log(0.2 / 0.8))))[test.rows.indices]
    each = np.log1p(chance * (np.exp(ratio(test.rows.values.astype(float))) - 1))
    return np.add.reduceat(np.r_[each, 0], test.rows.indptr[:-1])[:, None]


def test_it_nearly_reaches_the_limit_where_values_have_a_law():
    sample, signal = law()
    test, rest = halves(sample)
    valid, train = halves(rest)
    expert = ColumnsExpert("binary", 1)
    expert.fit(train, valid)
    expert.refit(rest)
    limit = row_losses("binary", best_answers(rest, test, signal), test.targets).mean()
    loss = row_losses("binary", expert.logits(test.rows), test.targets).mean()
    assert limit < 0.25
    assert loss < limit + 0.04


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("values", ["ones", "positive"])
def test_it_learns(kind, values):
    sample, n_outputs = problem(kind, n=3000, values=values)
    valid, train = halves(sample)
    expert = ColumnsExpert(kind, n_outputs)
    logits = expert.fit(train, valid)
    assert logits.shape == (valid.rows.n_rows, n_outputs)
    assert logits.dtype == np.float32
    assert set(expert.chosen) == {"part"}
    targets = sample.targets.toarray() if kind == "multilabel" else sample.targets
    shares = targets.mean(axis=0) if kind != "multiclass" else np.bincount(targets) / len(targets)
    nothing = 0 if kind == "regression" else np.log(shares if kind == "multiclass" else shares / (1 - shares))
    bare = row_losses(kind, np.zeros_like(logits) + np.float32(nothing), valid.targets).mean()
    assert row_losses(kind, logits, valid.targets).mean() < 0.85 * bare
    np.testing.assert_allclose(expert.logits(valid.rows), logits, atol=1e-4)


def fitted(kind="multiclass", **changes):
    sample, n_outputs = problem(kind, n=800, **changes)
    valid, train = halves(sample)
    expert = ColumnsExpert(kind, n_outputs, seed=3)
    expert.fit(train, valid)
    return expert, train, valid


@pytest.mark.parametrize("kind", KINDS)
def test_state_restores_the_same_logits(kind):
    expert, _, valid = fitted(kind)
    arrays, settings = expert.state()
    other = ColumnsExpert(kind, KINDS[kind])
    other.restore({name: array.copy() for name, array in arrays.items()}, settings)
    np.testing.assert_array_equal(other.logits(valid.rows), expert.logits(valid.rows))
    assert other.chosen == expert.chosen


@pytest.mark.parametrize("kind", KINDS)
def test_contributions_add_up_to_the_logits(kind):
    expert, _, valid = fitted(kind)
    rows, logits = valid.rows, expert.logits(valid.rows)
    bias = expert.state()[0]["bias"]
    for output in range(KINDS[kind]):
        added = expert.contributions(rows, np.full(rows.n_rows, output))
        sums = np.bincount(np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr)), added, rows.n_rows)
        np.testing.assert_allclose(sums + bias[output], logits[:, output], atol=1e-4)


def test_slices_of_rows_and_threads_change_nothing(monkeypatch):
    logits = []
    for number in ("1", "2"):
        monkeypatch.setenv("SKETCHNET_THREADS", number)
        monkeypatch.setattr("sketchnet.kernels.cpu.threads._SMALL", 1)
        expert, _, valid = fitted()
        logits.append(expert.logits(valid.rows))
    np.testing.assert_array_equal(*logits)
    np.testing.assert_array_equal(expert.logits(valid.rows.rows(slice(20, 70))), logits[0][20:70])


def test_held_back_rows_are_in_no_statistics():
    """A column that only they have counts as one never seen, although it tells their class."""
    sample, _ = problem("binary", n=800)
    valid, train = halves(sample)
    d = sample.rows.n_columns
    wide = [CsrBatch(*part.rows.arrays, d + 2) for part in (train, valid)]
    told = np.where(wide[1].indices == wide[1].indices[0], d, wide[1].indices)
    rows = CsrBatch(wide[1].indptr, told, wide[1].values, d + 2)
    expert = ColumnsExpert("binary", 1)
    expert.fit(Sample(wide[0], train.targets), Sample(rows, valid.targets))
    one = lambda c: CsrBatch(np.array([0, 1]), np.array([c]), np.ones(1, np.float32), d + 2)  # noqa: E731
    np.testing.assert_array_equal(expert.logits(one(d)), expert.logits(one(d + 1)))
    assert np.abs(expert.logits(one(d)) - expert.state()[0]["bias"]).max() < 2


def test_empty_rows_have_the_bias():
    expert, _, valid = fitted()
    empty = CsrBatch(np.zeros(3, np.int64), valid.rows.indices[:0], valid.rows.values[:0], valid.rows.n_columns)
    np.testing.assert_array_equal(expert.logits(empty), np.tile(expert.state()[0]["bias"], (2, 1)))


def test_statistics_of_weighted_rows_are_those_of_repeated_ones():
    sample, n_outputs = problem("multiclass")
    twice = sample.take(np.r_[np.arange(600), np.arange(300)])
    weighted = Sample(sample.rows, sample.targets, weights=np.repeat([2.0, 1.0], 300))
    knots = choose_knots(sample.rows.values)
    columns = np.arange(sample.rows.n_columns)
    one, other = (ColumnStatistics(part, "multiclass", n_outputs, knots) for part in (twice, weighted))
    # Weights have mean one: 900 rows count as 600, so what is the same is each share, not each sum.
    np.testing.assert_allclose(one._sums, other._sums * 1.5, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one.shares, other.shares, atol=1e-3)
    assert one.describe(columns).outputs.tolist() == other.describe(columns).outputs.tolist()


def test_a_fresh_expert_learns_by_what_was_chosen():
    expert, train, valid = fitted()
    logits = []
    for part in (0.5, 1.0):
        fresh = ColumnsExpert("multiclass", 4, seed=3)
        fresh.chosen = {"part": part}
        fresh.refit(train)
        logits.append(fresh.logits(valid.rows))
    losses = [row_losses("multiclass", some, valid.targets).mean() for some in logits]
    assert max(losses) < 0.98 * np.log(4)
    assert not np.array_equal(*logits)
    expert.refit(train)  # which keeps its function
    np.testing.assert_allclose(
        row_losses("multiclass", expert.logits(valid.rows), valid.targets).mean(), min(losses), atol=0.1
    )


def test_which_rows_are_worth_a_trial():
    def sample(n, d, length, ones=True, fields=None):
        rng = np.random.default_rng(0)
        indices = rng.integers(0, d, n * length).astype(np.int32)
        values = np.ones(n * length, np.float32) if ones else rng.standard_normal(n * length).astype(np.float32)
        return Sample(CsrBatch(np.arange(n + 1) * length, indices, values, d), np.zeros(n), fields=fields)

    applies = lambda *args, **kwargs: ColumnsExpert.applies(sample(*args, **kwargs), "binary", 1)  # noqa: E731
    assert applies(2000, 20_000, 100)
    assert applies(40_000, 20_000, 3, ones=False)
    assert not applies(40_000, 20_000, 3)  # categories
    assert not applies(2000, 20_000, 100, fields=np.zeros(20_000, int))
    assert not applies(2000, 500, 100, ones=False)  # dense
    assert not applies(3000, 5000, 20)  # few


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("starts", lambda a: a[::-1].copy()),
        ("starts", lambda a: a.astype(np.int32)),
        ("outputs", lambda a: a + 9),
        ("weights", lambda a: a * np.nan),
        ("weights", lambda a: a[:-1]),
        ("knots", lambda a: a[::-1].copy()),
        ("bias", lambda a: a[:-1]),
        ("norm", lambda a: a[:1]),
    ],
)
def test_arrays_that_cannot_be_its_own_are_refused(name, change):
    expert, _, _ = fitted()
    arrays, settings = expert.state()
    with pytest.raises(InputError, match="columns are not usable"):
        ColumnsExpert("multiclass", 4).restore({**arrays, name: change(arrays[name])}, settings)
    with pytest.raises(InputError, match="columns are not usable"):
        ColumnsExpert("multiclass", 4).restore(arrays, {})
