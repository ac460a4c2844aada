"""The kinds of units: the law of a unit given its input x, a bias plus the weighted states of the other side.

    binary      1 with probability sigmoid(x), else 0
    gaussian    N(x, 1)
    relu        max(0, x + N(0, sigmoid(x))), where sigmoid(x) is the variance: the noisy rectified linear unit of Nair
                and Hinton (2010)
    poisson     word counts of a document of N words: multinomial with N draws and probabilities softmax(x) over all
                units. That is the constrained Poisson model of Salakhutdinov and Hinton (2009), whose units have the
                means N softmax(x), given that the counts add up to N as they do in the data.

For each kind, `mean` is what a unit passes on without noise. It is the law's expectation, but for relu, which passes on
max(0, x) as the network does that is trained afterwards; `expected` is the expectation there as well.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch.nn.functional import softplus

from sketchnet.errors import InputError
from sketchnet.kernels import backend

_LONG = 1 << 16  # words of a row that are drawn one by one
_MOST = 1 << 31  # times that a word stands in a row: their sum is to fit 64 bits


class Binary:
    def mean(self, x, length=None):
        return torch.sigmoid(x)

    expected = mean

    def sample(self, x, expected, generator, length=None):
        if x.device.type != "cpu":
            return uniform_like(x, generator).lt_(expected)
        # torch would take as long as for multiplying a matrix by a batch
        multiplier, offset = (np.uint64(seed) for seed in _seeds(generator))
        key = multiplier | np.uint64(1), offset
        return torch.from_numpy(backend().draw_states(key, expected.numpy().ravel())).view(x.shape)

    def free_energy(self, v, bias):
        return -(v @ bias)

    def free_energy_hidden(self, x):
        return -softplus(x).sum(1)

    def check(self, values):
        # Values between 0 and 1 stand for probabilities, as grey levels of images and outputs of a layer below do.
        require(values, 0, 1, "binary units take values from 0 to 1", "gaussian")

    def bias(self, sums, n_rows):
        """The log-odds of the unit being on; half a row on either side keeps them finite."""
        share = (sums + 0.5) / (n_rows + 1)
        return torch.log(share / (1 - share))


class Gaussian:
    def mean(self, x, length=None):
        return x

    expected = mean

    def sample(self, x, expected, generator, length=None):
        return x + normal_like(x, generator)

    def free_energy(self, v, bias):
        return 0.5 * (v - bias).square().sum(1)

    def free_energy_hidden(self, x):
        return -0.5 * x.square().sum(1)

    def check(self, values):
        require(values, -math.inf, math.inf, "gaussian units take finite numbers")

    def bias(self, sums, n_rows):
        return sums / n_rows


class Relu:
    def mean(self, x, length=None):
        return torch.relu(x)

    def expected(self, x, length=None):
        """x Phi(x / s) + s phi(x / s) for s**2 = sigmoid(x): Phi, phi are the normal's distribution and density."""
        s = torch.sigmoid(x).sqrt_()
        z = (x / s).clamp_(-30, 30)  # where s is rounded to 0 or x is large, Phi is 0 or 1 all the same
        density = (z * z).mul_(-0.5).exp_().div_(math.sqrt(2 * math.pi))
        return torch.special.ndtr(z).mul_(x).add_(s.mul_(density)).clamp_(min=0)

    def sample(self, x, expected, generator, length=None):
        return torch.sigmoid(x).sqrt_().mul_(normal_like(x, generator)).add_(x).relu_()

    # No free energy: the noise is an approximation that no energy belongs to.

    def check(self, values):
        require(values, 0, math.inf, "relu units take numbers from 0", "gaussian")

    bias = Gaussian.bias


class Poisson:
    def mean(self, x, length):
        return torch.softmax(x, 1).mul_(length[:, None])

    expected = mean

    def sample(self, x, expected, generator, length):
        """One search for all words of the batch: row r's cumulative probabilities lie between r and r + 1. If a row is
        very long, counts are drawn column by column instead, on the processor: time and memory do not follow the words.
        """
        n, width = x.shape
        if length.max() > _LONG:
            rng = np.random.Generator(np.random.SFC64(_seeds(generator)))
            shares = torch.softmax(x.double(), 1)
            shares /= shares.sum(1, keepdim=True)
            counts = rng.multinomial(length.long().cpu().numpy(), shares.cpu().numpy())
            return torch.from_numpy(counts).to(x)
        row = torch.arange(n, device=x.device, dtype=torch.float64)
        edges = torch.softmax(x.double(), 1).cumsum(1).clamp_(max=1.0)
        edges[:, -1] = 1.0
        edges += row[:, None]
        words = row.repeat_interleave(length.long())
        words += uniform_like(words, generator)
        drawn = torch.searchsorted(edges.view(-1), words, right=True)
        return torch.bincount(drawn, minlength=n * width).view(n, width).to(x.dtype)

    free_energy = Binary.free_energy

    def check(self, values):
        require(values, 0, _MOST, "poisson units take counts: whole numbers from 0 to 2**31", "gaussian", whole=True)

    def bias(self, sums, n_rows):
        """The log of the word's share; half a word more of each keeps them finite."""
        return torch.log((sums + 0.5) / (sums.sum() + 0.5 * len(sums)))


UNITS: dict[str, Any] = {"binary": Binary(), "gaussian": Gaussian(), "relu": Relu(), "poisson": Poisson()}
VISIBLE = ("binary", "gaussian", "relu", "poisson")
HIDDEN = ("binary", "gaussian", "relu")


def require(values, low: float, high: float, law: str, rather: str = "", whole: bool = False) -> None:
    """Raise unless all values are finite and from `low` to `high`. One pass for the extremes tells, NaN too; masks,
    which take far longer, are made to find the culprit only.
    """
    if values.numel() == 0:
        return
    most = torch.finfo(values.dtype).max
    low, high = max(low, -most), min(high, most)
    least, greatest = torch.stack(torch.aminmax(values)).tolist()
    if low <= least and greatest <= high and not (whole and bool((values != values.round()).any())):
        return
    good = (values >= low) & (values <= high) & (values == values.round() if whole else True)
    bad = float(values[~good][0])
    advice = f"; other values need visible={rather!r} units" if rather and math.isfinite(bad) else ""
    raise InputError(f"{law}, but a row has {bad:g}{advice}")


def uniform_like(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Uniform numbers in [0, 1]. On the processor torch draws them as slowly as it multiplies a matrix by a batch.

    So there SFC64 makes 64 bits at a time, from a seed that torch's generator draws.
    """
    if x.device.type != "cpu":
        return torch.rand(x.shape, dtype=x.dtype, device=x.device, generator=generator)
    raw = np.random.SFC64(_seeds(generator)).random_raw(-(-x.numel() // 2)).view(np.int32)[: x.numel()]
    return torch.from_numpy(raw).view(x.shape).to(x.dtype).mul_(2.0**-32).add_(0.5)


def _seeds(generator: torch.Generator) -> list[int]:
    return torch.empty(2, dtype=torch.int64, device=generator.device).random_(generator=generator).tolist()


def normal_like(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(x.shape, dtype=x.dtype, device=x.device, generator=generator)
