"""Areas of autoencoders behind projections of TNG, by the size of the dictionary."""

from reproduction.experiments.dictionary_sizes import SIZE_CLAIMS, sizes_of
from reproduction.experiments.experiment import Experiment

_PUBLISHED = {
    "Gaussian": (0.341, 0.366, 0.336, 0.333),
    "Achlioptas'": (0.321, 0.348, 0.326, 0.337),
    "Li's": (0.307, 0.356, 0.321, 0.350),
    "SRHT": (0.344, 0.326, 0.352, 0.327),
    "Count Sketch": (0.327, 0.314, 0.311, 0.313),
}

EXPERIMENT = Experiment(
    label="tab:tng_rp_auc",
    title="Area under the precision-recall curve for deep autoencoders with RP layer trained on different TNG "
    "representations",
    entries=lambda scale: sizes_of("tng", scale, 0.373, _PUBLISHED),
    x_name="dictionary size D",
    unit="area",
    claims=SIZE_CLAIMS,
    slack=0.01,
    larger_is_better=True,
)
