"""Areas of autoencoders behind projections of RCV1, by the size of the dictionary; of Reuters, which stands in."""

from reproduction.experiments.dictionary_sizes import SIZE_CLAIMS, sizes_of
from reproduction.experiments.document_sets import IN_PLACE
from reproduction.experiments.experiment import Experiment

_PUBLISHED = {
    "Gaussian": (0.306, 0.300, 0.296, 0.295),
    "Achlioptas'": (0.312, 0.299, 0.296, 0.290),
    "Li's": (0.304, 0.299, 0.292, 0.289),
    "SRHT": (0.305, 0.303, 0.294, 0.293),
    "Count Sketch": (0.254, 0.260, 0.280, 0.278),
}

EXPERIMENT = Experiment(
    label="tab:rcv1_rp_auc",
    title="Area under the precision-recall curve for deep autoencoders with RP layer trained on different RCV1 "
    "representations",
    entries=lambda scale: sizes_of("reuters", scale, 0.315, _PUBLISHED),
    x_name="dictionary size D",
    unit="area",
    claims=SIZE_CLAIMS,
    slack=None,
    larger_is_better=True,
    note=IN_PLACE,
)
