"""Times of drawing the projection matrix and of multiplying by it, apart."""

from reproduction.experiments.chapter4 import DENSE, SCHEMES, projecting
from reproduction.experiments.experiment import Claim, Entry, Experiment
from reproduction.experiments.fig_rp_k_exec_time import SIZES
from reproduction.experiments.growth import power

_STAGES = ("generation", "multiplication")


def _entries(scale):
    return [
        Entry(f"{name}, {stage}", k, projecting(scale, scheme, k), stage)
        for stage in _STAGES
        for name, scheme in SCHEMES.items()
        for k in SIZES[scale]
    ]


def _linear(values, name: str, stage: str) -> bool:
    return 0.7 <= power(values.of(f"{name}, {stage}"), 100) <= 1.3


def _constant(values, series: str) -> bool:
    return abs(power(values.of(series), 100)) <= 0.25


EXPERIMENT = Experiment(
    label="fig:rp_k_exec_time_gen_proj",
    title="Average time of generating an RP matrix and performing the projection by matrix multiplication",
    entries=_entries,
    x_name="k",
    unit="seconds",
    figure=True,
    log_x=True,
    log_y=True,
    slack=None,
    claims=(
        Claim(
            "For Gaussian, Achlioptas' and Li's matrices the cost of creating the RP matrix increases linearly with "
            "the size of the RP layer (here, as below: with a power of k between 0.7 and 1.3 from 100 to 1000).",
            lambda values: all(_linear(values, name, "generation") for name in ("Gaussian", "Achlioptas'", "Li's")),
        ),
        Claim(
            "The time of generating the SRHT matrix is also linear in k, significantly offset by the cost of the fast "
            "Walsh-Hadamard transform (here: a power below 1).",
            lambda values: 0 < power(values.of("SRHT, generation"), 100) < 1,
        ),
        Claim(
            "The Count Sketch matrix can be created in a constant time (here: a power within 0.25 of 0).",
            lambda values: _constant(values, "Count Sketch, generation"),
        ),
        Claim(
            "For Gaussian, Achlioptas' and SRHT, the projection time depended linearly on k.",
            lambda values: all(_linear(values, name, "multiplication") for name in DENSE),
        ),
        Claim(
            "For Count Sketch RP the dependence was approximately constant (here: a power within 0.25 of 0).",
            lambda values: _constant(values, "Count Sketch, multiplication"),
        ),
        Claim(
            "For Li's RP it was nearly linear for higher values of k.",
            lambda values: _linear(values, "Li's", "multiplication"),
        ),
    ),
    note="Measured on the processor, with P written out, dense ones 64 columns at a time, and multiplied by scipy, as "
    "in the dissertation. SRHT is in its subsampled form, which needs no transform to write an entry. Li's P has an "
    "entry for each row to be looked at, whatever k.",
)
