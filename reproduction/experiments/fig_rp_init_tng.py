"""Curves of autoencoders of TNG whose RBMs start as random projections."""

from reproduction.experiments.experiment import Claim
from reproduction.experiments.rbm_starts import curves_of, differences, little_effect

_BETTER = Claim(
    "Only for the TNG dataset the Count Sketch initialization yielded slightly better network performance compared to "
    "the standard Gaussian initialization.",
    lambda values: differences(values, "TNG")["Count Sketch"] > 0,
)

EXPERIMENT = curves_of("fig:rp_init_tng", "tng", "TNG", "TNG", (little_effect("TNG"), _BETTER))
