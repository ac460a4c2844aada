"""Errors of networks by the size of the random projection layer."""

from reproduction.experiments.chapter4 import DENSE, SCHEMES, SMALLER, fixed
from reproduction.experiments.experiment import Claim, Entry, Experiment

_SIZES = {"smoke": (10, 100), "small": (10, 100, 1000), "full": (10, 30, 100, 300, 1000)}


def _entries(scale):
    return [Entry(name, k, fixed(scale, scheme, k=k)) for name, scheme in SCHEMES.items() for k in _SIZES[scale]]


def _at(values, which):
    """Errors by scheme at the smallest (min) or the largest (max) k."""
    return {name: values(name, which(values.of(name))) for name in SCHEMES}


def _dense(errors):
    return [errors[name] for name in DENSE]


EXPERIMENT = Experiment(
    label="fig:rpsynth_k",
    title="Classification error for different sizes of the random projection input layer",
    entries=_entries,
    x_name="k",
    figure=True,
    log_x=True,
    claims=(
        Claim(
            "In general, increasing the value of k improved the network performance.",
            lambda values: all(_at(values, max)[name] < _at(values, min)[name] for name in SCHEMES),
        ),
        Claim(
            "For dense RP schemes the best and almost equal (here: within 2 points) results were achieved for the "
            "highest values of k.",
            lambda values: (
                max(_dense(_at(values, max))) - min(_dense(_at(values, max))) <= 2
                and all(values(name, max(values.of(name))) <= min(values.of(name).values()) + 0.5 for name in DENSE)
            ),
        ),
        Claim(
            "Count Sketch performed slightly better than dense RPs for lower values of k (here: the lowest).",
            lambda values: _at(values, min)["Count Sketch"] < min(_dense(_at(values, min))),
        ),
        Claim(
            "For larger sizes of the RP layer, Count Sketch became comparable to dense schemes (here: within 2 "
            "points of each at the largest).",
            lambda values: all(
                abs(_at(values, max)["Count Sketch"] - error) <= 2 for error in _dense(_at(values, max))
            ),
        ),
        Claim(
            "Li's projection was significantly outperformed by the other four RP schemes (here: at every k, at the "
            "largest by 3 points).",
            lambda values: (
                all(
                    error > values(name, k)
                    for k, error in values.of("Li's").items()
                    for name in SCHEMES
                    if name != "Li's"
                )
                and _at(values, max)["Li's"] - 3 >= max(e for name, e in _at(values, max).items() if name != "Li's")
            ),
        ),
    ),
    note=f"Networks are not pretrained: batch norm in the hidden layers does as well here. {SMALLER}",
)
