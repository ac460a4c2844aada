"""Initialisation: each scheme has its law and its deviation in every kind of layer, and variance survives depth."""

from functools import partial
from math import sqrt

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.linalg import hadamard
from torch import nn
from torch.nn import functional

from sketchnet import random
from sketchnet.errors import InputError
from sketchnet.nn import init
from sketchnet.nn.diagnostics import isometry
from sketchnet.projection import SRHT, Achlioptas, CountSketch, Gaussian, Li
from tests.statistics import FAILURE, assert_counts

# name: the function, and the law that it draws from for k outputs of d inputs
SCALED = {
    "gaussian": (init.gaussian_, lambda k, d: Gaussian(k)),
    "achlioptas": (init.achlioptas_, lambda k, d: Achlioptas(k)),
    "signs": (partial(init.achlioptas_, s=1), lambda k, d: Achlioptas(k, s=1)),
    "li": (init.li_, lambda k, d: Li(k)),
    "srht": (init.srht_, lambda k, d: SRHT(k)),
    "srht_sparse": (
        partial(init.srht_, form="sparse", n_examples=50_000),
        lambda k, d: SRHT(k, "sparse", min(1, np.log(50_000) ** 2 / d)),
    ),
    "srht_matousek": (
        partial(init.srht_, form="sparse", density=0.3, entries="sign"),
        lambda k, d: SRHT(k, "sparse", 0.3, "sign"),
    ),
}
DENSE = {name: SCALED[name][0] for name in ("gaussian", "achlioptas", "signs", "srht", "srht_sparse")}
DENSE["rom"] = init.rom_
every_scaled = pytest.mark.parametrize("name", SCALED)
every_dense = pytest.mark.parametrize("name", DENSE)

# shape, arguments, inputs d of a unit, outputs k of a group
LAYERS = {
    "linear": ((40, 300), {}, 300, 40),
    "convolution": ((32, 16, 3, 3), {}, 144, 32),
    "grouped": ((32, 8, 5), {"groups": 2}, 40, 16),
    "depthwise": ((16, 1, 3, 3), {"groups": 16}, 9, 1),
    "transposed": ((16, 32, 3, 3), {"transposed": True}, 144, 32),
    "transposed_grouped": ((16, 8, 4, 2, 3), {"groups": 4, "transposed": True}, 96, 8),
}
every_layer = pytest.mark.parametrize("layer", LAYERS)


