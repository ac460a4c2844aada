"""What the four tables about learnt projections share: their columns, and rows by kind of layer."""

from __future__ import annotations

from reproduction.experiments.chapter4 import MNIST, SYNTHETIC, fixed, fixed_digits, learnt, learnt_digits
from reproduction.experiments.experiment import Entry

COLUMNS = (MNIST, SYNTHETIC, "webspam", "url")
NOTE = (
    "webspam and url are not to be had here: their columns are quoted. Networks are those of "
    "tab:dr_accuracy_comparison, with one regime for all rows: on synthetic data 1000-1000-1 and a rate of the "
    "projection that was chosen by the validation error of batch-normalised networks."
)


def entries_of(scale: str, scheme: str, published: dict, changes: dict, reference: str) -> list[Entry]:
    """`published` has rows by COLUMNS; `changes` has by row what differs from the batch-normalised linear layer, and
    the row `reference` is the network whose projection does not learn.
    """
    cells = {(reference, MNIST): fixed_digits(scale, scheme), (reference, SYNTHETIC): fixed(scale, scheme)}
    for name, change in changes.items():
        cells[name, MNIST] = learnt_digits(scale, scheme, **change)
        cells[name, SYNTHETIC] = learnt(scale, scheme, **change)
    return [
        Entry(name, x, cells.get((name, x)), published=value)
        for name, row in published.items()
        for x, value in zip(COLUMNS, row)
    ]
