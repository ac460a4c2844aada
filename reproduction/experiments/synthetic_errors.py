"""Errors of networks on synthetic data: by the size of the projection, the density, and the significant features."""

from collections.abc import Callable, Sequence

import numpy as np

from reproduction.experiments.chapter4 import DENSE, SCHEMES, SMALLER, SPARSE, fixed
from reproduction.experiments.experiment import Cell, Claim, Entry, Experiment

_SIZES = {"smoke": (10, 100), "small": (10, 100, 1000), "full": (10, 30, 100, 300, 1000)}
_DENSITIES = {
    "smoke": (3e-6, 3e-5),
    "small": (1e-6, 3e-6, 1e-5, 3e-5, 1e-4),
    "full": (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 1.7e-4),
}
_SHARES = {"smoke": (0.05, 0.1), "small": (0.02, 0.05, 0.1, 0.2), "full": (0.01, 0.02, 0.05, 0.1, 0.15, 0.2)}
_BUT_LI = [name for name in SCHEMES if name != "Li's"]
_ONE_REGIME = "Hidden layers have 1000 units, not 3000, as where k varies: one regime for all."


def _figure(
    label: str, title: str, x_name: str, xs: dict[str, Sequence], cell: Callable[[str, str, float], Cell], **told
) -> Experiment:
    """Curves of all schemes; `cell` is what a scale measures of a scheme at x."""
    return Experiment(
        label=label,
        title=title,
        entries=lambda scale: [
            Entry(name, x, cell(scale, scheme, x)) for name, scheme in SCHEMES.items() for x in xs[scale]
        ],
        x_name=x_name,
        figure=True,
        log_x=True,
        **told,
    )


def _li_worst(values) -> bool:
    """At every x."""
    return all(error > values(name, x) for x, error in values.of("Li's").items() for name in _BUT_LI)


def _at(values, which):
    """Errors by scheme at the smallest (min) or the largest (max) k."""
    return {name: values(name, which(values.of(name))) for name in SCHEMES}


def _dense(errors):
    return [errors[name] for name in DENSE]


def _straightness(curve: dict) -> float:
    """The share of variance of the errors that a line over the logarithm of the density explains."""
    if len(curve) < 3:  # a line goes through any two points
        raise KeyError("a third density")
    if len(set(curve.values())) == 1:
        return 0.0
    return float(np.corrcoef(np.log(list(curve)), list(curve.values()))[0, 1] ** 2)


def _dense_best(values) -> list[bool]:
    """At each density: dense schemes are within 1.5 points of each other, and none is better than the best of them."""
    found = []
    for x in values.of("Gaussian"):
        dense = [values(name, x) for name in DENSE]
        found.append(max(dense) - min(dense) <= 1.5 and min(dense) <= min(values(name, x) for name in SCHEMES))
    return found


def _sparser(values) -> list[float]:
    return [x for x in values.of("Count Sketch") if x < 9e-6]


def _falls(curve: dict) -> bool:
    errors = [curve[x] for x in sorted(curve)]
    return all(after < before for before, after in zip(errors, errors[1:]))


def _spread(errors: list) -> float:
    return max(errors) - min(errors)


_BY_SIZE = _figure(
    "fig:rpsynth_k",
    "Classification error for different sizes of the random projection input layer",
    "k",
    _SIZES,
    lambda scale, scheme, k: fixed(scale, scheme, k=k),
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
                _li_worst(values) and _at(values, max)["Li's"] - 3 >= max(_at(values, max)[name] for name in _BUT_LI)
            ),
        ),
    ),
    note=f"Networks are not pretrained: batch norm in the hidden layers does as well here. {SMALLER}",
)
_BY_DENSITY = _figure(
    "fig:rpsynth_rho",
    "Classification error on the synthetic data sets with a fifth of significant features and varying density",
    "density of the dissertation's data",
    _DENSITIES,
    fixed,
    claims=(
        Claim(
            "For all evaluated RP schemes, the accuracy depends nearly linearly on the logarithm of the density (here: "
            "a line explains nine tenths of the variance).",
            lambda values: all(_straightness(values.of(name)) >= 0.9 for name in SCHEMES),
        ),
        Claim(
            "For most density levels Gaussian, SRHT and Achlioptas' projections yielded the best and quite similar "
            "(here: within 1.5 points) results.",
            lambda values: sum(_dense_best(values)) > len(_dense_best(values)) / 2,
        ),
        Claim(
            "Count Sketch performed slightly worse, especially for densities below 1e-5 (here: than each dense "
            "scheme).",
            lambda values: all(
                values("Count Sketch", x) > max(values(name, x) for name in DENSE) for x in _sparser(values)
            ),
        ),
        Claim(
            "For all evaluated density levels Li's projection was significantly outperformed by the other four RP "
            "schemes (here: its error is higher than each of theirs).",
            _li_worst,
        ),
    ),
    note=f"{_ONE_REGIME} The dissertation's text names 1.7e-4 as the highest density, its appendix 1e-4. {SMALLER}",
)
_BY_SIGNIFICANT = _figure(
    "fig:rpsynth_psi",
    "Classification error on the synthetic data sets with density 1e-4 and varying share of significant features",
    "share of significant features",
    _SHARES,
    lambda scale, scheme, share: fixed(scale, scheme, 1e-4, share),
    claims=(
        Claim(
            "Networks trained on data set variants with a larger share of significant features performed much better "
            "(here: each step lowers the error, all of them halve it).",
            lambda values: all(
                _falls(values.of(name)) and min(values.of(name).values()) < max(values.of(name).values()) / 2
                for name in SCHEMES
            ),
        ),
        Claim(
            "For all RP schemes except Li's, doubling the number of significant features from 5 % to 10 % reduced the "
            "test error from approximately 18 % (here: 15 to 21) to less than 6 %.",
            lambda values: all(15 <= values(name, 0.05) <= 21 and values(name, 0.1) < 6 for name in _BUT_LI),
        ),
        Claim(
            "For shares above 0.1, all RP schemes apart from Li's yielded almost equal performance (here: within 1 "
            "point).",
            lambda values: all(
                _spread([values(name, x) for name in _BUT_LI]) <= 1 for x in {0.2, *values.of("Gaussian")} if x > 0.1
            ),
        ),
        Claim(
            "For shares of at most 0.1, dense RP schemes performed better than sparse projections (here: each than "
            "each).",
            lambda values: all(
                max(values(name, x) for name in DENSE) < min(values(name, x) for name in SPARSE)
                for x in values.of("Gaussian")
                if x <= 0.1
            ),
        ),
    ),
    note=f"{_ONE_REGIME} {SMALLER}",
)
EXPERIMENTS = (_BY_SIZE, _BY_DENSITY, _BY_SIGNIFICANT)
