"""Random projection initialisation in pretrained networks: MNIST, 784-1000-1000-10."""

from __future__ import annotations

from reproduction.experiments.experiment import Cell, Claim, Entry, Experiment, Values
from reproduction.experiments.tab_rp_init_cifar import LEVEL, against_reference

REFERENCE = "Gaussian"
SCHEMES = {REFERENCE: None, "Achlioptas": "achlioptas", "Li": "li", "SRHT": "srht", "Count Sketch": "count_sketch"}
_X = "MNIST"
_SIZES = {
    "smoke": {"data": "generated", "hidden": [16, 16], "pretrain": 2, "epochs": 3},
    "small": {"rows": 5000, "hidden": [200, 200], "pretrain": 4, "epochs": 5, "dropout": 0.2},
    "full": {"rows": 60_000, "hidden": [1000, 1000], "pretrain": 10, "epochs": 60},
}


def entries(scale: str) -> list[Entry]:
    return [
        Entry(series, _X, Cell("initialised_digits", {"scheme": scheme, **_SIZES[scale]}))
        for series, scheme in SCHEMES.items()
    ]


def _none_better(values: Values) -> bool:
    others = [series for series in SCHEMES if series != REFERENCE]
    return all(against_reference(values, series, _X, REFERENCE).p > LEVEL for series in others)


def _worse(*names: str):
    return lambda values: all(values(series, _X) > values(REFERENCE, _X) for series in names)


def _count_sketch(values: Values) -> bool:
    return against_reference(values, "Count Sketch", _X, REFERENCE).p_larger <= LEVEL


EXPERIMENT = Experiment(
    label="tab:rp_init_mnist",
    title="RP initialisation in pretrained networks: mean test error of the last epochs",
    entries=entries,
    claims=(
        Claim(
            "Unlike CNNs, image classification with pretrained networks does not benefit from RP initialization.",
            _none_better,
        ),
        Claim(
            "Achlioptas' and SRHT initialization yielded slightly worse results, compared to the reference "
            "initialization.",
            _worse("Achlioptas", "SRHT"),
        ),
        Claim("Li's initialization performed worse on MNIST.", _worse("Li")),
        Claim("The Count Sketch initialization yielded results significantly worse than reference.", _count_sketch),
    ),
    seeds={"smoke": 1, "small": 3, "full": 5},
    note=(
        "The dissertation's figure is lost, so there are no published values. It has ten networks and 500 epochs of "
        "finetuning; here it is five and 60, and the mean error of the last sixth of the epochs. SRHT is the "
        "subsampled form, and Count Sketch has gamma 0.3. NORB is left out. "
        "Networks of one seed see the rows in the same order: runs are pairs, but the rank-sum test takes them as "
        "independent. Where the order moves two schemes alike, it overlooks differences rather than invents them."
    ),
)
