"""Times of reducing the dimensionality, and their share in the whole training."""

from statistics import fmean

from reproduction.experiments.chapter4 import MNIST, SCHEMES, SCORES, VARIANTS
from reproduction.experiments.experiment import Claim, Entry, Experiment
from reproduction.experiments.tab_dr_accuracy_comparison import cells

PUBLISHED = {  # seconds, and % of the total time, by the columns of VARIANTS, and MNIST
    "IG": ((1.0, 0.1), (1.3, 0.1), (2.1, 0.1), (0.4, 0.3)),
    "F-score": ((3.6, 0.1), (3.8, 0.1), (4.7, 0.1), (0.4, 0.2)),
    "Chi2": ((1.0, 0.1), (1.4, 0.1), (2.2, 0.1), (0.4, 0.4)),
    "PCA": ((3912.4, 33.1), (3865.4, 26.4), (4013.6, 39.8), (150.1, 35.6)),
    "Gaussian RP": ((57.3, 0.5), (63.3, 1.6), (75.2, 2.7), (0.6, 0.3)),
    "Achlioptas' RP": ((33.7, 1.2), (40.5, 1.0), (49.7, 1.3), (0.6, 0.4)),
    "SRHT RP": ((112.1, 3.9), (109.9, 3.4), (128.5, 3.9), (1.3, 0.4)),
    "Li's RP": ((3.9, 0.2), (4.4, 0.1), (5.6, 0.2), (1.0, 0.6)),
    "Count Sketch RP": ((1.9, 0.1), (2.5, 0.1), (3.9, 0.2), (0.3, 0.1)),
}
_COLUMNS = (*VARIANTS, MNIST)
_DENSE, _SPARSE = ("Gaussian RP", "Achlioptas' RP", "SRHT RP"), ("Li's RP", "Count Sketch RP")
_FAST = (*SCORES, *_SPARSE)


def _share(x: str) -> str:
    return f"{x}, % of total"


def _entries(scale):
    wanted, found = cells(scale), []
    for name, row in PUBLISHED.items():
        for x, (seconds, share) in zip(_COLUMNS, row):
            found.append(Entry(name, x, wanted[name, x], "reduce_seconds", seconds))
            found.append(Entry(name, _share(x), wanted[name, x], "reduce_share", share))
    return found


def _mean(values, names, x) -> float:
    return fmean(values(name, x) for name in names)


EXPERIMENT = Experiment(
    label="tab:dr_time_comparison",
    title="Average time of performing dimensionality reduction, and its share in the total time of training",
    entries=_entries,
    unit="seconds, or % of the total time",
    slack=None,
    claims=(
        Claim(
            "For most of the evaluated methods, the execution time was much lower than the total training time (here: "
            "most shares are below 10 %).",
            lambda values: (
                sum(values(name, _share(x)) < 10 for name in PUBLISHED for x in _COLUMNS)
                > len(PUBLISHED) * len(_COLUMNS) / 2
            ),
        ),
        Claim(
            "Sparse RP methods and fast feature selection techniques could be computed, even for the densest synthetic "
            "data set, in less than several seconds (here: 7).",
            lambda values: all(values(name, x) < 7 for name in _FAST for x in VARIANTS),
        ),
        Claim(
            "RP schemes that employ dense projection matrices were approximately ten times slower compared to sparse "
            "RP schemes (here: 5 to 40 times on the synthetic data at density 1e-5; its own table has 21).",
            lambda values: 5 <= _mean(values, _DENSE, "ρ = 1e-5") / _mean(values, _SPARSE, "ρ = 1e-5") <= 40,
        ),
        Claim(
            "PCA proved to be the least efficient method.",
            lambda values: all(
                values("PCA", x) > max(values(name, x) for name in PUBLISHED if name != "PCA") for x in _COLUMNS
            ),
        ),
        Claim(
            "Dimensionality reduction with PCA was almost 40 times more expensive than with the slowest dense RP "
            "schemes (here: at least 20 times on each synthetic data set).",
            lambda values: all(values("PCA", x) >= 20 * max(values(name, x) for name in _DENSE) for x in VARIANTS),
        ),
    ),
    note="Times of other machines cannot be compared, only their order. Ours for projections include that of taking "
    "the "
    f"moments of the {len(SCHEMES)} schemes' projected rows, which is done in passing. Cells that are measured at the "
    "same time as others, with --jobs, share processor and GPU with them. At smaller scales than full, PCA and "
    "selection keep fewer columns (the same share of all), projections the same number.",
)
