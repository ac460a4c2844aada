"""A layer's weight as projection matrices: which dimensions are inputs, which outputs, and how groups divide them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import nn

from sketchnet.checks import check_flag, check_integer
from sketchnet.errors import InputError

TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
WEIGHT_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, *TRANSPOSED)

Where = type | tuple[type, ...] | Callable[[str, nn.Module], bool]


@dataclass(frozen=True)
class WeightShape:
    """A weight of `groups` matrices, each of `outputs` rows and d = channels * window columns.

    A linear layer (out, in) and a convolution (out, in/groups, k, ...) are stored in that order. A transposed
    convolution is stored as (in, out/groups, k, ...); a matrix (in, out) is its case without a window.
    """

    groups: int
    outputs: int  # of one group
    channels: int  # input channels of one group
    window: tuple[int, ...]
    transposed: bool

    @classmethod
    def of(cls, tensor: torch.Tensor, groups: int = 1, transposed: bool = False) -> WeightShape:
        if not isinstance(tensor, torch.Tensor) or isinstance(tensor, nn.UninitializedParameter):
            raise InputError(f"a weight must be a tensor that has its shape, not {type(tensor).__name__}")
        if tensor.ndim < 2:
            raise InputError(f"a weight of shape {tuple(tensor.shape)} has no inputs and outputs: 2 dimensions or more")
        if not tensor.is_floating_point():
            raise InputError(f"a weight of {tensor.dtype} is not possible; it must be of a floating-point type")
        groups, (first, second, *window) = check_integer("groups", groups, 1, 2**31), tensor.shape
        if first % groups:
            raise InputError(f"groups={groups} does not divide the {first} channels of shape {tuple(tensor.shape)}")
        inputs_first = check_flag("transposed", transposed)
        channels, outputs = (first // groups, second) if inputs_first else (second, first // groups)
        return cls(groups, outputs, channels, tuple(window), inputs_first)

    @property
    def d(self) -> int:
        return self.channels * prod(self.window)

    def skip(self, tensor: torch.Tensor) -> bool:
        """Whether there is nothing to fill; for a tensor without elements, torch warns, and so do we."""
        if tensor.numel() == 0:
            warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=4)
        return tensor.numel() == 0 or tensor.is_meta

    def put(self, tensor: torch.Tensor, matrices: torch.Tensor) -> torch.Tensor:
        """Fill the weight from matrices (groups, outputs, d), whatever its device and type."""
        if self.transposed:
            parts = matrices.reshape(self.groups, self.outputs, self.channels, *self.window)
            matrices = parts.transpose(1, 2)
        with torch.no_grad():
            return tensor.copy_(matrices.reshape(tensor.shape))

    def matrices(self, tensor: torch.Tensor) -> torch.Tensor:
        """The other way round: (groups, outputs, d) from the weight."""
        tensor = tensor.detach()
        if self.transposed:
            tensor = tensor.reshape(self.groups, self.channels, self.outputs, *self.window).transpose(1, 2)
        return tensor.reshape(self.groups, self.outputs, self.d)

    def centre(self, matrix: torch.Tensor) -> torch.Tensor:
        """Matrix (outputs, d) that is `matrix` (outputs, channels) at the window's centre and zero elsewhere.

        For an even window the centre is where torch's padding="same" has it.
        """
        kernel = matrix.new_zeros(self.outputs, self.channels, *self.window)
        centre: tuple = (slice(None), slice(None), *((k - 1) // 2 for k in self.window))
        kernel[centre] = matrix
        return kernel.reshape(self.outputs, self.d)


def layout_of(module: nn.Module) -> dict:
    """`groups` and `transposed` of a layer, which its weight alone does not show."""
    return {"groups": getattr(module, "groups", 1), "transposed": isinstance(module, TRANSPOSED)}


def chosen(model: nn.Module, where: Where | None = None) -> Iterator[tuple[int, str, nn.Module]]:
    """(position in the model, name, module) of the layers that `where` picks: types, or a predicate of name and module.

    All convolutions and linear layers if `where` is None.
    """
    picks: Any = WEIGHT_LAYERS if where is None else where
    is_types = isinstance(picks, type) or (isinstance(picks, tuple) and all(isinstance(t, type) for t in picks))
    if not is_types and not callable(picks):
        raise InputError(f"where={where!r} is not possible; it is a type, a tuple of types or a function(name, module)")
    for position, (name, module) in enumerate(model.named_modules()):
        if isinstance(module, picks) if is_types else picks(name, module):
            yield position, name, module
