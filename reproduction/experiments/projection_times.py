"""Times of projecting the synthetic data by the size of the projection layer: in one go, and in its two stages."""

from math import log

from reproduction.experiments.chapter4 import DENSE, SCHEMES, SPARSE, projecting
from reproduction.experiments.experiment import Claim, Entry, Experiment

_SIZES = {"smoke": (10, 40), "small": (10, 100, 300, 1000), "full": (10, 100, 300, 1000)}


def _power(curve: dict[float, float], start: float = 100) -> float:
    """The power of k with which a curve grows from `start` to its largest k; KeyError if it was not measured there."""
    end = max(curve)
    if end <= start:
        raise KeyError(end)
    return log(curve[end] / curve[start]) / log(end / start)


def _entries(scale: str, stages: dict[str, str]) -> list[Entry]:
    """`stages`: the quantity by what follows the scheme in the name of a series."""
    return [
        Entry(name + suffix, k, projecting(scale, scheme, k), quantity)
        for suffix, quantity in stages.items()
        for name, scheme in SCHEMES.items()
        for k in _SIZES[scale]
    ]


def _linear(values, series: str) -> bool:
    return 0.7 <= _power(values.of(series)) <= 1.3


def _constant(values, series: str) -> bool:
    return abs(_power(values.of(series))) <= 0.25


_AXES = {"x_name": "k", "unit": "seconds", "figure": True, "log_x": True, "log_y": True}
_WHOLE = Experiment(
    label="fig:rp_k_exec_time",
    title="Average time of performing random projection on the synthetic data for different sizes of the layer",
    entries=lambda scale: _entries(scale, {"": "seconds"}),
    **_AXES,
    claims=(
        Claim(
            "For k > 100 sparse schemes sped up the projection more than ten-fold (here: the slower of them against "
            "the fastest dense one).",
            lambda values: all(
                10 * max(values(name, k) for name in SPARSE) < min(values(name, k) for name in DENSE)
                for k in (300, 1000)
            ),
        ),
        Claim(
            "The execution time of both Gaussian and Achlioptas' RPs scaled linearly with the RP layer size (here: "
            "with a power of k between 0.7 and 1.3 from 100 to 1000).",
            lambda values: all(_linear(values, name) for name in ("Gaussian", "Achlioptas'")),
        ),
        Claim(
            "For the Count Sketch scheme the projection time was approximately constant in k (here: within a factor "
            "of 2).",
            lambda values: (
                max(values.of("Count Sketch").values()) <= 2 * min(values.of("Count Sketch").values())
                and len(values.of("Count Sketch")) > 1
            ),
        ),
    ),
    note="Measured on the processor, medians. Our P is never stored: it is drawn in passing, and only for columns that "
    "occur, so dense schemes lose less to sparse ones than in the dissertation.",
)
_STAGES = Experiment(
    label="fig:rp_k_exec_time_gen_proj",
    title="Average time of generating an RP matrix and performing the projection by matrix multiplication",
    entries=lambda scale: _entries(scale, {f", {stage}": stage for stage in ("generation", "multiplication")}),
    **_AXES,
    claims=(
        Claim(
            "For Gaussian, Achlioptas' and Li's matrices the cost of creating the RP matrix increases linearly with "
            "the size of the RP layer (here, as below: with a power of k between 0.7 and 1.3 from 100 to 1000).",
            lambda values: all(_linear(values, f"{name}, generation") for name in ("Gaussian", "Achlioptas'", "Li's")),
        ),
        Claim(
            "The time of generating the SRHT matrix is also linear in k, significantly offset by the cost of the fast "
            "Walsh-Hadamard transform (here: a power below 1).",
            lambda values: 0 < _power(values.of("SRHT, generation")) < 1,
        ),
        Claim(
            "The Count Sketch matrix can be created in a constant time (here: a power within 0.25 of 0).",
            lambda values: _constant(values, "Count Sketch, generation"),
        ),
        Claim(
            "For Gaussian, Achlioptas' and SRHT, the projection time depended linearly on k.",
            lambda values: all(_linear(values, f"{name}, multiplication") for name in DENSE),
        ),
        Claim(
            "For Count Sketch RP the dependence was approximately constant (here: a power within 0.25 of 0).",
            lambda values: _constant(values, "Count Sketch, multiplication"),
        ),
        Claim(
            "For Li's RP it was nearly linear for higher values of k.",
            lambda values: _linear(values, "Li's, multiplication"),
        ),
    ),
    note="Measured on the processor, with P written out, dense ones 64 columns at a time, and multiplied by scipy, as "
    "in the dissertation. SRHT is in its subsampled form, which needs no transform to write an entry. Li's P has an "
    "entry for each row to be looked at, whatever k.",
)
EXPERIMENTS = (_WHOLE, _STAGES)
