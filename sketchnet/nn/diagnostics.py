"""What an initialisation does: how near a layer is to an isometry, and what becomes of variance with depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

from sketchnet.errors import InputError
from sketchnet.nn.weight_shape import WeightShape, Where, chosen, layout_of


@dataclass(frozen=True)
class Orthogonality:
    """Singular values of a layer's d x outputs matrix (of each group's, one row a group), largest first.

    `scale` is the root mean square of the min(d, outputs) singular values: the isometry that comes closest is `scale`
    times one. `deviation` is how far the worst direction is from it, max |s / scale - 1|: zero for orthogonal rows (or
    columns) of equal length. `condition` is the largest over the smallest singular value.
    """

    singular_values: torch.Tensor
    scale: float
    deviation: float
    condition: float


def orthogonality(
    layer_or_weight: nn.Module | torch.Tensor, *, groups: int = 1, transposed: bool = False
) -> Orthogonality:
    """Singular values of a linear or convolutional layer; for a bare weight, `groups` and `transposed` as in `init`."""
    weight: Any = layer_or_weight  # of a layer without one, WeightShape tells
    layout = {"groups": groups, "transposed": transposed}
    if isinstance(layer_or_weight, nn.Module):
        weight, layout = getattr(layer_or_weight, "weight", None), layout_of(layer_or_weight)
    matrices = WeightShape.of(weight, **layout).matrices(weight)
    if matrices.numel() == 0:
        raise InputError(f"a weight of shape {tuple(weight.shape)} has no singular values")
    values = torch.linalg.svdvals(matrices.double().cpu())
    scale = float(values.square().mean().sqrt())
    if scale == 0:
        return Orthogonality(values, 0.0, 1.0, float("inf"))
    condition = float("inf") if values.min() == 0 else float(values.max() / values.min())
    return Orthogonality(values, scale, float((values / scale - 1).abs().max()), condition)


class Activation(NamedTuple):
    """A layer's outputs over the batch: their variance, their mean square, and the latter over the input's."""

    name: str
    variance: float
    mean_square: float
    ratio: float


def isometry(model: nn.Module, x: torch.Tensor, where: Where | None = None) -> list[Activation]:
    """Variance of the outputs of the layers that `where` picks, in the order in which they run; inputs x.

    By default convolutions and linear layers, before the nonlinearity. The model runs once in evaluation mode, in which
    fresh batch normalisation hides nothing, and nothing of it changes.
    """
    found, handles = [], []
    start = float(x.detach().double().square().mean())
    modes = {module: module.training for module in model.modules()}

    def record(name):
        def hook(module, inputs, output):
            # moments in double: after a hundred layers a float may have left its range
            values = output.detach().double()
            square = float(values.square().mean())
            ratio = square / start if start > 0 else float("nan")
            found.append(Activation(name, float(values.var(correction=0)), square, ratio))

        return hook

    try:
        for _, name, module in chosen(model, where):
            handles.append(module.register_forward_hook(record(name)))
        with torch.no_grad():
            model.eval()(x)
    finally:
        for handle in handles:
            handle.remove()
        for module, training in modes.items():
            module.training = training
    return found
