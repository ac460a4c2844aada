"""Courses of training that begin with a stack of RBMs: of networks that learn labels, and of autoencoders."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from sketchnet.data.batches import iterate_batches
from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError, Interrupted, TrainingError
from sketchnet.memory import parse_memory
from sketchnet.nn import Autoencoder, SketchNetwork
from sketchnet.nn.norm import BatchNorm
from sketchnet.normalisation import Moments
from sketchnet.pretraining.rbm import RBM
from sketchnet.pretraining.rbm_training import RBMTrainingConfig
from sketchnet.pretraining.rows import SparseRows, lift
from sketchnet.pretraining.stack import LayerSpec, pretrain_stack
from sketchnet.training import checkpoint
from sketchnet.training.config import TrainingConfig
from sketchnet.training.course import Run, Supervised
from sketchnet.training.divergence import tell_largest
from sketchnet.training.examples import Examples
from sketchnet.training.model import Model

_ROWS = 1024  # looked at together
_SHARE = 0.2  # of a GPU's free memory that the rows of a layer may take; two layers' are there at a time
_UNIT_VARIANCE = ("batch", "standard")  # what the network does with projected rows, as the RBMs see them


class Pretrained(Supervised):
    """Hidden layers learn to model the projected rows first: Gaussian visible units, rectified hidden ones."""

    def check(self, model: Model) -> None:
        config = model.network.config
        if config.normalise not in _UNIT_VARIANCE:
            raise InputError(
                f"pretrain=True is not possible with normalise={config.normalise!r}: Gaussian units need columns of "
                f"unit variance; allowed are {', '.join(_UNIT_VARIANCE)}"
            )

    def pretrain(self, model: Model, examples: Examples, valid: Examples | None, run: Run) -> None:
        network, config = model.network, model.network.config
        linear = [layer for layer in network.layers if isinstance(layer, nn.Linear)]
        moments = Moments(config.n_components)
        for batch in iterate_batches(examples.data, _ROWS, shuffle=False):
            moments.update(_projected(network, batch).cpu().numpy())
        by = moments.mean, moments.inverse(moments.deviation)
        shift, scale = (torch.from_numpy(numbers).float().to(network.device) for numbers in by)

        def first(batch: CsrBatch) -> torch.Tensor:
            return network.layers[0]((_projected(network, batch).to(network.device) - shift) * scale)

        layers = [LayerSpec(layer, "relu", model.training.pretrain_init) for layer in linear[:-1]]
        _, rows = _pretrain(model, layers, "gaussian", (first, config.n_components), examples, valid, run)
        if config.hidden_norm:
            settle_norms(network, rows)


def settle_norms(network: SketchNetwork, rows) -> None:
    """Let hidden layers with batch norm compute what they do without, up to the scale of each unit.

    The norm of a unit with mean m and deviation s gets the factor 1 and the offset m / s, so that it passes on 1 / s
    of its value, and is zero where it was; the layer above multiplies by s. Behind a norm the length of a unit's
    weights has no effect but on the speed of learning, so it becomes that of He's initialisation.
    """
    network.eval()
    deviation = None
    with torch.no_grad():
        for place, norm in enumerate(network.layers):
            if not isinstance(norm, BatchNorm):
                continue
            linear: Any = network.layers[place - 1]
            if deviation is not None:
                linear.weight *= deviation
            growth = 2**0.5 / linear.weight.norm(dim=1).clamp(min=1e-12)
            linear.weight *= growth[:, None]
            linear.bias *= growth
            moments = Moments(linear.out_features)
            for batch in rows.in_order():
                moments.update(network.layers[1:place](batch).cpu().numpy())  # rows went through the first of them
            mean, variance = (torch.from_numpy(x).to(linear.weight) for x in (moments.mean, moments.deviation**2))
            by = (variance + norm.eps).sqrt()
            norm.running_mean.copy_(mean)
            norm.running_var.copy_(variance)
            norm.bias.copy_(mean / by)
            deviation = by / growth


def _projected(network: SketchNetwork, batch: CsrBatch) -> torch.Tensor:
    if not network.config.learn:
        return network.project(batch)
    with torch.no_grad():
        return network.projection(network.read(batch))


def unfold(network: Autoencoder, rbms: list[RBM]) -> None:
    """Let the decoder begin as the RBMs go back: transposed weights, visible biases."""
    with torch.no_grad():
        for layer, rbm in zip(network.decoder, rbms[::-1]):
            layer.weight.copy_(rbm.weight.t())
            layer.bias.copy_(rbm.visible_bias)


def pretrain_autoencoder(model: Model, examples: Examples, valid: Examples | None, run: Run) -> None:
    """An RBM for each layer of the encoder, unfolded into the decoder. Linear codes are Gaussian units."""
    network, config = model.network, model.network.config
    kinds = [*[config.units] * len(config.hidden), "binary" if config.binary_codes else "gaussian"]
    layers = [LayerSpec(layer, kind, model.training.pretrain_init) for layer, kind in zip(network.encoder, kinds)]
    visible = "poisson" if config.visible == "counts" else "gaussian"
    how = (network.visible, config.n_visible), examples, valid, run
    unfold(network, _pretrain(model, layers, visible, *how)[0])


def _pretrain(model: Model, layers: list[LayerSpec], visible: str, first, examples: Examples, valid, run: Run):
    network, config = model.network, rbm_config(model.training)
    budget = parse_memory(run.memory)
    if network.device.type == "cuda":
        budget = int(_SHARE * torch.cuda.mem_get_info(network.device)[0])
    how = *first, config.batch_size, config.seed, budget, network.device
    rows, held = (
        None if part is None else lift(SparseRows(part.data, config.batch_size, config.seed, first[1]), *how)
        for part in (examples, valid)
    )
    path = run.folder and run.folder / checkpoint.PRETRAINING

    def save(tensors: dict, notes: dict) -> None:
        if path is not None and run.team.is_first:
            checkpoint.write_tensors(path, tensors, {**notes, "seconds": time.perf_counter() - run.begun})

    state = checkpoint.read_tensors(path) if path is not None and path.exists() else None
    if state is not None:
        run.begun -= state[1].get("seconds", 0.0)  # earlier versions did not keep them
    run.team.wait()  # until all have read it
    try:
        rbms = pretrain_stack(
            layers, visible, rows, config, valid=held, memory=budget, report=run.report, tick=run.tick,
            asked_to_stop=lambda: run.team.any(run.asked_to_stop()), save=save, state=state,
        )  # fmt: skip
    except TrainingError as error:
        raise TrainingError(f"{error}: {tell_largest(model, examples.data)}") from None
    except Interrupted:
        run.team.wait()  # who leaves early takes the others along, in the middle of writing
        raise
    run.progress.history += [record for rbm in rbms for record in rbm.history]
    return rbms, rows


def rbm_config(training: TrainingConfig) -> RBMTrainingConfig:
    config = RBMTrainingConfig(epochs=training.pretrain, seed=training.seed)
    return config if training.pretrain_rate is None else replace(config, rate=training.pretrain_rate)
