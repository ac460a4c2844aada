"""Initialisations that are no random projections: Martens' sparse, delta-orthogonal and ZerO; and their random numbers.

As in `torch.nn.init` they work in place and return the tensor. `groups` and `transposed` say what a tensor does not
show: groups of a convolution, and a weight that is stored (in, out/groups, ...).
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import torch

from sketchnet import random
from sketchnet.checks import check_integer, check_real
from sketchnet.errors import InputError
from sketchnet.kernels import backend
from sketchnet.nn.weight_shape import WeightShape


def sparse_(
    tensor: torch.Tensor,
    nonzeros: int = 15,
    std: float = 1.0,
    *,
    groups: int = 1,
    transposed: bool = False,
    seed: int | None = None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """N(0, std**2) for `nonzeros` incoming weights of each unit, chosen at random; the others are zero.

    Martens, "Deep learning via Hessian-free optimization", ICML 2010. (torch.nn.init.sparse_ limits what goes out of
    each input instead.) Units with fewer inputs have them all. For rectifiers, std = sqrt(2 / nonzeros) keeps variance.
    """
    shape = WeightShape.of(tensor, groups, transposed)
    nonzeros, std = check_integer("nonzeros", nonzeros, 1, 2**31), check_real("std", std)
    if shape.skip(tensor):
        return tensor
    source = torch_generator(seed_from(seed, generator))
    units, count = shape.groups * shape.outputs, min(nonzeros, shape.d)
    inputs = torch.rand(units, shape.d, generator=source).topk(count, dim=1).indices
    weights = torch.zeros(units, shape.d).scatter_(1, inputs, std * torch.randn(units, count, generator=source))
    return shape.put(tensor, weights)


def delta_orthogonal_(
    tensor: torch.Tensor,
    gain: float = 1.0,
    *,
    groups: int = 1,
    transposed: bool = False,
    seed: int | None = None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """gain * a uniformly drawn orthogonal matrix of channels at the window's centre, zero elsewhere.

    A convolution of stride 1 then keeps norms (times gain) unless it has fewer outputs than inputs; in that case the
    rows are orthonormal. Xiao et al., "Dynamical isometry and a mean field theory of CNNs", ICML 2018.
    """
    shape = WeightShape.of(tensor, groups, transposed)
    gain = check_real("gain", gain)
    if shape.skip(tensor):
        return tensor
    source = torch_generator(seed_from(seed, generator))
    centres = [torch.empty(shape.outputs, shape.channels) for _ in range(shape.groups)]
    for centre in centres:
        torch.nn.init.orthogonal_(centre, gain, generator=source)
    return shape.put(tensor, torch.stack([shape.centre(centre) for centre in centres]))


def zero_(tensor: torch.Tensor, gain: float = 1.0, *, groups: int = 1, transposed: bool = False) -> torch.Tensor:
    """ZerO, which draws nothing: the identity (or its first rows) at the window's centre, zero elsewhere.

    Where outputs outnumber inputs, the identity would leave units equal for ever, so a corner of the Walsh-Hadamard
    matrix of size 2**m >= outputs takes its place, times 2**(-m/2) as in the authors' code; the paper prints
    2**(-(m-1)/2), which is gain=sqrt(2). Zhao, Schaefer and Anandkumar, "ZerO initialization", TMLR 2022. They also set
    the last layer of a residual branch to zero: that is a property of the model, and left to it.
    """
    shape = WeightShape.of(tensor, groups, transposed)
    gain = check_real("gain", gain)
    if shape.skip(tensor):
        return tensor
    centre = torch.eye(shape.outputs, shape.channels)
    if shape.outputs > shape.channels:
        size = 1 << (shape.outputs - 1).bit_length()
        rows = np.eye(shape.channels, size, dtype=np.float32)
        centre = torch.from_numpy(hadamard_rows(rows, [])[:, : shape.outputs]).T / sqrt(size)
    return shape.put(tensor, shape.centre(gain * centre).expand(shape.groups, -1, -1))


def hadamard_rows(rows: np.ndarray, keys: list) -> np.ndarray:
    """rows H D_1 H D_2 ... with a diagonal of signs for each key (one H and no signs for none); overwrites `rows`.

    H is unnormalised at first and normalised in between, so that entries keep their size.
    """
    kernels, size = backend(), rows.shape[1]
    ids = np.arange(size, dtype=np.uint64)
    kernels.fwht(rows)
    for count, key in enumerate(keys):
        if count > 0:
            kernels.fwht(rows)
        signs = 1 - 2 * random.sign_bit_of(random.hash64(ids, *key)).astype(np.float32)
        rows *= signs if count == 0 else signs / np.float32(sqrt(size))
    return rows


def seed_from(seed: int | None, generator: torch.Generator | None = None) -> int:
    """The given seed, or one drawn from a generator (torch's own by default)."""
    if seed is None:
        device = "cpu" if generator is None else generator.device
        return int(torch.randint(0, 2**63 - 1, (), generator=generator, device=device))
    if generator is not None:
        raise InputError("seed and generator are two sources of random numbers; give one")
    return check_integer("seed", seed, 0, 2**64 - 1)


def part_seed(seed: int, layer: int, group: int = 0) -> int:
    """The seed of a layer of a model, or of a group of a layer."""
    low, high = random.words(seed, random.STREAM_INIT, layer, group)[0, :2].tolist()
    return low | high << 32


def torch_generator(seed: int, device="cpu") -> torch.Generator:
    """On the processor by default, so that every device gets the same weights."""
    return torch.Generator(device).manual_seed(seed % 2**63)
