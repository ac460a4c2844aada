"""Captured steps on images learn, in turn with others too, and are the steps of the processor but for rounding."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from reproduction.images.data import ImagesOnDevice
from reproduction.images.norm import fused_norm_and_relu
from reproduction.images.resnet import norm_and_relu
from reproduction.images.run import ImageRun
from reproduction.images.training import ImageConfig, train_together
from tests.reproduction.images.separable import separable

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

SMALL = ImageConfig(depth=8, width=8, epochs=2, batch_size=16, pad=1)
TRAIN, TEST = separable(), separable(150, seed=1)


def test_it_learns():
    """Chance is an error of 2/3."""
    records = []
    errors = train_together([SMALL], TRAIN, TEST, "cuda", report=records.append)[0]
    assert errors[-1] <= 0.05
    assert records[1]["loss"] < records[0]["loss"]
    assert [r["test_error"] for r in records] == errors


def test_several_networks_in_turn():
    configs = [replace(SMALL, seed=seed, scheme=scheme) for seed, scheme in enumerate(("he", "srht", "orthogonal"))]
    for errors in train_together(configs, TRAIN, TEST, "cuda"):
        assert len(errors) == 2
        assert errors[-1] <= 0.05


@pytest.mark.parametrize("fused", [True, False])
def test_replayed_steps_are_those_of_the_processor(fused):
    """Five steps, with a timid rate lest rounding to bfloat16 grow: weights move the same way, to 5 % of the way."""
    config = replace(SMALL, rate=0.01)
    before, after, losses, moments = {}, {}, {}, {}
    for device in ("cpu", "cuda"):
        run = ImageRun(config, ImagesOnDevice(TRAIN, TEST, torch.device(device)), fused)
        before[device] = {n: p.detach().cpu().clone() for n, p in run._net.named_parameters()}
        run.begin(0)
        for _ in range(5):
            run.advance()
        losses[device] = run.result()[1]
        after[device] = {n: p.detach().cpu() for n, p in run._net.named_parameters()}
        moments[device] = {n: b.cpu() for n, b in run._net.named_buffers() if "running" in n}
    for name, start in before["cpu"].items():
        assert torch.equal(before["cuda"][name], start)  # what the capture tried was put back
    moves = [torch.cat([(after[d][n] - before[d][n]).flatten() for n in before[d]]) for d in ("cpu", "cuda")]
    assert float((moves[0] - moves[1]).norm() / moves[0].norm()) < 0.05
    assert losses["cuda"] == pytest.approx(losses["cpu"], rel=0.02)
    assert int(run._at) == 5
    for name in moments["cpu"]:
        assert torch.allclose(moments["cuda"][name], moments["cpu"][name], rtol=0.05, atol=0.05)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("channels", "n", "size"), [(16, 128, 32), (32, 7, 16), (64, 128, 8), (4, 3, 5), (12, 9, 4)])
@pytest.mark.parametrize("gate", [None, 0.0, 1.0, 0.7])
def test_norm_and_rectifier_at_once(channels, n, size, gate, dtype):
    """Against torch's in float64; without a gate there is no shortcut either. 12 channels go by torch's."""
    numbers = torch.Generator("cuda").manual_seed(0)

    def drawn(*shape):
        return torch.randn(shape, generator=numbers, device="cuda")

    x, shortcut, gradient = (drawn(n, channels, size, size).to(dtype) for _ in range(3))
    x = x * 2 + 1
    results = []
    for join, wide in ((fused_norm_and_relu, False), (norm_and_relu, True)):
        norm = nn.BatchNorm2d(channels).cuda()
        with torch.no_grad():
            norm.weight.copy_(torch.linspace(0.5, 1.5, channels))
            norm.bias.copy_(torch.linspace(-1, 1, channels))
        norm, kind = (norm.double(), torch.float64) if wide else (norm, dtype)
        leaves = [t.to(kind).contiguous(memory_format=torch.channels_last).requires_grad_() for t in (x, shortcut)]
        with_gate = () if gate is None else (torch.tensor(gate, device="cuda"), leaves[1])
        out = join(norm, leaves[0], *with_gate)
        out.backward(gradient.to(kind))
        given = leaves[:1] if gate is None else leaves
        found = [out, *(leaf.grad for leaf in given), norm.weight.grad, norm.bias.grad]
        results.append([t.detach().double() for t in (*found, norm.running_mean, norm.running_var)])
    close = 1e-4 if dtype == torch.float32 else 2e-2
    for ours, theirs in zip(*results):
        assert float((ours - theirs).norm()) <= close * float(theirs.norm()) + 1e-4
