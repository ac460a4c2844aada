"""Areas of autoencoders whose RBMs start as random projections."""

from reproduction.experiments.document_sets import IN_PLACE
from reproduction.experiments.experiment import Claim, Entry, Experiment
from reproduction.experiments.rbm_starts import SEEDS, SEEDS_NOTE, areas_of, differences, little_effect

_PUBLISHED = {  # TNG, RCV1
    "Gaussian (reference)": (0.373, 0.315),
    "Achlioptas'": (0.372, 0.314),
    "Li's": (0.373, 0.311),
    "SRHT": (0.372, 0.314),
    "Count Sketch": (0.381, 0.310),
}


def _entries(scale: str) -> list[Entry]:
    """RCV1's areas are quoted; those of Reuters have nothing to be compared with."""
    tng = [Entry(e.series, e.x, e.cell, e.quantity, _PUBLISHED[e.series][0]) for e in areas_of("tng", "TNG", scale)]
    rcv1 = [Entry(series, "RCV1", None, "area", value) for series, (_, value) in _PUBLISHED.items()]
    return [*tng, *rcv1, *areas_of("reuters", "Reuters", scale)]


def _only_count_sketch(values) -> bool:
    tng, reuters = (differences(values, place)["Count Sketch"] for place in ("TNG", "Reuters"))
    return tng > 0 >= reuters


EXPERIMENT = Experiment(
    label="tab:rp_init_auc",
    title="Median area under the precision-recall curve for deep autoencoders initialized with RP matrices",
    entries=_entries,
    x_name="dataset",
    unit="area",
    claims=(
        little_effect("TNG", "Reuters"),
        Claim(
            "Only for the TNG dataset the Count Sketch initialization yielded slightly better network performance "
            "compared to the standard Gaussian initialization.",
            _only_count_sketch,
        ),
    ),
    seeds=SEEDS,
    slack=0.01,
    larger_is_better=True,
    note=f"{SEEDS_NOTE} {IN_PLACE}",
)
