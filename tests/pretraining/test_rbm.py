"""The laws of an RBM against sums over all its states, integrals, and large samples."""

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from sketchnet.data import CsrBatch
from sketchnet.data.csr import sparse_rows
from sketchnet.errors import InputError
from sketchnet.pretraining import RBM, RBMConfig, units
from sketchnet.pretraining.units import UNITS
from tests.pretraining.enumeration import bits, contrastive_divergence, energy, joint, sequences, states, tiny_rbm
from tests.statistics import assert_counts, assert_mean, sample_size

LENGTH = 3
discrete = pytest.mark.parametrize("visible", ["binary", "poisson"])


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def tiny(visible, hidden="binary"):
    return tiny_rbm(visible, hidden, n_visible=3 if visible == "poisson" else 4)


# -- conditional laws and the free energy


@discrete
def test_conditional_means_are_those_of_the_joint_law(visible):
    rbm = tiny(visible)
    p, v, h = joint(rbm, LENGTH), states(rbm, LENGTH), bits(3)
    assert torch.allclose(rbm.hidden_mean(v), (p / p.sum(1, keepdim=True)) @ h)
    length = torch.full((len(h),), float(LENGTH), dtype=torch.float64)
    assert torch.allclose(rbm.visible_mean(h, length), (p / p.sum(0)).t() @ v)


def test_gaussian_conditional_means_are_those_of_the_energy():
    """Of one unit, by integrals; of the other side, given any visible state, by the sum."""
    rbm = tiny_rbm("gaussian", "gaussian", n_visible=1, n_hidden=1)
    for value in (-1.5, 0.3):
        at = torch.tensor([[value]], dtype=torch.float64)
        for mean, density in (
            (rbm.visible_mean(at), lambda x, at=at: energy(rbm, torch.tensor([[x]]).double(), at)),
            (rbm.hidden_mean(at), lambda x, at=at: energy(rbm, at, torch.tensor([[x]]).double())),
        ):
            moments = [
                integrate.quad(lambda x, k=k, d=density: x**k * np.exp(-d(x).item()), -12, 12)[0] for k in range(3)
            ]
            assert float(mean) == pytest.approx(moments[1] / moments[0])
            assert moments[2] / moments[0] - (moments[1] / moments[0]) ** 2 == pytest.approx(1.0)
    rbm = tiny("gaussian")
    v = torch.randn(5, 4, generator=generator(), dtype=torch.float64)
    assert torch.allclose(rbm.hidden_mean(v), torch.softmax(-energy(rbm, v, bits(3)), 1) @ bits(3))


@pytest.mark.parametrize("visible", ["binary", "gaussian", "poisson"])
def test_free_energy_sums_up_hidden_states(visible):
    rbm = tiny(visible)
    v = torch.randn(6, 4, generator=generator(), dtype=torch.float64) if visible == "gaussian" else states(rbm, LENGTH)
    assert torch.allclose(rbm.free_energy(v), -torch.logsumexp(-energy(rbm, v, bits(3)), 1))
    batch = sparse_rows(v.numpy())
    assert torch.allclose(rbm.free_energy(batch), rbm.free_energy(v))


def test_free_energy_of_gaussian_hidden_units_is_an_integral():
    rbm = tiny_rbm("binary", "gaussian", n_visible=4, n_hidden=1)
    for v in bits(4)[::3]:
        whole = integrate.quad(
            lambda h, v=v: np.exp(-energy(rbm, v[None], torch.tensor([[h]]).double()).item()), -20, 20
        )
        assert float(rbm.free_energy(v[None])) == pytest.approx(-np.log(whole[0] / np.sqrt(2 * np.pi)))


@pytest.mark.parametrize(("visible", "hidden"), [("gaussian", "relu"), ("relu", "binary")])
def test_rectified_units_have_no_free_energy(visible, hidden):
    rbm = tiny(visible, hidden)
    assert not rbm.has_free_energy
    with pytest.raises(InputError, match=f"no free energy for {visible} visible and {hidden} hidden units"):
        rbm.free_energy(torch.ones(1, 4))


# -- samples


def test_binary_samples_follow_their_law():
    rbm, n = tiny("binary"), 100_000
    v, h, powers = bits(4)[5], bits(3)[3], 2 ** torch.arange(4)
    p = joint(rbm)
    drawn = rbm.sample_hidden(v.expand(n, 4), generator()).long() @ powers[:3].flip(0)
    assert_counts(torch.bincount(drawn, minlength=8).tolist(), (p[5] / p[5].sum()).tolist())
    drawn = rbm.sample_visible(h.expand(n, 3), generator()).long() @ powers.flip(0)
    assert_counts(torch.bincount(drawn, minlength=16).tolist(), (p[:, 3] / p[:, 3].sum()).tolist())


