"""Random projection initialisation in convolutional networks: residual networks with stochastic depth on CIFAR-10."""

from __future__ import annotations

from reproduction.experiments.experiment import Cell, Claim, Entry, Experiment, Values
from reproduction.ranks import Comparison, compare

REFERENCE = "He"
# Series: the scheme and its options, as `sketchnet.nn.init.apply_` takes them.
SCHEMES: dict[str, tuple[str, dict]] = {
    REFERENCE: ("he", {}),
    "SRHT": ("srht_sparse", {}),
    "SRHT, subsampled": ("srht", {}),
    "orthogonal": ("orthogonal", {}),
    "Achlioptas": ("achlioptas", {}),
    "Li": ("li", {}),
    "Count Sketch, gamma 0.1": ("count_sketch", {"gamma": 0.1}),
    "Count Sketch, gamma 0.3": ("count_sketch", {"gamma": 0.3}),
    "ROM": ("rom", {}),
    "Count Sketch, gamma 0.03": ("count_sketch", {"gamma": 0.03}),
    "Count Sketch, gamma 2": ("count_sketch", {"gamma": 2}),
}
LEVEL = 0.05
_X = "CIFAR-10"
_CHANCE = 90.0  # ten classes of the same size
_SIZES = {
    "smoke": {"data": "generated", "rows": 256, "depth": 8, "width": 4, "epochs": 2},
    "small": {"data": "cifar10", "rows": 2000, "depth": 8, "width": 8, "epochs": 3},
    "full": {"data": "cifar10", "rows": 50_000, "depth": 20, "width": 16, "epochs": 30},
}
_SERIES = {"smoke": ("He", "SRHT"), "small": ("He", "SRHT", "Count Sketch, gamma 0.3"), "full": tuple(SCHEMES)}


def cell(series: str, sizes: dict) -> Cell:
    """What measures a scheme; `sizes` as `image_network` takes them."""
    scheme, options = SCHEMES[series]
    return Cell("image_network", {"scheme": scheme, "options": options, "survival": 0.5, **sizes})


def entries(scale: str) -> list[Entry]:
    return [Entry(series, _X, cell(series, _SIZES[scale])) for series in _SERIES[scale]]


def against_reference(values: Values, series: str, x: str = _X, reference: str = REFERENCE) -> Comparison:
    """The rank-sum test of a series. KeyError, if there are too few seeds for it to say anything."""
    found = compare(values.runs[series, x], values.runs[reference, x])
    if found.least_p > LEVEL:
        raise KeyError(f"{series}: {found.n_ours} seeds")
    return found


def _srht(values: Values) -> bool:
    return against_reference(values, "SRHT").p <= LEVEL


def _orthogonal(values: Values) -> bool:
    return all(against_reference(values, series).p <= LEVEL for series in ("SRHT, subsampled", "orthogonal"))


def _achlioptas(values: Values) -> bool:
    found = against_reference(values, "Achlioptas")
    return min(found.p, found.p_larger) > LEVEL


def _li(values: Values) -> bool:
    return against_reference(values, "Li").p_larger > LEVEL


def _count_sketch(values: Values) -> bool:
    best = min(values(f"Count Sketch, gamma {gamma}", _X) for gamma in (0.1, 0.3))
    return best < min(values(series, _X) for series in ("SRHT", "Achlioptas", "Li"))


def _bold(values: Values) -> bool:
    return values("Count Sketch, gamma 2", _X) > _CHANCE - 5


def _timid(values: Values) -> bool:
    return against_reference(values, "Count Sketch, gamma 0.03").p_larger <= LEVEL


EXPERIMENT = Experiment(
    label="tab:rp_init_cifar",
    title="RP initialisation in convolutional networks: mean test error of the last epochs",
    entries=entries,
    claims=(
        Claim(
            "The SRHT initialization outperformed the reference initialization on all datasets (here: on CIFAR-10).",
            _srht,
        ),
        Claim(
            "The second important factor is the orthogonality of the initialized weights (here: subsampled SRHT and "
            "orthogonal weights, which are the ones that are orthogonal, both outperform He's).",
            _orthogonal,
        ),
        Claim("Achlioptas' yielded good but not statistically significant results on CIFAR.", _achlioptas),
        Claim("Li's initialization: competitive on CIFAR (that is, not significantly worse than He's).", _li),
        Claim("Count Sketch was the best performing RP initialization method on CIFAR-10.", _count_sketch),
        Claim("The values of gamma higher than 1.0 caused the network to not converge.", _bold),
        Claim("Values smaller than 0.1 led to poor performance.", _timid),
    ),
    seeds={"smoke": 1, "small": 3, "full": 10},
    note=(
        "The dissertation's figure is lost, so there are no published values. It has 110 layers, 500 epochs, and the "
        "mean of the last 100; here it is 20 layers, 30 epochs, and the mean of the last 5. CIFAR-100 and SVHN are "
        "left out. Outperforming means p <= 0.05 in the one-sided rank-sum test of Wilcoxon, Mann and Whitney. SRHT "
        "is the dissertation's form, which is i.i.d. normal, so He's, where a layer has at most ln(50,000)^2 = 117 "
        "inputs; the subsampled form is not in the dissertation."
    ),
)
