"""What the table and the two figures of RBMs that start as random projections have in common."""

from __future__ import annotations

from reproduction.experiments.document_sets import STARTS, started
from reproduction.experiments.experiment import Claim, Entry, Experiment, Values

SEEDS = {"smoke": 1, "small": 1, "full": 3}
SEEDS_NOTE = (
    "The dissertation gives medians of ten runs; here they are means of the runs that were made, three at most."
)
LITTLE = 0.01  # the largest difference in the dissertation's table is 0.008
BASE = "Gaussian (reference)"


def areas_of(data: str, place: str, scale: str) -> list[Entry]:
    return [Entry(name, place, started(data, scale, init), "area") for name, init in STARTS.items()]


def differences(values: Values, place: str) -> dict[str, float]:
    """By scheme, how much more area than from small normal weights."""
    return {name: values(name, place) - values(BASE, place) for name in STARTS if name != BASE}


def little_effect(*places: str) -> Claim:
    return Claim(
        "In general, RP initialization had little effect on the document retrieval performance (here: areas differ by "
        f"at most {LITTLE}).",
        lambda values: all(abs(x) <= LITTLE for place in places for x in differences(values, place).values()),
    )


def curves_of(label: str, data: str, place: str, name: str, claims: tuple[Claim, ...], note: str = "") -> Experiment:
    return Experiment(
        label=label,
        title=f"RP initialization in autoencoders: precision-recall curves on the {name} dataset",
        entries=lambda scale: areas_of(data, place, scale),
        x_name="recall",
        unit="precision",
        claims=claims,
        seeds=SEEDS,
        figure=True,
        larger_is_better=True,
        slack=None,
        note=f"{SEEDS_NOTE} {note}".strip(),
    )
