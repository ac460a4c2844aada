"""Errors of networks behind Count Sketch projections that learn, by normalisation."""

from reproduction.experiments.chapter4 import FEWER_DIGITS, SMALLER
from reproduction.experiments.experiment import Experiment
from reproduction.experiments.lrp_normalisation import CLAIMS, ROWS
from reproduction.experiments.lrp_tables import NOTE, entries_of

PUBLISHED = {  # by the columns of lrp_tables
    "No normalization": (0.97, 20.36, 0.47, 0.87),
    "MaxAbs scaling": (1.10, 40.87, 0.99, 0.90),
    "Batch Normalization": (1.22, 20.16, 0.25, 0.75),
    "Fixed-weight RP layer": (1.34, 22.19, 0.32, 0.96),
}

EXPERIMENT = Experiment(
    label="tab:lrp_normalization_count",
    title="Test errors of networks with Count Sketch finetuned random projection layer by normalisation scheme",
    entries=lambda scale: entries_of(scale, "count_sketch", PUBLISHED, ROWS, "Fixed-weight RP layer"),
    x_name="data set",
    unit="error (%)",
    claims=CLAIMS,
    note=f"{NOTE} {SMALLER} {FEWER_DIGITS}",
)
