"""Small networks: kernels and layers against references, and what the three experts learn."""

import json

import numpy as np
import pytest
import torch
from scipy import sparse

from sketchnet.data import CsrBatch
from sketchnet.errors import InputError
from sketchnet.experts.blend import row_losses
from sketchnet.experts.mlp import MLP
from sketchnet.experts.network import DenseExpert, VectorsExpert, WeightsExpert
from sketchnet.experts.rows import Sample, SeenColumns
from sketchnet.kernels.cpu import bags
from sketchnet.kernels.cpu import mlp as mlp_kernels

EXPERTS = [VectorsExpert, WeightsExpert, DenseExpert]
KINDS = ["binary", "multiclass", "multilabel", "regression"]


def as_rows(X):
    X = sparse.csr_array(X)
    return CsrBatch(X.indptr.astype(np.int64), X.indices.astype(np.uint32), X.data.astype(np.float32), X.shape[1])


def bag_batch(seed=0, n=30, d=50, width=8):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, d), density=0.2, format="csr", rng=rng, dtype=np.float32)
    X.data -= 0.5
    numbers = rng.permutation(n)[:20]
    return as_rows(X), X[numbers].toarray(), numbers, rng.standard_normal((d, width)).astype(np.float32), rng


def test_bags_sum_values_times_vectors():
    rows, dense, numbers, table, _ = bag_batch()
    sums, squares = np.empty((2, len(numbers), 8), np.float32)
    bags.sum_bags(*rows.arrays, numbers, table, sums, squares)
    np.testing.assert_allclose(sums, dense @ table, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(squares, dense**2 @ table**2, rtol=1e-4, atol=1e-5)


def test_steps_of_vectors_are_adagrad_entry_by_entry():
    rows, dense, numbers, table, rng = bag_batch()
    by_sum, by_pair = rng.standard_normal((2, len(numbers), 8)).astype(np.float32)
    expected, sizes = table.astype(np.float64), np.zeros(len(table))
    own = rng.random(len(table)).astype(np.float32)
    for row, pull, pair in zip(dense, by_sum, by_pair):
        for column in np.flatnonzero(row):
            slope = row[column] * pull - row[column] ** 2 * pair * expected[column]
            sizes[column] += np.mean(slope**2)
            expected[column] -= 0.1 * own[column] * slope / np.sqrt(sizes[column])
    rates = np.stack([own, np.zeros_like(own)], axis=1)
    bags.step_vectors(*rows.arrays, numbers, by_sum, by_pair, 0.1, table, rates)
    np.testing.assert_allclose(table, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(rates[:, 1], sizes, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("link", [bags.SIGMOID, bags.SOFTMAX, bags.IDENTITY])
def test_weights_are_learnt_by_adagrad_row_by_row(link):
    rows, dense, numbers, _, rng = bag_batch()
    targets, row_weights = rng.random((20, 3)).astype(np.float32), rng.random(20).astype(np.float32)
    weights, bias = np.zeros((50, 3)), np.zeros(3)
    seen, bias_seen = np.zeros((50, 3)), np.zeros(3)
    for row, target, row_weight in zip(dense, targets, row_weights):
        z = row @ weights + bias
        odds = np.exp(z) / np.exp(z).sum()
        answers = {bags.SIGMOID: 1 / (1 + np.exp(-z)), bags.SOFTMAX: odds, bags.IDENTITY: z}[link]
        slopes = row_weight * (answers - target)
        bias_seen += slopes**2
        bias -= 0.5 * slopes / np.sqrt(bias_seen)
        seen += np.outer(row, slopes) ** 2
        weights -= 0.2 * np.outer(row, slopes) / np.sqrt(seen + 1e-30)
    table, constants = np.zeros((50, 3), np.float32), np.zeros(3, np.float32)
    sums = np.zeros((50, 3), np.float32), np.zeros(3, np.float32)
    bags.learn_weights(*rows.arrays, numbers, targets, row_weights, link, table, constants, *sums, 0.2, 0.5)
    np.testing.assert_allclose(table, weights, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(constants, bias, rtol=1e-3, atol=1e-4)


def test_rows_are_filled_centred_and_scaled():
    rows, dense, numbers, _, rng = bag_batch()
    centres, scales = rng.random((2, 40)).astype(np.float32)  # columns from 40 on are left out
    out = np.empty((20, 40), np.float32)
    bags.fill_rows(*rows.arrays, numbers, centres, scales, out)
    np.testing.assert_allclose(out, (dense[:, :40] - centres) * scales, rtol=1e-4, atol=1e-6)


def torch_peer(mlp, widths, deep):
    """The same network in torch, its parameters in the order of the MLP's own."""
    layers = [] if deep else [torch.nn.BatchNorm1d(widths[0])]
    for n_in, n_out in zip(widths[:-2], widths[1:-1]):
        layers += [torch.nn.Linear(n_in, n_out), *([torch.nn.BatchNorm1d(n_out)] if deep else []), torch.nn.ReLU()]
    peer = torch.nn.Sequential(*layers, torch.nn.Linear(*widths[-2:]))
    weights, at = torch.from_numpy(mlp.weights.copy()), 0
    with torch.no_grad():
        for layer in peer:
            for name, parameter in layer.named_parameters():
                part, at = weights[at : at + parameter.numel()], at + parameter.numel()
                is_matrix = isinstance(layer, torch.nn.Linear) and name == "weight"
                parameter.copy_(part.reshape(parameter.shape[::-1]).T if is_matrix else part)
    assert at == len(weights)
    return peer


@pytest.mark.parametrize("deep", [False, True])
def test_the_dense_network_has_the_slopes_of_torch(deep):
    widths, rng = [6, 8, 8, 3], np.random.default_rng(0)
    mlp = MLP(widths, deep=deep, seed=1)
    peer = torch_peer(mlp, widths, deep)
    for _ in range(4):
        x, pull = rng.standard_normal((2, 40, 6)).astype(np.float32)
        pull = pull[:, :3].copy()
        theirs = torch.from_numpy(x.copy()).requires_grad_()
        peer.zero_grad()
        answer = peer(theirs)
        answer.backward(torch.from_numpy(pull))
        np.testing.assert_allclose(mlp.forward(x, True), answer.detach(), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(mlp.backward(pull), theirs.grad, rtol=1e-3, atol=1e-4)
        slopes = [p.grad.T.reshape(-1) if p.ndim == 2 else p.grad for p in peer.parameters()]
        np.testing.assert_allclose(mlp._slopes, torch.cat(slopes), rtol=1e-3, atol=1e-4)
    peer.eval()
    np.testing.assert_allclose(mlp.forward(x), peer(torch.from_numpy(x)).detach(), rtol=3e-2, atol=3e-2)


def test_a_step_is_that_of_adamw():
    rng = np.random.default_rng(0)
    weights = rng.standard_normal(50).astype(np.float32)
    expected, first, second = weights.astype(np.float64), 0.0, 0.0
    moments = np.zeros((2, 50), np.float32)
    for step in range(1, 6):
        slopes = rng.standard_normal(50).astype(np.float32)
        first, second = 0.9 * first + 0.1 * slopes, 0.999 * second + 0.001 * slopes**2
        expected *= 1 - 0.01 * 0.3
        expected -= 0.01 * first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        mlp_kernels.step_adamw(weights, slopes, moments, 0.01, 0.3, step)
    np.testing.assert_allclose(weights, expected, rtol=1e-4, atol=1e-5)


def test_a_share_is_dropped_and_the_rest_grows():
    x = np.full((400, 100), 2.0, np.float32)
    x[:, 50:] = -2
    mlp_kernels.drop(x, np.float32(0), np.uint32(0.3 * 2**32), np.uint32(7))
    assert np.all(x[:, 50:] == 0)
    assert set(np.unique(x[:, :50])) == {0, np.float32(2 / 0.7)}
    assert abs((x[:, :50] == 0).mean() - 0.3) < 0.01
    assert np.corrcoef(x[:-1, :50].ravel(), x[1:, :50].ravel())[0, 1] < 0.03
    y = np.full((400, 100), 2.0, np.float32)
    mlp_kernels.drop(y, np.float32(0), np.uint32(0.3 * 2**32), np.uint32(8))
    assert 0.5 < (x[:, :50] == y[:, :50]).mean() < 0.65


def problem(expert, kind, n=2500, seed=0):
    """Train and held-back rows whose targets want what the expert is for; values of any size."""
    rng = np.random.default_rng(seed)
    if expert is VectorsExpert:  # two fields that mean something together only
        a, b = rng.integers(0, 30, n), rng.integers(0, 30, n)
        X = sparse.csr_array((np.full(2 * n, 7.0), np.stack([a, 30 + b], 1).ravel(), np.arange(n + 1) * 2), (n, 60))
        scores = np.stack([(a + k) % 3 == b % 3 for k in range(3)], axis=1).astype(float)
    else:
        d, density = (400, 0.12) if expert is WeightsExpert else (40, 0.4)
        X = sparse.random_array((n, d), density=density, format="csr", rng=rng)
        X.data = rng.random(X.nnz) * 7
        scores = X[:, :10] @ rng.standard_normal((10, 3)) if expert is DenseExpert else X @ rng.standard_normal((d, 3))
        scores = (scores - scores.mean(axis=0)) / scores.std(axis=0)
        scores = np.abs(scores) - 0.7 if expert is DenseExpert else scores
    targets = {
        "binary": lambda: (scores[:, 0] > 0).astype(int),
        "multiclass": lambda: scores.argmax(axis=1),
        "multilabel": lambda: sparse.csr_array((scores > 0).astype(np.float32)),
        "regression": lambda: (scores[:, 0] - scores[:, 0].mean()) / scores[:, 0].std(),
    }[kind]()
    rows = SeenColumns.count(as_rows(X)).compact(as_rows(X))
    sample, cut = Sample(rows, targets), n * 4 // 5
    return sample.take(np.arange(cut)), sample.take(np.arange(cut, n)), 3 if kind in ("multiclass", "multilabel") else 1


MOST = {VectorsExpert: 0.25, WeightsExpert: 0.8, DenseExpert: 0.8}  # of the loss of knowing nothing but the means


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("Expert", EXPERTS)
def test_it_learns_and_comes_back_from_its_state(Expert, kind):
    train, valid, n_outputs = problem(Expert, kind)
    assert Expert.applies(train, kind, n_outputs) or (Expert is VectorsExpert and n_outputs > 2)
    expert = Expert(kind, n_outputs, seed=3)
    logits = expert.fit(train, valid)
    assert logits.shape == (valid.rows.n_rows, n_outputs)
    assert logits.dtype == np.float32
    constant = Expert(kind, n_outputs)
    base = constant_logits(kind, train, valid, n_outputs)
    loss, nothing = (row_losses(kind, z, valid.targets).mean() for z in (logits, base))
    assert loss < MOST[Expert] * nothing, (loss, nothing)
    np.testing.assert_array_equal(expert.logits(valid.rows), logits)
    arrays, settings = expert.state()
    back = Expert(kind, n_outputs)
    back.restore({name: array.copy() for name, array in arrays.items()}, json.loads(json.dumps(settings)))
    np.testing.assert_array_equal(back.logits(valid.rows), logits)
    back.refit(train)
    assert row_losses(kind, back.logits(valid.rows), valid.targets).mean() < max(1.3 * loss, 0.1)
    assert constant.chosen == {}


def constant_logits(kind, train, valid, n_outputs):
    from sketchnet.experts.network import Targets
    from sketchnet.experts.readers import prior_logits

    mean = Targets(kind, train, n_outputs).mean()
    return np.repeat(prior_logits(kind, mean)[None], valid.rows.n_rows, axis=0)


@pytest.mark.parametrize("Expert", EXPERTS)
def test_the_same_seed_gives_the_same_bits_whatever_the_threads(Expert, monkeypatch):
    train, valid, n_outputs = problem(Expert, "multiclass", n=800)
    found = []
    for number in ("1", "2"):
        monkeypatch.setenv("SKETCHNET_THREADS", number)
        found.append(Expert("multiclass", n_outputs, seed=5).fit(train, valid))
    assert np.array_equal(*found)
    assert not np.array_equal(found[0], Expert("multiclass", n_outputs, seed=6).fit(train, valid))


@pytest.mark.parametrize("Expert", EXPERTS)
def test_columns_that_did_not_occur_mean_nothing(Expert):
    train, _, _ = problem(Expert, "binary", n=800)
    kept = train.rows.scipy()[:, : train.rows.n_columns]
    d = train.rows.n_columns
    wider = CsrBatch(kept.indptr.astype(np.int64), kept.indices.astype(np.uint32), kept.data, d + 3)
    expert = Expert("binary", 1)
    expert.chosen = {"epochs": 1.0}
    expert.refit(Sample(wider, train.targets))
    plain = np.array([[0.0] * (d + 3), [1.0] + [0.0] * (d + 2)])
    strange = plain.copy()
    strange[:, d:] = 9
    np.testing.assert_array_equal(expert.logits(as_rows(strange)), expert.logits(as_rows(plain)))
    effects = expert.contributions(as_rows(strange), np.zeros(2, int))
    assert np.all(effects[np.isin(as_rows(strange).indices, [d, d + 1, d + 2])] == 0)


@pytest.mark.parametrize("Expert", EXPERTS)
def test_contributions_are_slopes_times_values(Expert):
    train, valid, n_outputs = problem(Expert, "multiclass", n=800)
    expert = Expert("multiclass", n_outputs)
    expert.fit(train, valid)
    rows = valid.rows.rows(slice(3, 13))
    outputs = np.arange(10) % 3
    effects = expert.contributions(rows, outputs)
    assert effects.shape == (rows.n_entries,)
    owners = np.repeat(np.arange(10), np.diff(rows.indptr))
    picked = np.arange(10), outputs
    step, close = 2e-3, []
    for entry in range(0, rows.n_entries, max(1, rows.n_entries // 20)):
        up, down = (changed_logits(expert, rows, entry, factor) for factor in (1 + step, 1 - step))
        slope = (up - down)[picked][owners[entry]] / (2 * step)
        close.append(effects[entry] == pytest.approx(slope, rel=0.1, abs=0.02))
    assert np.mean(close) >= 0.9  # rectified units have kinks
    if Expert is WeightsExpert:
        bias = expert.state()[0]["bias"]
        np.testing.assert_allclose(
            np.bincount(owners, effects, 10) + bias[outputs], expert.logits(rows)[picked], rtol=1e-4, atol=1e-4
        )


def changed_logits(expert, rows, entry, factor):
    values = rows.values.copy()
    values[entry] *= factor
    return expert.logits(CsrBatch(rows.indptr, rows.indices, values, rows.n_columns)).astype(np.float64)


@pytest.mark.parametrize("Expert", EXPERTS)
def test_rows_of_no_weight_teach_nothing(Expert):
    """Rows with random targets, as many as the others, at a weight of 0."""
    train, valid, _ = problem(Expert, "binary", n=3000)
    noise = np.arange(train.rows.n_rows) % 2 == 0
    targets = np.where(noise, 1 - train.targets, train.targets)
    losses = []
    for weights in (np.where(noise, 0.0, 2.0), None):
        expert = Expert("binary", 1)
        logits = expert.fit(Sample(train.rows, targets, weights), valid)
        losses.append(row_losses("binary", logits, valid.targets).mean())
    assert losses[0] < min(0.67, losses[1] - 0.02)


@pytest.mark.parametrize("Expert", EXPERTS)
def test_empty_rows_and_no_rows(Expert):
    train, valid, _ = problem(Expert, "binary", n=500)
    expert = Expert("binary", 1)
    expert.fit(train, valid)
    empty = CsrBatch(np.zeros(4, np.int64), np.empty(0, np.uint32), np.empty(0, np.float32), train.rows.n_columns)
    logits = expert.logits(empty)
    assert np.isfinite(logits).all()
    assert (logits == logits[0]).all()
    assert expert.logits(empty.rows(slice(0, 0))).shape == (0, 1)
    assert expert.contributions(empty, np.zeros(3, int)).shape == (0,)
    expert.refit(Sample(empty, np.array([0, 1, 1])))
    assert np.isfinite(expert.logits(empty)).all()


@pytest.mark.parametrize("Expert", EXPERTS)
def test_a_state_that_cannot_be_is_refused(Expert):
    train, valid, _ = problem(Expert, "binary", n=500)
    expert = Expert("binary", 1)
    expert.fit(train, valid)
    arrays, settings = expert.state()
    name = next(iter(arrays))
    bad = [
        ({}, settings),
        (dict(list(arrays.items())[1:]), settings),
        (arrays | {name: arrays[name][..., None]}, settings),
        (arrays | {name: arrays[name].astype(np.float64)}, settings),
        (arrays | {name: np.full_like(arrays[name], np.nan)}, settings),
        (arrays | {"more": np.zeros(3, np.float32)}, settings),
        (arrays, {}),
        (arrays, settings | {"hidden": [3.5]}),
        (arrays, settings | {"hidden": [10**9, 10**9]}),
        (arrays, settings | {"chosen": {"epochs": float("nan")}}),
    ]
    for some, what in bad:
        other = Expert("binary", 1)
        with pytest.raises(InputError, match=Expert.name):
            other.restore(some, what)
        with pytest.raises(InputError, match="learnt nothing"):
            other.logits(train.rows)
    with pytest.raises(InputError):
        Expert("multiclass", 4).restore(arrays, settings)


def test_where_each_applies():
    def sample(d, nnz):
        n = 300
        ids = np.sort(np.random.default_rng(0).permuted(np.tile(np.arange(d), (n, 1)), axis=1)[:, :nnz], axis=1)
        rows = CsrBatch(np.arange(n + 1) * nnz, ids.ravel().astype(np.uint32), np.ones(n * nnz, np.float32), d + 1)
        return Sample(rows, np.zeros(n, int))

    table, text, image, single = sample(2000, 10), sample(5000, 100), sample(300, 100), sample(50, 1)

    def applies(part, n):
        return [Expert.applies(part, "binary" if n == 1 else "multiclass", n) for Expert in EXPERTS]

    assert applies(table, 1) == applies(table, 20) == [True, False, False]
    assert applies(text, 1) == [True, True, False]
    assert applies(text, 20) == [False, True, False]
    assert applies(image, 10) == [False, False, True]
    assert applies(single, 1) == [False, False, False]
