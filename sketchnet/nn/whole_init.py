"""Initialise a whole model by one scheme, a stream of random numbers for each layer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn

from sketchnet.checks import check_choice
from sketchnet.errors import InputError
from sketchnet.nn.reference_init import part_seed, seed_from, torch_generator
from sketchnet.nn.weight_shape import WeightShape, Where, chosen, layout_of

OURS = "gaussian achlioptas li srht count_sketch rom sparse delta_orthogonal zero".split()

# torch's own under the names that papers give them; any other of torch.nn.init goes by its name there.
_TORCH: dict[str, Callable] = {
    "he": partial(nn.init.kaiming_normal_, nonlinearity="relu"),
    "xavier": nn.init.xavier_normal_,
    "lecun": partial(nn.init.kaiming_normal_, nonlinearity="linear"),
    "hinton": partial(nn.init.normal_, std=0.01),
    "orthogonal": nn.init.orthogonal_,
}


class Initialised(NamedTuple):
    """What `apply_` did to a layer. `deviation` is that of the weights as they are now."""

    name: str
    shape: tuple[int, ...]
    scheme: str
    deviation: float


def apply_(
    model: nn.Module,
    scheme: str | Callable[..., torch.Tensor],
    where: Where | None = None,
    seed: int | None = 0,
    biases: str = "zero",
    **options,
) -> list[Initialised]:
    """Initialise the weights of the layers that `where` picks, and tell which.

    `scheme` is a name: "gaussian", "achlioptas", "li", "srht", "srht_sparse", "count_sketch", "rom", "sparse",
    "delta_orthogonal", "zero"; "he", "xavier", "lecun", "hinton", "orthogonal"; or another function of torch.nn.init
    without its underscore. Or it is a function of the weight; what it takes of seed, generator, groups and transposed
    is given to it. `options` go to the function.

    `where`: a type of layers, several, or a function of name and module; None means all convolutions and linear layers.
    The numbers that a layer gets depend on the seed and its position in the model, not on what else is initialised.
    seed=None takes one from torch's generator. `biases` of those layers: "zero" or "keep".
    """
    fill, label = _function(scheme)
    check_choice("biases", biases, ("zero", "keep"))
    layers: dict[int, tuple[int, str, nn.Module]] = {}  # by weight, because two layers may share one
    for position, name, module in chosen(model, where):
        weight: Any = getattr(module, "weight", None)
        try:  # all of them before the first is touched
            WeightShape.of(weight, **layout_of(module))
            if "weight" not in (
                module._parameters | module._buffers
            ):  # weight norm, pruning: another is made each time
                raise InputError("its weight is computed from other parameters; initialise it before that is set up")
        except InputError as error:
            raise InputError(f"layer {name!r}, a {type(module).__name__}: {error}") from None
        layers.setdefault(id(weight), (position, name, module))
    seed, done = seed_from(seed), []
    for position, name, module in layers.values():
        weight, bias = module.weight, getattr(module, "bias", None)
        fill(weight, layout_of(module), part_seed(seed, position), options)
        if biases == "zero" and bias is not None:
            nn.init.zeros_(bias)
        deviation = float(weight.detach().double().std()) if weight.numel() > 1 and not weight.is_meta else 0.0
        done.append(Initialised(name, tuple(weight.shape), label, deviation))
    return done


def _function(scheme) -> tuple[Callable, str]:
    """fill(weight, layout, seed, options) and the scheme's name."""
    if callable(scheme):
        return partial(_call, scheme), getattr(scheme, "__name__", type(scheme).__name__)
    if scheme in OURS or scheme == "srht_sparse":
        from sketchnet.nn import init  # here, because it re-exports this module

        is_sparse = scheme == "srht_sparse"
        function = partial(init.srht_, form="sparse") if is_sparse else getattr(init, f"{scheme}_")
        return partial(_call, function), scheme
    function = isinstance(scheme, str) and (_TORCH.get(scheme) or getattr(nn.init, f"{scheme}_", None))
    if not function or scheme.startswith("_"):
        known = ", ".join([*OURS, "srht_sparse", *_TORCH])
        raise InputError(f"there is no scheme {scheme!r}; there are {known}, and the functions of torch.nn.init")
    return partial(_call_torch, function), scheme


def _call_torch(function, weight, layout, seed, options) -> None:
    """torch's functions know neither groups nor transposed weights: they get a plain weight for each group."""
    shape, numbers = WeightShape.of(weight, **layout), torch_generator(seed)
    if shape.skip(weight):
        return
    parts = torch.empty(shape.groups, shape.outputs, shape.channels, *shape.window)
    if "generator" in inspect.signature(function).parameters:
        options = {"generator": numbers, **options}
    for part in parts:
        function(part, **options)
    shape.put(weight, parts.reshape(shape.groups, shape.outputs, shape.d))


def _call(function, weight, layout, seed, options) -> None:
    takes = inspect.signature(function).parameters
    every = any(p.kind is p.VAR_KEYWORD for p in takes.values()) and "generator" not in takes
    if every or "seed" in takes:
        offered = {**layout, "seed": seed}
    else:  # it may draw on the weight's device
        offered = {**layout, "generator": torch_generator(seed, "cpu" if weight.is_meta else weight.device)}
    given = {name: value for name, value in offered.items() if every or name in takes}
    with torch.no_grad():
        function(weight, **given, **options)
