"""Weights that restricted Boltzmann machines start from: Hinton's small normal ones, or a random projection's."""

from __future__ import annotations

import torch

from sketchnet.nn import init
from sketchnet.nn.reference_init import torch_generator

RBM_SCHEMES = ("gaussian", "achlioptas", "li", "srht", "count_sketch")
_STD = 0.01
_GAMMA = 0.3  # its few weights would be huge at that deviation


def init_rbm_(weight: torch.Tensor, scheme: str | None, seed: int) -> torch.Tensor:
    """Fill the weight (hidden, visible) in place, and return it.

    None: independent N(0, 0.01**2), as in Hinton's practical guide (2012). A scheme: the transpose of the projection's
    matrix, brought to the mean zero and the deviation 0.01; Count Sketch instead has one weight of +-0.3 a visible unit
    and zeros, which were the dissertation's choices.
    """
    if scheme is None:
        drawn = torch.empty(weight.shape[::-1]).normal_(0, _STD, generator=torch_generator(seed))
        with torch.no_grad():
            return weight.copy_(drawn.t())
    how = {"gamma": _GAMMA} if scheme == "count_sketch" else {"std": _STD, "zero_mean": True}
    return getattr(init, f"{scheme}_")(weight, seed=seed, **how)
