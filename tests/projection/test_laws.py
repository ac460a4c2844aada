"""Each scheme has the law it states: entries, unbiased norms, orthogonality. Mutants show that the checks can fail."""

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.linalg import hadamard

from sketchnet import random
from sketchnet.kernels import backend
from sketchnet.projection import SRHT, Achlioptas, CountSketch, Gaussian, Li
from tests.projection.schemes import LAWS, every_law
from tests.statistics import FAILURE, assert_counts, assert_mean, sample_size

D, K = 10_000, 512


def equal_pairs() -> sparse.csr_array:
    """A row of ones on 50 pairs of columns that lie 4096 apart: its squared norm is 100."""
    ids = np.random.default_rng(0).choice(4096, 50, replace=False)
    ids = np.concatenate([ids, ids + 4096])
    return sparse.csr_array((np.ones(100, np.float32), ids, [0, 100]), shape=(1, D))


def true_projection(operator, X):
    return operator.apply(X)


def scale_off_by_two_percent(operator, X):
    return operator.apply(X) * 1.02


def columns_modulo_4096(operator, X):
    return operator.apply(sparse.csr_array((X.data, X.indices % 4096, X.indptr), shape=X.shape))


def check_norm_is_kept(law, project=true_projection):
    """E|xP|^2 = |x|^2, over seeds, with enough of them to see a scale that is wrong by 2 %."""
    x = equal_pairs()
    # |xP|^2 / |x|^2 varies by 2/k for dense entries; Li adds (s - 3) sum(x^4) / |x|^4 / k, sparse SRHT about 3 / (60 k)
    variance = (2 + max(0, getattr(LAWS[law](K, D).sample(D, 0), "s", 3) - 3) / 100 + 3 / 60) / K
    seeds = sample_size(variance, 1.02**2 - 1)
    ratios = np.array([np.sum(project(LAWS[law](K, D).sample(D, seed), x) ** 2) / 100 for seed in range(seeds)])
    assert_mean(ratios, 1, variance)


@every_law
def test_norm_is_kept(law):
    check_norm_is_kept(law)


@every_law
@pytest.mark.parametrize("mutant", [scale_off_by_two_percent, columns_modulo_4096])
def test_norm_check_catches(law, mutant):
    with pytest.raises(AssertionError, match="is not 1"):
        check_norm_is_kept(law, mutant)


def test_gaussian_entries():
    P = Gaussian(K).sample(D, 1).block(range(4000), dtype=np.float64)
    assert stats.kstest(P.ravel() * np.sqrt(K), "norm").pvalue > FAILURE
    assert_mean((P * np.sqrt(K)).ravel() ** 2, 1, 2)


@pytest.mark.parametrize(
    ("law", "s"), [(Achlioptas(K), 3), (Achlioptas(K, s=1), 1), (Li(K), 100), (Li(K, s=2.5), 2.5), (Li(K, s=1), 1)]
)
def test_entries_of_signs(law, s):
    P = law.sample(D, 1).block(range(4000), dtype=np.float64)
    signs = np.rint(P / np.sqrt(s / K))
    assert np.allclose(P, signs * np.sqrt(s / K), rtol=1e-12)
    observed = [np.count_nonzero(signs == v) for v in (-1, 0, 1)]
    expected = [1 / (2 * s), 1 - 1 / s, 1 / (2 * s)]
    if s == 1:
        assert observed.pop(1) == 0
        expected.pop(1)
    assert_counts(observed, expected)
    # neighbours in a row and in a column do not know of each other
    assert_mean((signs[:, 1:] * signs[:, :-1]).ravel(), 0, 1 / s**2)
    assert_mean((signs[1:] * signs[:-1]).ravel(), 0, 1 / s**2)
    assert_mean((signs[:, 1:] ** 2 * signs[:, :-1] ** 2).ravel(), 1 / s**2, 1 / s**2)


def test_count_sketch_rows_have_one_sign_and_columns_are_orthogonal():
    P = CountSketch(K).sample(D, 1).block(slice(None), dtype=np.float64)
    assert (np.count_nonzero(P, axis=1) == 1).all()
    assert set(np.unique(P)) == {-1, 0, 1}
    gram = P.T @ P
    assert np.count_nonzero(gram - np.diag(np.diag(gram))) == 0
    assert_counts(np.diag(gram), [1 / K] * K)


@pytest.mark.parametrize("m", [0, 1, 3, 8, 11])
def test_subsampled_srht_of_full_size_is_an_isometry(m):
    d = 2**m
    P = SRHT(d).sample(d, 3).block(slice(None), dtype=np.float64)
    assert np.allclose(P.T @ P, np.eye(d), atol=1e-12)
    assert np.allclose(np.abs(P), d**-0.5)
    X = np.random.default_rng(0).standard_normal((20, d))
    kept = np.linalg.norm(SRHT(d).sample(d, 3).apply(X), axis=1)
    assert np.allclose(kept, np.linalg.norm(X, axis=1), rtol=1e-12)


def test_subsampled_srht_columns_are_orthogonal_when_the_width_is_a_power_of_two():
    P = SRHT(100).sample(1024, 3).block(slice(None), dtype=np.float64)
    assert np.allclose(P.T @ P, np.eye(100) * 1024 / 100, atol=1e-12)


def test_srht_frequencies_are_distinct_and_uniform():
    wide = SRHT(5000).sample(2**62, 0)._frequencies
    assert len(set(wide.tolist())) == 5000
    assert_counts(np.bincount((wide >> np.uint64(58)).astype(int), minlength=16), [1 / 16] * 16)
    # from sixteen rows, all ordered pairs of the first two picks are equally likely
    picks = np.array([SRHT(2).sample(16, seed)._frequencies for seed in range(20_000)]).astype(int)
    pairs = np.bincount(16 * picks[:, 0] + picks[:, 1], minlength=256).reshape(16, 16)
    assert (np.diag(pairs) == 0).all()
    assert_counts(pairs[~np.eye(16, dtype=bool)], [1 / 240] * 240)


@pytest.mark.parametrize("entries", ["normal", "sign"])
def test_sparse_srht_is_d_h_s(entries):
    """The block equals the product of the three matrices, S with its density, values and variance."""
    d, k, density = 500, 2000, 0.1
    operator = SRHT(k, form="sparse", density=density, entries=entries).sample(d, 5)
    assert operator.size == 512
    offsets, at, weights = operator.picks(slice(0, k), backend())
    S = np.zeros((512, k))
    S[at.astype(int), np.repeat(np.arange(k), np.diff(offsets))] = weights / np.sqrt(density)
    D = 1.0 - 2.0 * random.sign_bit_of(random.hash64(np.arange(d, dtype=np.uint64), *operator.key))
    assert np.allclose(operator.block(slice(None)), D[:, None] * hadamard(512)[:d] @ S / np.sqrt(k * 512), atol=1e-6)
    assert_mean((S != 0).ravel().astype(float), density, density * (1 - density))
    values = S[S != 0] * np.sqrt(density)
    if entries == "sign":
        assert_counts([np.count_nonzero(values == -1), np.count_nonzero(values == 1)], [0.5, 0.5])
    else:
        assert stats.kstest(values, "norm").pvalue > FAILURE


def test_sparse_srht_of_full_density_is_gaussian():
    """H is orthogonal and S normal, so D H S is again independent normal."""
    P = SRHT(4000, form="sparse", density=1.0).sample(4096, 2).block(range(100), dtype=np.float64)
    assert stats.kstest(P.ravel() * np.sqrt(4000), "norm").pvalue > FAILURE
