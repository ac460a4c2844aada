"""Time of projecting the synthetic data by the size of the projection layer."""

from reproduction.experiments.chapter4 import DENSE, SCHEMES, SPARSE, projecting
from reproduction.experiments.experiment import Claim, Entry, Experiment
from reproduction.experiments.growth import power

SIZES = {"smoke": (10, 40), "small": (10, 100, 300, 1000), "full": (10, 100, 300, 1000)}


def _entries(scale):
    return [
        Entry(name, k, projecting(scale, scheme, k), "seconds")
        for name, scheme in SCHEMES.items()
        for k in SIZES[scale]
    ]


EXPERIMENT = Experiment(
    label="fig:rp_k_exec_time",
    title="Average time of performing random projection on the synthetic data for different sizes of the layer",
    entries=_entries,
    x_name="k",
    unit="seconds",
    figure=True,
    log_x=True,
    log_y=True,
    slack=None,
    claims=(
        Claim(
            "For k > 100 sparse schemes sped up the projection more than ten-fold (here: the slower of them against "
            "the fastest dense one).",
            lambda values: all(
                10 * max(values(name, k) for name in SPARSE) < min(values(name, k) for name in DENSE)
                for k in (300, 1000)
            ),
        ),
        Claim(
            "The execution time of both Gaussian and Achlioptas' RPs scaled linearly with the RP layer size (here: "
            "with a power of k between 0.7 and 1.3 from 100 to 1000).",
            lambda values: all(0.7 <= power(values.of(name), 100) <= 1.3 for name in ("Gaussian", "Achlioptas'")),
        ),
        Claim(
            "For the Count Sketch scheme the projection time was approximately constant in k (here: within a factor "
            "of 2).",
            lambda values: (
                max(values.of("Count Sketch").values()) <= 2 * min(values.of("Count Sketch").values())
                and len(values.of("Count Sketch")) > 1
            ),
        ),
    ),
    note="Measured on the processor, medians. Our P is never stored: it is drawn in passing, and only for columns that "
    "occur, so dense schemes lose less to sparse ones than in the dissertation.",
)
