"""The 400 pixels of MNIST that each score chooses."""

from reproduction.experiments import sizes
from reproduction.experiments.chapter4 import SCORES
from reproduction.experiments.experiment import Cell, Claim, Entry, Experiment

_QUANTITIES = {
    "in the central area": "central",
    "equal in all images": "constant",
    "chosen by all scores": "shared",
}


def _entries(scale):
    def cell(score):
        how = {"score": score, "n_columns": sizes.digits_components(scale)}
        return Cell("chosen_pixels", {**sizes.digits(scale), **how})

    return [
        Entry(name, x, cell(score), quantity) for name, score in SCORES.items() for x, quantity in _QUANTITIES.items()
    ]


def _all(values, x) -> list:
    return [values(name, x) for name in SCORES]


EXPERIMENT = Experiment(
    label="fig:fs_mnist",
    title="Features that were chosen by different feature selection methods on MNIST",
    entries=_entries,
    x_name="chosen pixels",
    unit="% of the chosen pixels",
    claims=(
        Claim(
            "The most informative features are located in the central area of the images (here: at least 80 % of those "
            "chosen lie in the square of so many pixels, 20 by 20, in the middle).",
            lambda values: min(_all(values, "in the central area")) >= 80,
        ),
        Claim(
            "All evaluated feature selection techniques had no difficulty identifying the most informative features "
            "(here: none chooses a pixel that is equal in all images).",
            lambda values: max(_all(values, "equal in all images")) == 0,
        ),
    ),
    note="At smoke scale the images are scikit-learn's, of 8 by 8 pixels.",
)
