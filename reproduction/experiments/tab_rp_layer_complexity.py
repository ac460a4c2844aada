"""Cost of drawing a projection matrix and of multiplying by it, as powers of what it depends on."""

from reproduction.experiments.chapter4 import SCHEMES
from reproduction.experiments.experiment import Cell, Claim, Entry, Experiment

_QUANTITIES = {
    "construction, by d": "generation_by_d",
    "construction, by k": "generation_by_k",
    "multiplication, by nnz(A)": "multiplication_by_entries",
    "multiplication, by k": "multiplication_by_k",
}
# The powers in the dissertation's classes, in that order: O(dk), O(sqrt(d) k), O(d (k + log d)), O(d); for dense ones
# O(k (nnz(A) + n)). Those of sparse products, O(n K^2 + max(n, d)), name neither nnz(A) nor k.
PUBLISHED = {
    "Gaussian": (1, 1, 1, 1),
    "Achlioptas'": (1, 1, 1, 1),
    "Li's": (0.5, 1, None, None),
    "SRHT": (1, 1, 1, 1),
    "Count Sketch": (1, 0, None, None),
}
_LEARNING = "Count Sketch, a step of learning"
_DATA = {  # at first; each slope then has four times as much of something
    "smoke": {"n": 500, "d": 2000, "density": 0.01, "n_components": 8, "repeats": 1},
    "small": {"n": 12_500, "d": 25_000, "density": 0.001, "n_components": 64, "repeats": 5},
    "full": {"n": 125_000, "d": 250_000, "density": 0.0001, "n_components": 128, "repeats": 5},
}


def _entries(scale):
    def cell(recipe, scheme):
        return Cell(recipe, {**_DATA[scale], "significant": 0.2, "scheme": scheme, "options": {}})

    table = [
        Entry(name, x, cell("cost_slopes", SCHEMES[name]), quantity, published)
        for name, row in PUBLISHED.items()
        for (x, quantity), published in zip(_QUANTITIES.items(), row)
    ]
    steps = {"multiplication, by nnz(A)": "by_entries", "multiplication, by d": "by_d"}
    return table + [Entry(_LEARNING, x, cell("learning_slopes", "count_sketch"), q) for x, q in steps.items()]


def _as_published(values, stage: str, *names: str) -> bool:
    places = [(place, x) for place, x in enumerate(_QUANTITIES) if x.startswith(stage)]
    return all(abs(values(name, x) - PUBLISHED[name][place]) <= 0.35 for place, x in places for name in names)


EXPERIMENT = Experiment(
    label="tab:rp_layer_complexity",
    title="Time complexity of constructing a random projection matrix and performing the projection",
    entries=_entries,
    x_name="power",
    unit="measured power, from one size to four times that",
    slack=0.35,
    claims=(
        Claim(
            "Gaussian and Achlioptas' matrices are constructed in O(dk) (here, as below: powers within 0.35).",
            lambda values: _as_published(values, "construction", "Gaussian", "Achlioptas'"),
        ),
        Claim(
            "Count Sketch matrices are constructed in O(d), whatever k.",
            lambda values: _as_published(values, "construction", "Count Sketch"),
        ),
        Claim(
            "Li's matrices are constructed in O(sqrt(d) k).",
            lambda values: _as_published(values, "construction", "Li's"),
        ),
        Claim(
            "Dense schemes multiply in O(k (nnz(A) + n)).",
            lambda values: _as_published(values, "multiplication", "Gaussian", "Achlioptas'", "SRHT"),
        ),
        Claim(
            "The cost of a learning step of the layer that the dissertation proposes follows the non-zeros of the "
            "batch, never d.",
            lambda values: (
                values(_LEARNING, "multiplication, by d") <= 0.35
                and abs(values(_LEARNING, "multiplication, by nnz(A)") - 1) <= 0.35
            ),
            ours=True,
        ),
    ),
    note="Published powers are those of the dissertation's cost classes. P is written out, as in "
    "fig:rp_k_exec_time_gen_proj.",
)