def projections(weight, groups=1, transposed=False):
    """The d x k matrix of each group, entry by entry: what multiplies an input's window."""
    a, b, *window = weight.shape
    k, channels = (b, a // groups) if transposed else (a // groups, b)
    found = []
    for g in range(groups):
        P = np.empty((channels, *window, k))
        for i in range(channels):
            for o in range(k):
                P[i, ..., o] = weight[g * channels + i, o] if transposed else weight[g * k + o, i]
        found.append(P.reshape(-1, k))
    return found


@every_layer
@every_scaled
def test_weights_are_the_projection_at_the_wanted_deviation(name, layer):
    fill, law = SCALED[name]
    shape, how, d, k = LAYERS[layer]
    weight = torch.empty(shape)
    assert fill(weight, seed=5, **how) is weight
    assert float(weight.double().std()) == pytest.approx(sqrt(2 / d), rel=1e-5)
    found = projections(weight, **how)
    P = law(k, d).sample(d, 5).block(slice(None), dtype=np.float64)
    scale = np.abs(found[0]).sum() / np.abs(P).sum()
    assert np.allclose(found[0], P * scale, atol=1e-5 * np.abs(found[0]).max())
    # groups have their own draws, and the law's own scale is the same in all
    fill(weight, seed=5, scaled=False, **how)
    plain = projections(weight, **how)
    assert np.allclose(plain[0], P, atol=1e-5 * np.abs(P).max())
    if len(plain) > 1 and d * k > 100:
        assert all(not np.allclose(plain[0], other) for other in plain[1:])
        assert np.std(plain[1]) == pytest.approx(np.std(plain[0]), rel=0.5)


@every_scaled
def test_options_of_scale(name):
    fill, law = SCALED[name]
    deviation = lambda **how: float(fill(torch.empty(64, 100), seed=1, **how).double().std())  # noqa: E731
    assert deviation(gain=1.0) == pytest.approx(0.1, rel=1e-5)
    assert deviation(nonlinearity="tanh") == pytest.approx(5 / 3 / 10, rel=1e-5)
    assert deviation(std=0.01) == pytest.approx(0.01, rel=1e-5)
    centred = fill(torch.empty(64, 100), seed=1, std=0.01, zero_mean=True).double()
    assert abs(float(centred.mean())) < 1e-7
    assert float(centred.std()) == pytest.approx(0.01, rel=1e-5)
    turned = fill(torch.empty(64, 100), seed=1, transpose=True, scaled=False)
    P = law(100, 64).sample(64, 1).block(slice(None))  # 64 -> 100, and no transposition
    assert np.allclose(turned, P, atol=1e-5 * np.abs(P).max())
    assert deviation(transpose=True) == pytest.approx(sqrt(2 / 100), rel=1e-5)


@pytest.mark.parametrize("fill", [init.gaussian_, partial(init.srht_, form="sparse", density=1.0)])
def test_normal_weights(fill):
    """Sparse SRHT of full density is the Gaussian law; so is the dissertation's where d is small."""
    weight = fill(torch.empty(512, 128), seed=3)
    assert stats.kstest(weight.numpy().ravel() / sqrt(2 / 128), "norm").pvalue > FAILURE


def test_other_weights_are_not_normal():
    for fill in (init.achlioptas_, init.srht_, partial(init.srht_, form="sparse", density=0.02)):
        weight = fill(torch.empty(512, 128), seed=3)
        assert stats.kstest(weight.numpy().ravel() / sqrt(2 / 128), "norm").pvalue < FAILURE


def test_the_dissertations_density_follows_the_examples():
    given = init.srht_(torch.empty(8, 512), form="sparse", density=np.log(50_000) ** 2 / 512, seed=2)
    assert torch.equal(init.srht_(torch.empty(8, 512), form="sparse", n_examples=50_000, seed=2), given)
    for how in ({}, {"density": 0.1, "n_examples": 100}):
        with pytest.raises(InputError, match="either density or n_examples"):
            init.srht_(torch.empty(8, 8), form="sparse", **how)
    with pytest.raises(InputError, match="belongs to"):
        init.srht_(torch.empty(8, 8), n_examples=100)


@pytest.mark.parametrize("fill", [init.srht_, init.rom_, partial(init.rom_, blocks=1), partial(init.rom_, blocks=4)])
@pytest.mark.parametrize("shape", [(64, 64), (40, 64), (16, 32, 2, 2)])
def test_structured_weights_have_orthogonal_rows(fill, shape):
    weight = fill(torch.empty(shape, dtype=torch.float64), seed=4).reshape(shape[0], -1)
    gram = (weight @ weight.T).numpy()
    assert np.allclose(gram, np.diag(np.diag(gram)), atol=1e-5)
    assert np.allclose(np.diag(gram), 2, rtol=0.01)  # about the mean, which is not quite zero


def test_wide_structured_weights_have_orthogonal_columns():
    for fill in (init.srht_, init.rom_):
        weight = fill(torch.empty(64, 50, dtype=torch.float64), seed=4, scaled=False)
        assert np.allclose(weight.T @ weight, np.eye(50), atol=1e-5)


def test_rom_is_a_product_of_hadamards_and_signs():
    size, k, d, seed = 64, 20, 50, 9
    expected = hadamard(size)[SRHT(k).sample(d, seed)._frequencies.astype(int)] / sqrt(k)
    ids = np.arange(size, dtype=np.uint64)
    for blocks in (1, 2, 3):
        if blocks > 1:
            expected = expected @ hadamard(size) / sqrt(size)
        key = random.hash_key(seed, random.STREAM_DIAGONAL, blocks - 1)
        expected = expected * (1.0 - 2.0 * random.sign_bit_of(random.hash64(ids, *key)))
        weight = init.rom_(torch.empty(k, d), blocks, seed=seed, scaled=False)
        assert np.allclose(weight, expected[:, :d], atol=1e-6)
        assert len(np.unique(np.round(np.abs(expected), 6))) > 1 or blocks == 1


@every_layer
def test_count_sketch_has_one_weight_an_input(layer):
    shape, how, d, k = LAYERS[layer]
    weight = init.count_sketch_(torch.empty(shape), seed=5, **how)
    found = projections(weight, **how)
    for P in found:
        assert P.shape == (d, k)
        assert (np.count_nonzero(P, axis=1) == 1).all()
        assert set(np.abs(P[P != 0])) == {np.float32(0.1)}
    assert np.allclose(found[0], 0.1 * CountSketch(k).sample(d, 5).block(slice(None)))
    assert float(init.count_sketch_(weight, gamma=0.3, seed=5, **how).abs().max()) == pytest.approx(0.3)
    with pytest.raises(TypeError, match="count_sketch_ takes no 'std'; it takes tensor, gamma, groups, transposed"):
        init.count_sketch_(weight, std=0.01)


@pytest.mark.parametrize("name", ["gaussian_", "achlioptas_", "li_", "srht_", "count_sketch_", "rom_"])
@pytest.mark.parametrize("unknown", ["sed", "factor"])  # a slip, and what only our own functions give each other
def test_unknown_parameters_are_told_beside_the_known_ones(name, unknown):
    with pytest.raises(TypeError, match=f"^{name} takes no '{unknown}'; it takes tensor, .*groups, .*seed, generator"):
        getattr(init, name)(torch.empty(4, 4), **{unknown: 1})


def test_martens_limits_what_comes_in():
    for layer in ("linear", "convolution", "grouped", "transposed"):
        shape, how, *_ = LAYERS[layer]
        weight = init.sparse_(torch.empty(shape), seed=1, **how)
        for P in projections(weight, **how):
            assert (np.count_nonzero(P, axis=0) == 15).all()
    assert (init.sparse_(torch.empty(8, 10), seed=1) != 0).all()
    weight = init.sparse_(torch.empty(4000, 100), nonzeros=20, std=0.5, seed=1).numpy()
    assert stats.kstest(weight[weight != 0] / 0.5, "norm").pvalue > FAILURE
    assert_counts(np.count_nonzero(weight, axis=0), [1 / 100] * 100)


def circular(x, weight, groups=1):
    pad = [p for k in reversed(weight.shape[2:]) for p in ((k - 1) // 2, k // 2)]
    return functional.conv2d(functional.pad(x, pad, mode="circular"), weight, groups=groups)


@pytest.mark.parametrize("shape", [(8, 8, 3, 3), (16, 8, 5, 3), (8, 8, 4, 2)])
def test_delta_orthogonal_convolutions_keep_norms(shape):
    weight = init.delta_orthogonal_(torch.empty(shape, dtype=torch.float64), seed=1)
    x = torch.randn(5, 8, 7, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    kept = circular(x, weight).flatten(1).norm(dim=1) / x.flatten(1).norm(dim=1)
    assert torch.allclose(kept, torch.ones_like(kept), atol=1e-5)
    # another initialisation of the same deviation does not
    other = init.gaussian_(torch.empty(shape, dtype=torch.float64), seed=1, std=float(weight.std()))
    assert (circular(x, other).flatten(1).norm(dim=1) / x.flatten(1).norm(dim=1) - 1).abs().max() > 0.01
    doubled = init.delta_orthogonal_(torch.empty(shape), gain=2.0, seed=1)
    assert torch.allclose(doubled.double(), 2 * weight, atol=1e-6)


def test_delta_orthogonal_of_other_layers():
    weight = init.delta_orthogonal_(torch.empty(8, 4, 3, 3), groups=2, seed=1)
    x = torch.randn(2, 8, 5, 5, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(circular(x, weight, groups=2).norm(), x.norm(), rtol=1e-5)
    narrow = init.delta_orthogonal_(torch.empty(4, 8, 3, 3), seed=1)[:, :, 1, 1]
    assert torch.allclose(narrow @ narrow.T, torch.eye(4), atol=1e-6)


@pytest.mark.parametrize(("outputs", "inputs"), [(6, 6), (4, 6), (6, 4), (8, 3), (1, 1), (5, 4)])
def test_zero_as_its_paper_defines_it(outputs, inputs):
    expected = np.eye(outputs, inputs)
    if outputs > inputs:
        m = int(np.ceil(np.log2(outputs)))
        expected = 2 ** (-m / 2) * np.eye(outputs, 2**m) @ hadamard(2**m) @ np.eye(2**m, inputs)
    assert np.allclose(init.zero_(torch.empty(outputs, inputs)), expected)
    weight = init.zero_(torch.empty(outputs, inputs, 3, 5), gain=2.0)
    assert np.allclose(weight[:, :, 1, 2], 2 * expected)
    assert int(weight.count_nonzero()) == np.count_nonzero(expected)
    weight = init.zero_(torch.empty(2 * inputs, outputs, 3), groups=2, transposed=True)
    assert np.allclose(weight[inputs:, :, 1], expected.T)


def test_the_centre_of_an_even_window_is_where_same_padding_has_it():
    x = torch.randn(2, 8, 7, 6, generator=torch.Generator().manual_seed(0))
    assert torch.equal(circular(x, init.zero_(torch.empty(8, 8, 4, 2))), x)


EVERY = [*(fill for fill, _ in SCALED.values()), init.rom_, init.count_sketch_, init.sparse_, init.delta_orthogonal_]


@pytest.mark.parametrize("fill", [*EVERY, init.zero_])
def test_tensors_that_cannot_be_weights(fill):
    for shape in ((), (5,)):
        with pytest.raises(InputError, match="2 dimensions or more"):
            fill(torch.empty(shape))
    with pytest.raises(InputError, match="floating-point"):
        fill(torch.empty(4, 4, dtype=torch.int64))
    with pytest.raises(InputError, match="does not divide"):
        fill(torch.empty(4, 4), groups=3)
    for shape in ((0, 4), (4, 0, 3)):
        with pytest.warns(UserWarning, match="zero-element"):
            assert fill(torch.empty(shape)).shape == shape
    assert fill(torch.empty(4, 4, device="meta")).is_meta


@pytest.mark.parametrize("fill", [*EVERY, init.zero_])
def test_types_layouts_and_gradients_are_kept(fill):
    how = {} if fill is init.zero_ else {"seed": 7}
    single = fill(torch.empty(24, 36), **how)
    for dtype, tolerance in ((torch.float64, 1e-6), (torch.float16, 1e-3)):
        other = fill(torch.empty(24, 36, dtype=dtype), **how)
        assert other.dtype == dtype
        assert torch.allclose(other.double(), single.double(), rtol=tolerance, atol=tolerance * 0.1)
    strided = torch.empty(36, 24).T
    assert torch.equal(fill(strided, **how), single)
    layer = nn.Linear(36, 24)
    assert fill(layer.weight, **how) is layer.weight
    assert layer.weight.requires_grad
    assert layer.weight.is_leaf
    assert layer.weight.grad is None
    assert torch.equal(layer.weight.detach(), single)


@pytest.mark.parametrize("fill", EVERY)
def test_seeds_and_generators(fill):
    new = partial(torch.empty, 24, 36)
    assert torch.equal(fill(new(), seed=7), fill(new(), seed=7))
    assert not torch.equal(fill(new(), seed=7), fill(new(), seed=8))
    torch.manual_seed(1)
    first, second = fill(new()), fill(new())
    assert not torch.equal(first, second)
    torch.manual_seed(1)
    assert torch.equal(fill(new()), first)
    own = torch.Generator().manual_seed(1)
    assert torch.equal(fill(new(), generator=own), first)
    before = torch.random.get_rng_state()
    fill(new(), seed=7)
    assert torch.equal(torch.random.get_rng_state(), before)
    with pytest.raises(InputError, match="give one"):
        fill(new(), seed=7, generator=own)
    with pytest.raises(InputError, match="seed=-1"):
        fill(new(), seed=-1)


def test_single_weights_and_empty_draws():
    assert float(init.gaussian_(torch.empty(1, 1), seed=0).abs()) == pytest.approx(sqrt(2))
    with pytest.warns(UserWarning, match="drawn as zero"):
        assert not init.li_(torch.empty(1, 2), s=1e9, seed=0).any()


# -- depth


def spread(ratios):
    return float(np.abs(np.log(ratios)).max())


def deep_network(width=512, depth=110):
    layers = [part for _ in range(depth) for part in (nn.Linear(width, width, bias=False), nn.ReLU())]
    return nn.Sequential(*layers)


def bound(width, depth=110):
    """How far ln(variance) may walk, from the stated failure probability.

    A layer multiplies the mean square by a mean over `width` units of 2 relu(z)^2, whose variance is 5 for normal z; so
    its logarithm has a deviation of sqrt(5 / width) a layer and a drift of half its square. 6.9 at width 512: a factor
    of a thousand over 110 layers. Structured weights walk less.
    """
    deviation = sqrt(5 * depth / width)
    return deviation * stats.norm.isf(FAILURE / 2) + deviation**2 / 2


@every_dense
def test_110_layers_keep_their_variance(name):
    net = deep_network()
    for number, layer in enumerate(net[::2]):
        DENSE[name](layer.weight, seed=number)
    x = torch.randn(16, 512, generator=torch.Generator().manual_seed(0))
    found = isometry(net, x)
    assert len(found) == 110
    # a layer's outputs have twice the mean square of its inputs, of which a rectifier lets half through
    assert spread([layer.ratio / 2 for layer in found]) < bound(512)


@pytest.mark.parametrize("how", [{"scaled": False}, {"gain": 2.0}])
def test_the_check_of_depth_can_fail(how):
    net = deep_network(width=64)
    for number, layer in enumerate(net[::2]):
        init.srht_(layer.weight, seed=number, **how)
    found = isometry(net, torch.randn(16, 64, generator=torch.Generator().manual_seed(0)))
    assert spread([layer.ratio / 2 for layer in found]) > 2 * bound(64)


@pytest.mark.parametrize("scheme", ["gaussian", "achlioptas", "srht", "rom"])
def test_110_convolutions_keep_their_variance(scheme):
    layers = [nn.Conv2d(64, 64, 3, padding=1, padding_mode="circular") for _ in range(110)]
    net = nn.Sequential(*(part for layer in layers for part in (layer, nn.ReLU())))
    init.apply_(net, scheme, seed=1)
    found = isometry(net, torch.randn(2, 64, 6, 6, generator=torch.Generator().manual_seed(0)))
    # deep down, pixels are much alike, and channels alone are averaged over
    assert spread([layer.ratio / 2 for layer in found]) < bound(64)
