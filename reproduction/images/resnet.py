"""Residual network with stochastic depth, in the form for small images (CIFAR, SVHN)."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from sketchnet.checks import check_integer, check_real
from sketchnet.errors import InputError
from sketchnet.nn.init import apply_


class StochasticDepthResNet(nn.Module):
    """A convolution, depth = 6n + 2 layers in three stages of n basic blocks, average pooling, a linear layer.

    Stages are 16, 32 and 64 channels wide; the second and third halve the image. Shortcuts have no weights: every
    second pixel, and zeros for the new channels (option A of He et al., "Deep residual learning", CVPR 2016).

    In training, block l of L counts for nothing in a whole batch with probability 1 - p_l, where p_l = 1 - l/L * (1 -
    survival); otherwise its residual counts p_l times. Huang et al., "Deep networks with stochastic depth", ECCV 2016.

    Convolutions begin by He's scheme with numbers of torch's generator; `init.apply_(net, ...)` does it anew.

    `join` is what follows a convolution, `norm_and_relu`; training on a GPU puts a faster one in its place.
    """

    def __init__(
        self, depth: int = 20, n_classes: int = 10, survival: float = 0.5, in_channels: int = 3, width: int = 16
    ):
        super().__init__()
        if check_integer("depth", depth, 8, 10_000) % 6 != 2:
            raise InputError(f"depth={depth} is not possible; it is 6n + 2: 20, 32, 44, 56, 110, 152, ...")
        check_real("survival", survival, 0.0)
        if not 0 < survival <= 1:
            raise InputError(f"survival={survival} is not possible; it is above 0 and at most 1")
        channels, widths = check_integer("width", width, 1, 2**20), []
        self.stem = nn.Sequential(_convolution(in_channels, channels), nn.BatchNorm2d(channels), nn.ReLU())
        for stage in range(3):
            widths += [width << stage] * ((depth - 2) // 6)
        blocks = []
        for outputs in widths:
            blocks.append(BasicBlock(channels, outputs))
            channels = outputs
        self.blocks, self.head = nn.ModuleList(blocks), nn.Linear(channels, n_classes)
        steps = torch.arange(1, len(blocks) + 1) / len(blocks)
        self.register_buffer("survival", 1 - steps * (1 - survival), persistent=False)
        self.join = norm_and_relu
        apply_(self, "he", where=nn.Conv2d, seed=None)
        nn.init.zeros_(self.head.bias)

    def draw_gates(self, generator: torch.Generator, n_batches: int) -> torch.Tensor:
        """A row for each batch: 1 for the blocks that take part in it, 0 for the others; on the processor."""
        return (torch.rand(n_batches, len(self.blocks), generator=generator) < self.survival.cpu()).float()

    def forward(self, x: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
        """Class scores, with residuals multiplied by `gates`, one number a block: drawn in training, else `survival`.

        The work is the same for all gates, so that a CUDA graph can hold it and read them from a tensor. Batch
        normalisation of a block with a gate of 0 sees the batch too.
        """
        if gates.shape != (len(self.blocks),):
            raise InputError(
                f"gates has shape {tuple(gates.shape)}; it must be ({len(self.blocks)},), a number a block"
            )
        x = self.join(self.stem[1], self.stem[0](x))
        for block, gate in zip(self.blocks, gates.to(x.device)):
            x = block(x, gate, self.join)
        return self.head(x.mean(dim=(2, 3)))


class BasicBlock(nn.Module):
    """relu(shortcut(x) + gate * residual(x)), where the residual is two 3 x 3 convolutions."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.stride, self.added = (1 if inputs == outputs else 2), outputs - inputs
        self.first, self.first_norm = _convolution(inputs, outputs, self.stride), nn.BatchNorm2d(outputs)
        self.second, self.second_norm = _convolution(outputs, outputs), nn.BatchNorm2d(outputs)

    def shortcut(self, x: torch.Tensor) -> torch.Tensor:
        if self.added == 0:
            return x
        return functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.added))

    def forward(self, x: torch.Tensor, gate: torch.Tensor, join) -> torch.Tensor:
        hidden = join(self.first_norm, self.first(x))
        return join(self.second_norm, self.second(hidden), gate, self.shortcut(x))


def norm_and_relu(
    norm: nn.BatchNorm2d, x: torch.Tensor, gate: torch.Tensor | None = None, shortcut: torch.Tensor | None = None
) -> torch.Tensor:
    """relu(gate * norm(x) + shortcut)."""
    x = norm(x) if gate is None else norm(x) * gate
    return functional.relu(x if shortcut is None else shortcut + x)


def _convolution(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