@pytest.mark.parametrize("one_by_one", [True, False])
def test_poisson_samples_are_documents_of_their_lengths(one_by_one, monkeypatch):
    """Patterns of counts against the probabilities of all the sequences that lead to them."""
    monkeypatch.setattr(units, "_LONG", 1 << 16 if one_by_one else 0)
    rbm, n = tiny("poisson"), 100_000
    h = bits(3)[[3, 3, 3, 6]].repeat(n, 1)
    length = torch.tensor([LENGTH, 0, 1, 2.0]).repeat(n)
    drawn = rbm.sample_visible(h, generator(), length)
    assert torch.equal(drawn.sum(1), length.double())
    for first, words in ((0, LENGTH), (3, 2)):
        p = joint(rbm, words)[:, 3 if first == 0 else 6]
        codes = sequences(3, words) @ torch.tensor([1.0, 10.0, 100.0]).double()
        found = drawn[first::4] @ torch.tensor([1.0, 10.0, 100.0]).double()
        kinds = codes.unique()
        assert_counts([int((found == k).sum()) for k in kinds], [float((p[codes == k] / p.sum()).sum()) for k in kinds])


def test_memory_does_not_follow_the_words_of_a_document():
    rbm, n = tiny("poisson"), 2**50  # words, which could not be drawn one by one
    drawn = rbm.sample_visible(bits(3)[[3]], generator(), torch.tensor([n]).double())[0]
    assert drawn.sum() == n
    expected = rbm.visible_mean(bits(3)[[3]], torch.tensor([n]).double())[0]
    assert ((drawn - expected).abs() < 10 * expected.sqrt()).all()


@pytest.mark.parametrize("x", [-1.5, -0.5, 0.0, 0.7, 3.0])
def test_noisy_rectified_units_have_variance_sigmoid(x):
    """max(0, x + N(0, sigmoid(x))): its moments, by integrals over the noise."""
    s = np.sqrt(1 / (1 + np.exp(-x)))
    m1, m2, m4 = (
        integrate.quad(lambda z, k=k: max(0, x + s * z) ** k * stats.norm.pdf(z), max(-10, -x / s), 10, epsabs=1e-12)[0]
        for k in (1, 2, 4)
    )
    # A deviation of sigmoid(x) would change the means by more than a hundredth; noise stays below half of that.
    inputs = torch.full((sample_size(m2 - m1**2, 0.01),), x, dtype=torch.float64)
    drawn = UNITS["relu"].sample(inputs, None, generator(3)).numpy()
    assert_mean(drawn, m1, m2 - m1**2)
    assert_mean(drawn**2, m2, m4 - m2**2)
    assert float(UNITS["relu"].expected(inputs[:1])) == pytest.approx(m1, abs=1e-9)
    assert float(UNITS["relu"].mean(inputs[:1])) == max(0, x)


def test_expected_rectified_units_are_finite_everywhere():
    x = torch.tensor([-1e30, -200.0, -90.0, -20.0, 20.0, 1e30])
    assert torch.allclose(UNITS["relu"].expected(x), torch.relu(x), atol=1e-6)


def test_gaussian_samples_have_unit_variance():
    rbm, n = tiny_rbm("gaussian", "gaussian"), 50_000
    v = torch.ones(n, 4, dtype=torch.float64)
    drawn, means = rbm.sample_hidden(v, generator()), rbm.hidden_mean(v[:1])[0]
    for j in range(3):
        assert_mean(drawn[:, j].numpy(), float(means[j]), 1.0)
        assert_mean((drawn[:, j] - means[j]).square().numpy(), 1.0, 2.0)


# -- contrastive divergence


def kernel(rbm):
    """P(v'|v) of one Gibbs step between visible states."""
    p = joint(rbm)
    return (p / p.sum(1, keepdim=True)) @ (p / p.sum(0)).t()


