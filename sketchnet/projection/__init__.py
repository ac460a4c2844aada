"""PROJECT: five random projections that need no stored matrix.

A scheme is a law (`CountSketch(k=1000)`), `sample(d, seed)` gives an operator, and the operator projects data (`apply`)
or shows any part of its matrix (`block`).
"""

from __future__ import annotations

import dataclasses

from sketchnet.errors import InputError
from sketchnet.lazy import load_on_use
from sketchnet.projection.achlioptas import Achlioptas
from sketchnet.projection.count_sketch import CountSketch
from sketchnet.projection.gaussian import Gaussian
from sketchnet.projection.li import Li
from sketchnet.projection.operator import Operator, Scheme
from sketchnet.projection.srht import SRHT

# What a law of one's own needs besides Scheme and Operator: rows cut to a budget, and its product on a GPU.
# On first use: one of them loads torch.
__getattr__, __dir__ = load_on_use(__name__, {"plan_rows": "slicing", "product_on": "on_device"})

__all__ = [
    "SCHEMES",
    "SRHT",
    "Achlioptas",
    "CountSketch",
    "Gaussian",
    "Li",
    "Operator",
    "Scheme",
    "make_scheme",
    "plan_rows",
    "product_on",
]

# Names that users write, and the options that each fixes.
SCHEMES: dict[str, tuple[type[Scheme], dict]] = {
    "gaussian": (Gaussian, {}),
    "achlioptas": (Achlioptas, {}),
    "li": (Li, {}),
    "srht": (SRHT, {}),
    "srht_sparse": (SRHT, {"form": "sparse"}),
    "count_sketch": (CountSketch, {}),
}


def make_scheme(name: str, k: int, **options) -> Scheme:
    """The scheme called `name`; `options` are the law's other parameters, such as s for Li."""
    if not isinstance(name, str) or name not in SCHEMES:
        raise InputError(f"there is no scheme {name!r}; there are {', '.join(SCHEMES)}")
    law, fixed = SCHEMES[name]
    allowed = [f.name for f in dataclasses.fields(law) if f.name != "k" and f.name not in fixed]
    for option in options:
        if option not in allowed:
            raise InputError(f"{name} has no option {option!r}; it has {', '.join(allowed) or 'none'}")
    return law(k, **fixed, **options)
