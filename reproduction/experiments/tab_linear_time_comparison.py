"""Times of training linear models, beside networks on projected columns."""

from reproduction.experiments.chapter4 import MNIST, VARIANTS
from reproduction.experiments.experiment import Claim, Entry, Experiment
from reproduction.experiments.tab_linear_accuracy_comparison import MODELS, cells

PUBLISHED = {  # by the columns of VARIANTS, and MNIST; the last row is "about"
    "LR": (2.3, 4.2, 10.1, 23.9),
    "SVM": (2.0, 4.0, 10.0, 9.8),
    "Gaussian RP + DNN": (12000.0, 4000.0, 2000.0, 200.0),
}
_COLUMNS = (*VARIANTS, MNIST)


def _entries(scale):
    wanted = cells(scale)
    return [
        Entry(name, x, wanted[name, x], "seconds", value)
        for name, row in PUBLISHED.items()
        for x, value in zip(_COLUMNS, row)
    ]


EXPERIMENT = Experiment(
    label="tab:linear_time_comparison",
    title="Average time of training linear classifiers on the original data",
    entries=_entries,
    unit="seconds",
    slack=None,
    claims=(
        Claim(
            "Linear classifiers can be trained several orders of magnitude faster than DNNs (here: at least 100 times "
            "on each synthetic data set).",
            lambda values: all(
                values("Gaussian RP + DNN", x) >= 100 * max(values(name, x) for name in MODELS) for x in VARIANTS
            ),
        ),
    ),
    note="Times of other machines cannot be compared, only their order. Linear models learn on one core of the "
    "processor with the C that was chosen before; networks learn on the GPU where there is one.",
)
