"""Errors of learnt projections with a linear or a rectified output, by their size."""

from reproduction.experiments import sizes
from reproduction.experiments.chapter4 import FEWER_DIGITS, MNIST, SMALLER, SYNTHETIC, learnt, learnt_digits
from reproduction.experiments.experiment import Claim, Entry, Experiment

_ACTIVATIONS = {"linear": "linear", "ReLU": "relu"}
_DIGITS = {"smoke": (10, 40), "small": (100, 300, 700), "full": (100, 300, 500, 700)}
_SYNTHETIC = {"smoke": (50, 100), "small": (1000, 2000, 4000), "full": (1000, 2000, 4000)}
_HIDDEN = {"smoke": (32, 32), "small": (300, 256), "full": (300, 3000)}  # of digits, of synthetic data


def _entries(scale):
    found, (narrow, wide) = [], _HIDDEN[scale]
    epochs = min(30, sizes.digits_network(scale, pretrain=False)["epochs"])
    for name, activation in _ACTIVATIONS.items():
        for k in _DIGITS[scale]:
            changes = {"n_components": k, "hidden": [narrow], "epochs": epochs, "activation": activation}
            found.append(Entry(f"{MNIST}, {name}", k, learnt_digits(scale, "li", **changes)))
        for k in _SYNTHETIC[scale]:
            cell = learnt(scale, "li", k, hidden=[wide], activation=activation)
            found.append(Entry(f"{SYNTHETIC}, {name}", k, cell))
    return found


def _gap(values, data: str, which) -> float:
    """How much worse ReLU is at the smallest (min) or the largest (max) k."""
    linear, curved = values.of(f"{data}, linear"), values.of(f"{data}, ReLU")
    return curved[which(curved)] - linear[which(linear)]


EXPERIMENT = Experiment(
    label="fig:lrp_avk",
    title="Networks with different activation functions in the finetuned projection layer by its number of outputs",
    entries=_entries,
    x_name="k",
    figure=True,
    log_x=True,
    claims=(
        Claim(
            "Introducing the ReLU activation after the RP layer can improve the network performance, provided that k "
            "is sufficiently high (here: at the largest k it is better than the linear one on MNIST or synthetic "
            "data).",
            lambda values: min(_gap(values, MNIST, max), _gap(values, SYNTHETIC, max)) < 0,
        ),
        Claim(
            "On the synthetic data set, it was necessary to use 4000 units in the RP layer to make ReLU viable (here: "
            "it is a point worse than the linear one with 1000, at most half a point with 4000).",
            lambda values: (
                values(f"{SYNTHETIC}, ReLU", 1000) - values(f"{SYNTHETIC}, linear", 1000) > 1
                and values(f"{SYNTHETIC}, ReLU", 4000) - values(f"{SYNTHETIC}, linear", 4000) <= 0.5
            ),
        ),
    ),
    note="Li's layer, one hidden layer, the regime of the tables for all k. On synthetic data k = 3000 is left "
    f"out. {SMALLER} {FEWER_DIGITS}",
)
