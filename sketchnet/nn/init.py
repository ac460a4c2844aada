"""Weights drawn from random projections, in the manner of `torch.nn.init`: in place, and the tensor is returned.

A linear layer is an in -> out projection; a convolution c_out x c_in x k x k is one of d = c_in * k * k inputs to c_out
outputs (each group for itself). W is the transpose of the matrix P that `sketchnet.projection` draws for the same
seed, brought to He's deviation: W = P^T * gain / sqrt(d) / std(P), with gain sqrt(2) for rectifiers. The standard
deviation is the empirical one. Wojcik and Kurdziel, "Random projection initialization for deep neural networks",
ESANN 2017.

Not every initialisation is a projection: see `reference_init` for the others, and `whole_init` for `apply_`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from inspect import signature
from math import sqrt
from typing import Any, TypedDict, Unpack, cast

import numpy as np
import torch
from torch.nn.init import calculate_gain

from sketchnet import random
from sketchnet.checks import check_flag, check_integer, check_real
from sketchnet.errors import InputError
from sketchnet.kernels import backend
from sketchnet.nn.reference_init import delta_orthogonal_, hadamard_rows, part_seed, seed_from, sparse_, zero_
from sketchnet.nn.weight_shape import WeightShape
from sketchnet.nn.whole_init import Initialised, apply_
from sketchnet.projection import SRHT, Achlioptas, CountSketch, Gaussian, Li, Scheme
from sketchnet.projection.slicing import spans

__all__ = [
    "Drawing",
    "Initialised",
    "achlioptas_",
    "apply_",
    "count_sketch_",
    "delta_orthogonal_",
    "gaussian_",
    "li_",
    "rom_",
    "sparse_",
    "srht_",
    "zero_",
]

_AT_ONCE = 256  # rows of P that are drawn and transposed while they are in the cache


class Placing(TypedDict, total=False):
    """What every function takes, because a tensor does not show it."""

    groups: int  # of a convolution; 1
    transposed: bool  # the layer is a transposed convolution (or a matrix stored in x out); False
    transpose: bool  # draw P for out -> in and use it untransposed; did worse in the dissertation; False
    seed: int | None  # None: drawn from `generator`
    generator: torch.Generator | None  # None: torch's own, which torch.manual_seed governs


class Drawing(Placing, total=False):
    """And how the dense schemes and Li are scaled."""

    gain: float | None  # weights get the deviation gain / sqrt(d); None: calculate_gain(nonlinearity)
    nonlinearity: str  # "relu", so the gain is sqrt(2)
    std: float | None  # the deviation itself: 0.01 for an RBM
    scaled: bool  # False keeps the law's own scale, E|xP|^2 = |x|^2; True
    zero_mean: bool  # subtract the empirical mean first; zeros of P are then none; False


def gaussian_(tensor: torch.Tensor, **how: Unpack[Drawing]) -> torch.Tensor:
    """Independent normal weights: He's initialisation, with the deviation exact instead of expected."""
    return _project(tensor, lambda k, d: Gaussian(k), **_known(gaussian_, how))


def achlioptas_(tensor: torch.Tensor, s: int = 3, **how: Unpack[Drawing]) -> torch.Tensor:
    """Weights c * (+1, 0 or -1 with probabilities 1/2s, 1 - 1/s, 1/2s), s = 3 or 1."""
    return _project(tensor, lambda k, d: Achlioptas(k, s), **_known(achlioptas_, how))


def li_(tensor: torch.Tensor, s: float | None = None, **how: Unpack[Drawing]) -> torch.Tensor:
    """The same with any s, sqrt(d) by default. With the deviation fixed, few weights are large ones."""
    return _project(tensor, lambda k, d: Li(k, s), **_known(li_, how))


def srht_(
    tensor: torch.Tensor,
    form: str = "subsampled",
    *,
    n_examples: int | None = None,
    density: float | None = None,
    entries: str = "normal",
    **how: Unpack[Drawing],
) -> torch.Tensor:
    """Randomised Hadamard transform, by the fast transform.

    form="subsampled": all weights are +-c. If d is a power of two and no less than the outputs, rows are orthogonal.

    form="sparse": the dissertation's D H S, where S has the given `density`, or ln(n_examples)**2 / d for that many
    training examples an epoch. Where this reaches 1 (d up to 117 for 50,000 examples) it is the Gaussian law.
    """
    if form == "sparse" and (density is None) == (n_examples is None):
        raise InputError('form="sparse" of SRHT takes either density or n_examples')
    if form != "sparse" and n_examples is not None:
        raise InputError('n_examples belongs to form="sparse" of SRHT')
    if n_examples is not None:
        check_real("n_examples", n_examples, 1)

    def law(k: int, d: int) -> SRHT:
        q = density if n_examples is None else SRHT.thesis_density(n_examples, d)
        return SRHT(k, form, q, entries)

    return _project(tensor, law, **_known(srht_, how))


