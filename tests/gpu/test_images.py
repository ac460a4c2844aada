"""Captured steps on images learn, in turn with others too, and are the steps of the processor but for rounding."""

from dataclasses import replace

import pytest
import torch

from sketchnet.training import images
from sketchnet.training.images import ImageConfig, train_images, train_together
from tests.training.separable_images import separable

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

SMALL = ImageConfig(depth=8, width=8, epochs=2, batch_size=16, pad=1)
TRAIN, TEST = separable(), separable(150, seed=1)


def test_it_learns():
    """Chance is an error of 2/3."""
    records = []
    errors = train_images(SMALL, TRAIN, TEST, "cuda", report=records.append)
    assert errors[-1] <= 0.05
    assert records[1]["loss"] < records[0]["loss"]
    assert [r["test_error"] for r in records] == errors


def test_several_networks_in_turn():
    configs = [replace(SMALL, seed=seed, scheme=scheme) for seed, scheme in enumerate(("he", "srht", "orthogonal"))]
    for errors in train_together(configs, TRAIN, TEST, "cuda"):
        assert len(errors) == 2
        assert errors[-1] <= 0.05


def test_replayed_steps_are_those_of_the_processor():
    """Five steps, with a timid rate lest rounding to bfloat16 grow: weights move the same way, to 5 % of the way."""
    config = replace(SMALL, rate=0.01)
    before, after, losses = {}, {}, {}
    for device in ("cpu", "cuda"):
        run = images._Run(config, images._OnDevice(TRAIN, TEST, torch.device(device)))
        before[device] = {n: p.detach().cpu().clone() for n, p in run._net.named_parameters()}
        run.begin(0)
        for _ in range(5):
            run.advance()
        losses[device] = run.result()[1]
        after[device] = {n: p.detach().cpu() for n, p in run._net.named_parameters()}
    for name, start in before["cpu"].items():
        assert torch.equal(before["cuda"][name], start)  # what the capture tried was put back
    moves = [torch.cat([(after[d][n] - before[d][n]).flatten() for n in before[d]]) for d in ("cpu", "cuda")]
    assert float((moves[0] - moves[1]).norm() / moves[0].norm()) < 0.05
    assert losses["cuda"] == pytest.approx(losses["cpu"], rel=0.02)
    assert int(run._at) == 5
    for layer in run._net.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            assert int(layer.num_batches_tracked) == 5
