"""Greedy pretraining of a stack of layers: each learns to model what the one below makes of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from sketchnet.checks import check_choice
from sketchnet.errors import InputError
from sketchnet.memory import parse_memory
from sketchnet.pretraining.rbm import RBM, RBMConfig
from sketchnet.pretraining.rbm_training import RBMTrainingConfig, copied, train_rbm
from sketchnet.pretraining.rows import lift
from sketchnet.pretraining.units import HIDDEN


@dataclass(frozen=True)
class LayerSpec:
    """A layer to pretrain, the kind of its units, and the random projection that its RBM starts as, if any."""

    linear: nn.Linear
    hidden: str = "binary"
    init: str | None = None

    def __post_init__(self) -> None:
        check_choice("hidden", self.hidden, HIDDEN)


def pretrain_stack(
    layers: list[LayerSpec],
    first_visible: str,
    rows: Any,
    config: RBMTrainingConfig,
    *,
    valid=None,
    memory: str | int | None = "1GiB",
    report: Callable[[dict], None] = lambda record: None,
    tick: Callable[[int, int, str], None] = lambda done, total, note: None,
    asked_to_stop: Callable[[], bool] = lambda: False,
    save: Callable[[dict, dict], None] = lambda tensors, notes: None,
    state: tuple[dict, dict] | None = None,
) -> list[RBM]:
    """Train an RBM for each layer, from the lowest on, and copy its weights and hidden biases into the layer.

    Returns the RBMs: their visible biases are what a decoder starts from. `rows` are those of `make_rows`; what a
    layer passes on is kept on the device if it fits `memory`. The visible units of an RBM are of the kind of the
    hidden units below. `report`, `tick`, `asked_to_stop`, `save` and `state` are as in `train_rbm`; `state` may be that
    of a stack that is done, which is then only loaded.
    """
    kinds = [first_visible, *(spec.hidden for spec in layers)]
    _check_widths(layers, rows.n_columns)
    tensors, notes = state or ({}, {"layer": 0, "training": None, "histories": []})
    budget, histories = parse_memory(memory), [list(history) for history in notes["histories"]]
    rbms: list[RBM] = []
    total = len(layers) * config.epochs * rows.n_batches

    for number, spec in enumerate(layers):
        rbm = _make_rbm(spec, kinds[number], config.seed, number)
        done = number * config.epochs * rows.n_batches
        own = {name.partition(".")[2]: tensor for name, tensor in tensors.items() if name.startswith(f"{number}.")}
        if number < notes["layer"]:
            rbm.load_state_dict(own)
            rbm.history = histories[number]
        else:
            begun = notes["training"] if number == notes["layer"] else None

            def keep(running: dict, training: dict, number=number) -> None:
                kept: dict[str, torch.Tensor] = {}
                for i, below in enumerate(rbms):
                    kept |= {f"{i}.{name}": copied(tensor) for name, tensor in below.state_dict().items()}
                kept |= {f"{number}.{name}": tensor for name, tensor in running.items()}
                save(kept, {"layer": number, "training": training, "histories": [below.history for below in rbms]})

            def tell(now: int, _, note: str, done: int = done) -> None:
                tick(done + now, total, note)

            train_rbm(
                rbm, rows, config, layer=number, valid=valid, report=report, asked_to_stop=asked_to_stop, save=keep,
                tick=tell, state=None if begun is None else (own, begun),
            )  # fmt: skip
        rbms.append(rbm)
        if number + 1 < len(layers):
            how = rbm.hidden_mean, rbm.config.n_hidden, config.batch_size, config.seed, budget, rbm.device
            rows, valid = lift(rows, *how), None if valid is None else lift(valid, *how)
    with torch.no_grad():  # all or none: a run that is cut off leaves the layers as they were
        for spec, rbm in zip(layers, rbms):
            spec.linear.weight.copy_(rbm.weight)
            spec.linear.bias.copy_(rbm.hidden_bias)
    return rbms


def _make_rbm(spec: LayerSpec, visible: str, seed: int, number: int) -> RBM:
    linear = spec.linear
    widths = linear.in_features, linear.out_features
    return RBM(RBMConfig(*widths, visible, spec.hidden, (seed + number) % 2**64, spec.init)).to(linear.weight.device)


def _check_widths(layers: list[LayerSpec], width: int) -> None:
    for number, spec in enumerate(layers):
        if not isinstance(spec.linear, nn.Linear) or spec.linear.bias is None:
            raise InputError(f"layer {number + 1} of the stack is {spec.linear!r}; it must be an nn.Linear with a bias")
        taken = spec.linear.in_features
        if taken < width or (number > 0 and taken != width):  # the data's last columns may happen to be empty
            raise InputError(f"layer {number + 1} of the stack takes {taken} columns, but gets {width}")
        width = spec.linear.out_features
