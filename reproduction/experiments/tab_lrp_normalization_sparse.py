"""Errors of networks behind Li's projections that learn, by normalisation."""

from reproduction.experiments.chapter4 import FEWER_DIGITS, SMALLER
from reproduction.experiments.experiment import Experiment
from reproduction.experiments.lrp_normalisation import CLAIMS, ROWS
from reproduction.experiments.lrp_tables import NOTE, entries_of

PUBLISHED = {  # by the columns of lrp_tables
    "No normalization": (1.04, 26.25, 0.46, 3.39),
    "MaxAbs scaling": (0.97, 38.21, 0.88, 3.41),
    "Batch Normalization": (1.10, 26.55, 0.35, 3.30),
    "Fixed-weight RP layer": (1.11, 29.42, 0.36, 3.75),
}

EXPERIMENT = Experiment(
    label="tab:lrp_normalization_sparse",
    title="Test errors of networks with Li's finetuned random projection layer by normalisation scheme",
    entries=lambda scale: entries_of(scale, "li", PUBLISHED, ROWS, "Fixed-weight RP layer"),
    x_name="data set",
    unit="error (%)",
    claims=CLAIMS,
    note=f"{NOTE} {SMALLER} {FEWER_DIGITS}",
)
