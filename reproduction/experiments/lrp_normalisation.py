"""Rows and claims of the two tables about the normalisation of learnt projections."""

from reproduction.experiments.chapter4 import MNIST, SYNTHETIC
from reproduction.experiments.experiment import Claim

ROWS = {
    "No normalization": {"normalise": "none"},
    "MaxAbs scaling": {"normalise": "none", "scale_input": "max_abs"},
    "Batch Normalization": {},
}
_FIXED = "Fixed-weight RP layer"

CLAIMS = (
    Claim(
        "Training networks with the finetuned RP layer on unnormalized data: compared to the reference networks with "
        "fixed-weight RP layers, these performed better on all data sets except webspam (here: MNIST and synthetic).",
        lambda values: all(values("No normalization", x) < values(_FIXED, x) for x in (MNIST, SYNTHETIC)),
    ),
    Claim(
        "For the synthetic data set, networks trained on data scaled by MaxAbs performed even worse than the reference "
        "networks with fixed-weight RP layer, and worst of all.",
        lambda values: (
            values("MaxAbs scaling", SYNTHETIC)
            > max(values(name, SYNTHETIC) for name in (_FIXED, "No normalization", "Batch Normalization"))
        ),
    ),
    Claim(
        "Only networks that used BN consistently outperformed the reference networks (here: on MNIST and synthetic).",
        lambda values: all(values("Batch Normalization", x) < values(_FIXED, x) for x in (MNIST, SYNTHETIC)),
    ),
)