def count_sketch_(tensor: torch.Tensor, gamma: float = 0.1, **how: Unpack[Placing]) -> torch.Tensor:
    """One weight of +-gamma an input, at a random output; all others are zero.

    Its d non-zeros would become huge at He's deviation, so they are scaled by `gamma` alone. In the dissertation 0.1
    and 0.3 worked; above 1 training diverged.
    """
    gamma, how = check_real("gamma", gamma), _known(count_sketch_, how, Placing)  # a gain would do nothing
    return _project(tensor, lambda k, d: CountSketch(k), scaled=False, factor=gamma, **how)


def rom_(tensor: torch.Tensor, blocks: int = 3, **how: Unpack[Drawing]) -> torch.Tensor:
    """Random orthogonal matrix H D_1 H D_2 ... with `blocks` factors: H Walsh-Hadamard, D_i random signs.

    Rows are picked at random as in SRHT, which is the case blocks=1; more blocks come closer to a uniformly drawn
    orthogonal matrix. Choromanski, Rowland and Weller, "The unreasonable effectiveness of structured random orthogonal
    embeddings", NIPS 2017.
    """
    blocks = check_integer("blocks", blocks, 1, 64)
    return _project(tensor, lambda k, d: SRHT(k), blocks=blocks, **_known(rom_, how))


def _known(function: Callable, how: Any, kind: type = Drawing) -> Any:
    """`how`, if the function takes these names. Python's own error would speak of a function that users do not see."""
    own = [name for name in signature(function).parameters if name != "how"]
    for name in how:
        if name not in kind.__annotations__:
            raise TypeError(
                f"{function.__name__} takes no {name!r}; it takes {', '.join([*own, *kind.__annotations__])}"
            )
    return how


def _project(
    tensor: torch.Tensor,
    law: Callable[[int, int], Scheme],
    *,
    gain: float | None = None,
    nonlinearity: str = "relu",
    std: float | None = None,
    scaled: bool = True,
    zero_mean: bool = False,
    transpose: bool = False,
    groups: int = 1,
    transposed: bool = False,
    seed: int | None = None,
    generator: torch.Generator | None = None,
    factor: float = 1.0,
    blocks: int = 1,
) -> torch.Tensor:
    """Fill with the draws of law(k, d), a group a draw; k outputs of d inputs, or the reverse with `transpose`."""
    shape = WeightShape.of(tensor, groups, transposed)
    gain = calculate_gain(cast(Any, nonlinearity)) if gain is None else check_real("gain", gain)
    deviation = gain / sqrt(max(shape.d, 1)) if std is None else check_real("std", std)
    turned, scaled = check_flag("transpose", transpose), check_flag("scaled", scaled)
    if shape.skip(tensor):
        return tensor
    k, d = (shape.d, shape.outputs) if turned else (shape.outputs, shape.d)
    scheme, seed = law(k, d), seed_from(seed, generator)
    number = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    weights = torch.empty(shape.groups, shape.outputs, shape.d, dtype=number)
    for group in range(shape.groups):
        operator = scheme.sample(d, seed if group == 0 else part_seed(seed, 0, group))
        _draw(operator, weights[group].T if turned else weights[group], blocks)
        scale = operator.scale
    if zero_mean:
        weights -= weights.mean()
    weights *= deviation / _deviation(weights) if scaled else scale * factor
    return shape.put(tensor, weights)


def _draw(operator: Any, out: torch.Tensor, blocks: int) -> None:
    """out (k x d) = P^T / scale."""
    kernels = backend()
    if isinstance(operator.scheme, SRHT):
        # P^T = S^T H D: the rows of S^T, transformed. Bit parity, which suits sparse data, takes one step an entry
        # and frequency; the fast transform takes log2(size) an entry for all frequencies at once.
        offsets, at, values = operator.picks(slice(0, operator.k), kernels)
        rows = np.zeros((operator.k, operator.size), np.float32)
        rows[np.repeat(np.arange(operator.k), np.diff(offsets)), at.astype(np.int64)] = values
        keys = [operator.key, *(random.hash_key(operator.seed, random.STREAM_DIAGONAL, b) for b in range(1, blocks))]
        out.copy_(torch.from_numpy(hadamard_rows(rows, keys)[:, : operator.d]))
        return
    for span in spans(operator.d, _AT_ONCE):
        entries = operator.entries(np.arange(span.start, span.stop), slice(0, operator.k), kernels)
        out[:, span] = torch.from_numpy(entries).T


def _deviation(weights: torch.Tensor) -> float:
    """Standard deviation about the mean; about zero where all weights are equal, as a single one is."""
    found = float(weights.std()) if weights.numel() > 1 else 0.0
    found = found or float(weights.square().mean().sqrt())
    if found == 0:
        warnings.warn("all weights of a layer were drawn as zero; take a denser scheme", stacklevel=4)
    return found or 1.0
