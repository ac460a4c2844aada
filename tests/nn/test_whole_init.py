"""Initialising a model: `apply_` does what it reports, to the layers that were chosen, each from its own stream."""

from functools import partial
from math import sqrt

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from sketchnet.errors import InputError
from sketchnet.nn import init
from tests.nn.test_init import projections


def model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.Conv2d(8, 8, 3, groups=4),
        nn.ConvTranspose2d(8, 6, 2, groups=2),
        nn.Sequential(nn.Flatten(), nn.Linear(54, 20), nn.Linear(20, 5, bias=False)),
    )


NAMES = ["gaussian", "achlioptas", "li", "srht", "srht_sparse", "count_sketch", "rom", "sparse", "delta_orthogonal"]
NAMES += ["zero", "he", "xavier", "lecun", "hinton", "orthogonal", "kaiming_uniform", "trunc_normal", "zeros"]


@pytest.mark.parametrize("scheme", NAMES)
@pytest.mark.parametrize("where", [None, nn.Conv2d, (nn.Linear, nn.ConvTranspose2d), lambda name, module: name == "0"])
def test_apply_touches_what_it_reports(scheme, where):
    net = model()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    options = {"n_examples": 50_000} if scheme == "srht_sparse" else {}
    done = init.apply_(net, scheme, where, seed=3, **options)
    wanted = {None: 5, nn.Conv2d: 2, (nn.Linear, nn.ConvTranspose2d): 3}.get(where, 1)
    assert len(done) == wanted
    changed = {name for name, value in net.state_dict().items() if not torch.equal(value, before[name])}
    biased = {f"{record.name}.bias" for record in done if f"{record.name}.bias" in before}
    assert changed == {f"{record.name}.weight" for record in done} | biased
    for name in biased:
        assert not net.state_dict()[name].any()
    for record in done:
        weight = net.get_parameter(f"{record.name}.weight").detach()
        assert record.shape == tuple(weight.shape)
        assert record.scheme == scheme
        assert record.deviation == pytest.approx(float(weight.std()), rel=1e-5)


def test_apply_knows_the_layers():
    """Deviations and shapes need groups and transposition, which a weight does not show."""
    net = model()
    fans = [27, 18, 16, 54, 20]
    for scheme in ("gaussian", "srht", "rom"):
        done = init.apply_(net, scheme)
        assert [record.deviation for record in done] == pytest.approx([sqrt(2 / d) for d in fans], rel=1e-5)
    init.apply_(net, "count_sketch")
    assert (net[3].weight.count_nonzero(dim=1) == 1).all()
    init.apply_(net, "orthogonal")
    for P in projections(net[3].weight.detach(), groups=2, transposed=True):
        assert np.allclose(P.T @ P, np.eye(3), atol=1e-6)
    big = nn.ConvTranspose2d(256, 16, 3, groups=2)
    assert init.apply_(big, "he")[0].deviation == pytest.approx(sqrt(2 / (128 * 9)), rel=0.05)


def test_apply_streams():
    everything, some, again, other = model(), model(), model(), model()
    init.apply_(everything, "gaussian", seed=3)
    init.apply_(some, "gaussian", nn.Linear, seed=3)
    init.apply_(again, "gaussian", seed=3)
    init.apply_(other, "gaussian", seed=4)
    assert torch.equal(some[4][1].weight, everything[4][1].weight)  # whatever else is initialised
    for a, b, c in zip(everything.parameters(), again.parameters(), other.parameters()):
        assert torch.equal(a, b)
        assert a.ndim == 1 or not torch.equal(a, c)
    equal = nn.Sequential(nn.Linear(9, 9), nn.Linear(9, 9))
    init.apply_(equal, "he")
    assert not torch.equal(equal[0].weight, equal[1].weight)

    def from_torch(seed):
        net = nn.Linear(9, 9)
        torch.manual_seed(seed)
        init.apply_(net, "gaussian", seed=None)
        return net.weight

    assert torch.equal(from_torch(5), from_torch(5))
    assert not torch.equal(from_torch(5), from_torch(6))


def test_apply_takes_functions():
    by_name, by_function = model(), model()
    init.apply_(by_name, "srht", seed=3, gain=1.0)
    done = init.apply_(by_function, init.srht_, seed=3, gain=1.0)
    assert done[0].scheme == "srht_"
    for a, b in zip(by_name.parameters(), by_function.parameters()):
        assert torch.equal(a, b)
    done = init.apply_(model(), partial(nn.init.constant_, val=2.0), nn.Linear, biases="keep")
    assert [record.deviation for record in done] == [0, 0]
    seen = []
    init.apply_(model(), lambda weight, groups, generator: seen.append((groups, generator.initial_seed())), nn.Conv2d)
    assert [groups for groups, _ in seen] == [1, 4]
    assert seen[0][1] != seen[1][1]


def test_apply_biases_and_shared_weights():
    net = model()
    bias = net[0].bias.clone()
    init.apply_(net, "he", biases="keep")
    assert torch.equal(net[0].bias, bias)
    tied = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6))
    tied[1].weight = tied[0].weight
    assert [record.name for record in init.apply_(tied, "gaussian")] == ["0"]


def test_apply_rejects():
    net = model()
    before = net[0].weight.clone()
    for scheme in ("gauss", "_no_grad_normal", "", 3, ["srht"]):
        with pytest.raises(InputError, match="there is no scheme"):
            init.apply_(net, scheme)
    with pytest.raises(InputError, match="layer '1', a BatchNorm2d"):
        init.apply_(net, "gaussian", (nn.Conv2d, nn.BatchNorm2d))
    with pytest.raises(InputError, match="where="):
        init.apply_(net, "gaussian", "conv")
    with pytest.raises(InputError, match="biases="):
        init.apply_(net, "gaussian", biases="one")
    with pytest.raises(InputError, match="LazyLinear"):
        init.apply_(nn.LazyLinear(5), "gaussian")
    with pytest.raises(TypeError, match="gian"):
        init.apply_(net, "gaussian", gian=1.0)
    assert torch.equal(net[0].weight, before)


@pytest.mark.parametrize(
    "wrapped",
    [nn.utils.parametrizations.weight_norm, lambda layer: prune.random_unstructured(layer, "weight", 0.5)],
    ids=["weight norm", "pruning"],
)
def test_weights_that_are_computed_are_refused(wrapped):
    """They were said to be initialised, and stayed as they were."""
    model = nn.Sequential(nn.Linear(5, 4), wrapped(nn.Linear(4, 3)))
    before = model[0].weight.detach().clone()
    with pytest.raises(InputError, match=r"layer '1', a .*: its weight is computed from other parameters"):
        init.apply_(model, "srht")
    assert torch.equal(model[0].weight, before)