def check_chain(rbm, steps, end_law, n):
    """Every element of the gradient, over chains from a few rows, has the mean that a law of the end state gives."""
    data = bits(4)[[1, 6, 13]]
    rows = data.repeat_interleave(n, 0)
    chain = rbm.chain(rows, steps, generator(8))
    v, means = bits(4), rbm.hidden_mean(bits(4))
    for number, row in enumerate(data):
        span, law = slice(number * n, (number + 1) * n), end_law[number]
        for i in range(4):
            values = row[i] - v[:, i]
            expected = float(law @ values)
            assert_mean(chain.difference[span, i].numpy(), expected, float(law @ (values - expected) ** 2) + 1e-12)
            for j in range(3):
                values = row[i] * rbm.hidden_mean(row[None])[0, j] - v[:, i] * means[:, j]
                found = rows[span, i] * chain.data_hidden[span, j] - chain.visible[span, i] * chain.hidden[span, j]
                expected = float(law @ values)
                assert_mean(found.numpy(), expected, float(law @ (values - expected) ** 2))
    gradient, error = contrastive_divergence(rbm, rows, steps, generator(8))
    expected = (rows.t() @ chain.data_hidden - chain.visible.t() @ chain.hidden).t() / len(rows)
    assert torch.allclose(gradient["weight"], expected)
    assert torch.allclose(gradient["hidden_bias"], (chain.data_hidden - chain.hidden).mean(0))
    assert torch.allclose(gradient["visible_bias"], chain.difference.mean(0))
    assert error == pytest.approx(float(chain.error) / len(rows))


def test_one_step_of_contrastive_divergence_is_that_of_the_kernel():
    rbm = tiny("binary")
    check_chain(rbm, 1, kernel(rbm)[[1, 6, 13]], 20_000)


def test_a_long_chain_gives_the_gradient_of_the_likelihood():
    rbm = tiny_rbm(scale=0.5)
    law = joint(rbm).sum(1)
    second = np.sort(np.abs(np.linalg.eigvals(kernel(rbm).numpy())))[-2]
    assert second**60 < 1e-9  # what 60 steps leave of the start
    check_chain(rbm, 60, law.expand(3, 16), 4_000)


def test_the_exact_gradient_is_that_of_the_likelihood():
    """What the chain's end is compared with: E_data[v h'] - E_model[v h'] is the derivative of mean log p(v)."""
    rbm, data = tiny("binary"), bits(4)[[1, 6, 13]]
    log_p = lambda: float((-rbm.free_energy(data)).mean() - torch.logsumexp(-rbm.free_energy(bits(4)), 0))  # noqa: E731
    law, means = joint(rbm).sum(1), rbm.hidden_mean(bits(4))
    exact = rbm.hidden_mean(data).t() @ data / 3 - (means * law[:, None]).t() @ bits(4)
    rbm.weight[1, 2] += 1e-5
    above = log_p()
    rbm.weight[1, 2] -= 2e-5
    assert (above - log_p()) / 2e-5 == pytest.approx(float(exact[1, 2]), rel=1e-6)


def test_reconstruction_error_is_of_the_means():
    rbm = tiny("gaussian")
    v = torch.randn(5, 4, generator=generator(), dtype=torch.float64)
    chain = rbm.chain(v, 1, generator(2), sample_visible=False)
    assert torch.equal(chain.difference, v - chain.visible)
    h = rbm.sample_hidden(v, generator(2))
    assert torch.allclose(chain.visible, rbm.visible_mean(h))
    assert float(chain.error) == pytest.approx(float((v - rbm.visible_mean(h)).square().sum()))
    longer = rbm.chain(v, 3, generator(2), sample_visible=False)
    assert longer.error == chain.error  # of the first reconstruction
    assert torch.equal(longer.difference, v - longer.visible)  # at the end
    assert not torch.allclose(longer.visible, chain.visible)


# -- rows


def sparse_counts(n=40, d=300):
    rng = np.random.default_rng(4)
    dense = np.where(rng.random((n, d)) < 0.02, rng.integers(1, 4, (n, d)), 0).astype(np.float32)
    dense[3] = 0
    return dense


@pytest.mark.parametrize("visible", ["poisson", "gaussian", "relu"])
def test_sparse_rows_give_what_dense_ones_do(visible):
    dense = sparse_counts()
    rbm = RBM(RBMConfig(300, 20, visible))
    batch = sparse_rows(dense)
    assert isinstance(rbm.read(batch), CsrBatch)  # not made dense behind our backs
    assert torch.allclose(rbm.hidden_input(batch), rbm.hidden_input(torch.from_numpy(dense)), atol=1e-6)
    assert torch.equal(rbm.dense(batch), torch.from_numpy(dense))
    found, error = contrastive_divergence(rbm, batch, 2, generator())
    expected, dense_error = contrastive_divergence(rbm, torch.from_numpy(dense), 2, generator())
    for name, tensor in expected.items():
        assert torch.allclose(found[name], tensor, atol=1e-5), name
    assert error == pytest.approx(dense_error, rel=1e-5)


