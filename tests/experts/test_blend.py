"""Blends of several models' logits."""

import numpy as np
import pytest
from scipy import sparse

from sketchnet.experts.blend import fit_blend, row_losses


def truth(kind, seed=0, n=4000, n_outputs=3):
    """(targets, their own logits), drawn from the probabilities that the logits say."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.standard_normal((n, n_outputs if kind in ("multiclass", "multilabel") else 1))
    if kind == "regression":
        return (logits[:, 0] + rng.standard_normal(n)).astype(np.float32), logits
    if kind == "multiclass":
        return (logits + rng.gumbel(size=logits.shape)).argmax(axis=1), logits
    drawn = rng.random(logits.shape) < 1 / (1 + np.exp(-logits))
    return (sparse.csr_array(drawn.astype(np.float32)) if kind == "multilabel" else drawn[:, 0].astype(int)), logits


KINDS = ["binary", "multiclass", "multilabel", "regression"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_scale_and_constants_are_found(kind):
    targets, logits = truth(kind)
    blend = fit_blend(kind, [(logits - 1) / 5], targets)
    answers = blend.apply([(logits - 1) / 5])
    if kind == "multiclass":  # constants that are equal change nothing
        answers, logits = (x - x.mean(axis=1, keepdims=True) for x in (answers, logits))
    assert abs(blend.weights[0] - 5) < 0.5
    assert np.abs(answers - logits).max() < 0.8
    assert blend.loss <= row_losses(kind, logits, targets).mean() + 1e-3  # constants are held back a little


@pytest.mark.parametrize("kind", KINDS)
def test_what_says_nothing_gets_nothing(kind):
    targets, logits = truth(kind)
    noise = np.random.default_rng(1).standard_normal(logits.shape)
    blend = fit_blend(kind, [logits, noise, -logits], targets)
    sizes = [np.std(part) * weight for part, weight in zip((logits, noise), blend.weights)]
    assert sizes[1] < 0.1 * sizes[0]
    assert blend.weights.min() >= 0
    assert blend.weights[2] < 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_two_halves_of_the_truth_are_added(kind):
    targets, logits = truth(kind)
    half = np.random.default_rng(2).standard_normal(logits.shape)
    blend = fit_blend(kind, [half, logits - half], targets)
    assert np.abs(blend.weights - 1).max() < 0.15


def test_weights_of_rows_count():
    targets, logits = truth("binary")
    weights = np.r_[np.ones(2000), np.zeros(2000)]
    half = fit_blend("binary", [logits[:2000]], targets[:2000])
    whole = fit_blend("binary", [logits], np.r_[targets[:2000], 1 - targets[2000:]], weights)
    size = logits.std() / logits[:2000].std()
    assert whole.weights[0] == pytest.approx(half.weights[0], rel=1e-2 * size)
    assert whole.loss == pytest.approx(half.loss, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_are_those_of_the_loss(kind):
    from sketchnet.experts import blend as module

    targets, logits = truth(kind, n=50)
    dense, shares = module._dense(kind, targets, logits.shape[1]), np.full(50, 1 / 50)
    _, slopes = module._loss(kind, logits, dense, shares)
    moved = logits.copy()
    moved[7] += 1e-6
    rise = module._loss(kind, moved, dense, shares)[0] - module._loss(kind, logits, dense, shares)[0]
    assert rise == pytest.approx(1e-6 * slopes[7].sum(), rel=1e-3, abs=1e-12)
