"""Stacks: layers get the weights of RBMs that were trained one on the other, wherever a run was cut off."""

import numpy as np
import pytest
import torch
from torch import nn

from sketchnet.data.csr import sparse_rows
from sketchnet.errors import InputError, Interrupted
from sketchnet.nn.rbm_init import RBM_SCHEMES, init_rbm_
from sketchnet.pretraining import RBM, LayerSpec, RBMConfig, RBMTrainingConfig, make_rows, pretrain_stack, train_rbm

WIDTHS = (40, 12, 8, 3)
CONFIG = RBMTrainingConfig(epochs=2, batch_size=25, seed=5)


def data():
    return (np.random.default_rng(0).random((90, WIDTHS[0])) < 0.02).astype(np.float32)


def layers(hidden=("binary", "binary", "gaussian"), **settings):
    torch.manual_seed(0)
    return [LayerSpec(nn.Linear(a, b), kind, **settings) for a, b, kind in zip(WIDTHS[:-1], WIDTHS[1:], hidden)]


def pretrain(stack, rows=None, first="binary", **settings):
    rows = make_rows(data(), 25, 5) if rows is None else rows
    return pretrain_stack(stack, first, rows, CONFIG, **settings)


def weights(stack):
    return [tensor for spec in stack for tensor in (spec.linear.weight.detach(), spec.linear.bias.detach())]


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_each_rbm_learns_what_the_one_below_passes_on():
    stack, records, ticks = layers(), [], []
    found = pretrain(stack, report=records.append, tick=lambda *tick: ticks.append(tick[:2]))
    rows = torch.from_numpy(data())
    for number, (spec, rbm) in enumerate(zip(stack, found)):
        visible = "binary"
        alone = RBM(RBMConfig(*spec.linear.weight.shape[::-1], visible, spec.hidden, 5 + number))
        train_rbm(alone, make_rows(rows, 25, 5), CONFIG, layer=number)
        assert torch.equal(rbm.weight, alone.weight)
        assert torch.equal(rbm.visible_bias, alone.visible_bias)
        assert torch.equal(spec.linear.weight, rbm.weight)
        assert torch.equal(spec.linear.bias, rbm.hidden_bias)
        assert [record["layer"] for record in rbm.history] == [number, number]
        rows = alone.hidden_mean(rows)
    assert records == [record for rbm in found for record in rbm.history]
    assert ticks == [(i + 1, 24) for i in range(24)]
    assert stack[0].linear.weight.requires_grad  # for what comes afterwards


def test_kinds_of_units_go_up_the_stack():
    found = pretrain(layers(("relu", "relu", "gaussian")), first="poisson")
    assert [(rbm.config.visible, rbm.config.hidden) for rbm in found] == [
        ("poisson", "relu"), ("relu", "relu"), ("relu", "gaussian"),
    ]  # fmt: skip


@pytest.mark.parametrize("sparse", [False, True])
def test_memory_changes_nothing_but_rounding(sparse):
    rows = make_rows(sparse_rows(data()) if sparse else data(), 25, 5)
    kept, anew = layers(), layers()
    pretrain(kept, rows, memory="1GiB")
    pretrain(anew, rows, memory="1KB")
    for a, b in zip(weights(kept), weights(anew)):
        assert torch.allclose(a, b, atol=1e-4)


def test_going_on_after_any_epoch_ends_with_the_same_bits():
    stack, saved = layers(), []
    whole = pretrain(stack, save=lambda *state: saved.append(state))
    assert [(notes["layer"], notes["training"]["epoch"]) for _, notes in saved] == [
        (layer, epoch) for layer in range(3) for epoch in (1, 2)
    ]
    for state in saved:
        again = layers()
        found = pretrain(again, state=state)
        assert same(weights(again), weights(stack))
        assert all(torch.equal(a.visible_bias, b.visible_bias) for a, b in zip(found, whole))
        assert [len(rbm.history) for rbm in found] == [2, 2, 2]


@pytest.mark.parametrize("stop_after", [1, 9, 24])
def test_stopped_in_a_step_it_goes_on_to_the_same_bits(stop_after):
    stack, cut, saved, steps = layers(), layers(), [], [0]
    pretrain(stack)

    def asked_to_stop():
        steps[0] += 1
        return steps[0] == stop_after

    before = [tensor.clone() for tensor in weights(cut)]
    with pytest.raises(Interrupted):
        pretrain(cut, asked_to_stop=asked_to_stop, save=lambda *state: saved.append(state))
    assert same(weights(cut), before)
    pretrain(cut, state=saved[-1])
    assert same(weights(cut), weights(stack))


@pytest.mark.parametrize("scheme", RBM_SCHEMES)
def test_rbms_can_start_as_random_projections(scheme):
    stack, still = layers(init=scheme), RBMTrainingConfig(epochs=1, batch_size=25, rate=0.0, seed=5)
    pretrain_stack(stack, "binary", make_rows(data(), 25), still)
    for number, spec in enumerate(stack):
        weight = spec.linear.weight.detach()
        assert torch.equal(weight, init_rbm_(torch.empty_like(weight), scheme, 5 + number))
        assert not spec.linear.bias.any()


def test_validation_rows_are_lifted_too():
    found = pretrain(layers(), valid=make_rows(data()[:30], 25))
    assert all("free_energy_gap" in record for rbm in found for record in rbm.history)


def test_bad_stacks():
    with pytest.raises(InputError, match="layer 2 of the stack takes 7 columns, but gets 12"):
        pretrain([LayerSpec(nn.Linear(40, 12)), LayerSpec(nn.Linear(7, 3))])
    with pytest.raises(InputError, match="layer 1 of the stack takes 39 columns, but gets 40"):
        pretrain([LayerSpec(nn.Linear(39, 12))])
    with pytest.raises(InputError, match="an nn.Linear with a bias"):
        pretrain([LayerSpec(nn.Linear(40, 12, bias=False))])
    with pytest.raises(InputError, match="hidden='softmax' is not possible"):
        LayerSpec(nn.Linear(40, 12), "softmax")
    with pytest.raises(InputError, match="poisson units take counts"):
        pretrain(layers(), make_rows(data() / 2, 25), first="poisson")
