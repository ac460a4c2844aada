"""Rows and claims of the two tables about the activation of learnt projections."""

from reproduction.experiments.chapter4 import MNIST, SYNTHETIC
from reproduction.experiments.experiment import Claim

ROWS = {
    "Linear": {},
    "Sigmoid": {"activation": "sigmoid"},
    "LReLU": {"activation": "leaky_relu"},
    "ReLU": {"activation": "relu"},
}
_CURVED, _FIXED = ("Sigmoid", "LReLU", "ReLU"), "Reference RP layer"

CLAIMS = (
    Claim(
        "Compared to networks with the fixed-weight RP layer, networks with linear finetuned RP layer performed better "
        "on all data sets (here: MNIST and synthetic).",
        lambda values: all(values("Linear", x) < values(_FIXED, x) for x in (MNIST, SYNTHETIC)),
    ),
    Claim(
        "Introducing a nonlinearity after the RP layer decreased the network performance.",
        lambda values: all(values(name, x) > values("Linear", x) for name in _CURVED for x in (MNIST, SYNTHETIC)),
    ),
    Claim(
        "Networks with a nonlinearity after the finetuned RP layer performed very similarly to, or were outperformed "
        "by, networks with the fixed-weight RP layer (here: they are at most 0.5 points better).",
        lambda values: all(values(name, x) >= values(_FIXED, x) - 0.5 for name in _CURVED for x in (MNIST, SYNTHETIC)),
    ),
)