def test_slices_repeated_ids_and_missing_last_columns():
    whole = CsrBatch(np.array([0, 1, 3, 5]), np.array([0, 2, 2, 7, 1]), np.array([9.0, 1, 2, 1, 4]), 290)
    rbm = RBM(RBMConfig(300, 5, "gaussian"))
    dense = torch.zeros(2, 300)
    dense[0, 2], dense[1, 7], dense[1, 1] = 3, 1, 4
    assert torch.equal(rbm.dense(whole.rows(slice(1, 3))), dense)
    assert torch.allclose(rbm.hidden_input(whole.rows(slice(1, 3))), rbm.hidden_input(dense), atol=1e-6)
    with pytest.raises(InputError, match="290 columns, but there are 200"):
        RBM(RBMConfig(200, 5)).hidden_mean(whole)
    with pytest.raises(InputError, match="column id 295"):
        RBM(RBMConfig(290, 5)).hidden_mean(CsrBatch(np.array([0, 1]), np.array([295]), np.ones(1), 290))


def test_empty_documents():
    rbm = tiny("poisson")
    v = torch.zeros(2, 3, dtype=torch.float64)
    assert torch.allclose(rbm.hidden_mean(v), torch.sigmoid(rbm.hidden_bias).expand(2, 3))
    assert torch.equal(rbm.visible_mean(bits(3)[:2], rbm.length(v)), v)
    assert torch.equal(rbm.sample_visible(bits(3)[:2], generator(), rbm.length(v)), v)
    gradient, error = contrastive_divergence(rbm, v)
    assert error == 0
    assert all(float(tensor.abs().sum()) == 0 for tensor in gradient.values())


@pytest.mark.parametrize(
    ("visible", "value", "message"),
    [
        (
            "binary",
            1.5,
            "values from 0 to 1, but a row has 1.5; other values need visible='gaussian' units",
        ),
        ("binary", -1.0, "a row has -1"),
        ("binary", float("nan"), "a row has nan$"),
        ("poisson", -1.0, r"whole numbers from 0 to 2\*\*31, but a row has -1"),
        ("poisson", 0.5, r"whole numbers from 0 to 2\*\*31, but a row has 0.5"),
        ("gaussian", float("inf"), "gaussian units take finite numbers, but a row has inf"),
        ("relu", -0.5, "relu units take numbers from 0"),
    ],
)
def test_values_that_units_cannot_have(visible, value, message):
    rbm = RBM(RBMConfig(3, 2, visible))
    rbm.check_visible(torch.tensor([[0.0, 1.0, 0.0]]))
    with pytest.raises(InputError, match=message):
        rbm.check_visible(torch.tensor([[0.0, value, 0.0]]))


def test_values_of_repeated_ids_are_checked_as_their_sum():
    rows = CsrBatch(np.array([0, 2]), np.array([5, 5]), np.array([0.5, 0.75]), 100)
    for visible, message in (("binary", "but a row has 1.25"), ("poisson", "but a row has 1.25")):
        with pytest.raises(InputError, match=message):
            RBM(RBMConfig(100, 2, visible)).check_visible(rows)
    RBM(RBMConfig(100, 2, "poisson")).check_visible(CsrBatch(rows.indptr, rows.indices, np.array([0.5, 1.5]), 100))


def test_bad_settings():
    with pytest.raises(InputError, match="hidden='poisson' is not possible; allowed are binary, gaussian, relu"):
        RBMConfig(3, 2, hidden="poisson")
    with pytest.raises(InputError, match="n_hidden=0 is not possible"):
        RBMConfig(3, 0)
    with pytest.raises(InputError, match="give length"):
        RBM(RBMConfig(3, 2, "poisson")).visible_mean(torch.ones(1, 2))
    with pytest.raises(InputError, match=r"shape \(1, 4\), but there are 3"):
        RBM(RBMConfig(3, 2)).hidden_mean(torch.ones(1, 4))
    assert RBMConfig(**RBMConfig(3, 2, "poisson", seed=7).to_dict()) == RBMConfig(3, 2, "poisson", seed=7)


def test_weights_start_small_and_follow_the_seed():
    weight = RBM(RBMConfig(300, 200)).weight
    assert_mean(weight.flatten().numpy() / 0.01, 0.0, 1.0)
    assert_mean(weight.flatten().numpy() ** 2 / 1e-4, 1.0, 2.0)
    assert torch.equal(weight, RBM(RBMConfig(300, 200)).weight)
    assert not torch.equal(weight, RBM(RBMConfig(300, 200, seed=1)).weight)
