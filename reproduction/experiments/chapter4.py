"""The networks, by name, that several labels of chapter 4 ask for."""

from __future__ import annotations

from reproduction.experiments import sizes
from reproduction.experiments.experiment import Cell

DENSE = {"Gaussian": "gaussian", "Achlioptas'": "achlioptas", "SRHT": "srht"}
SPARSE = {"Li's": "li", "Count Sketch": "count_sketch"}
SCHEMES = DENSE | SPARSE
VARIANTS = {"ρ = 3e-6": 3e-6, "ρ = 1e-5": 1e-5, "ρ = 3e-5": 3e-5}  # of the synthetic data that tables have
SYNTHETIC, MNIST = "synthetic, ρ = 1e-5", "MNIST"
SCORES = {"IG": "information_gain", "F-score": "f_score", "Chi2": "chi2"}
# Of projections of synthetic data; chosen at full size and density 1e-5 by the validation error.
_RATES = {"count_sketch": 4e-3, "li": 0.016}
SMALLER = (
    "At smaller scales than full, synthetic data has as many non-zeros a row and occurrences a column as the "
    "dissertation's, of which it keeps the errors, but fewer rows and columns, and networks are narrower; Li's matrix "
    "has the density that it has for a million columns."
)
FEWER_DIGITS = (
    "At small scale networks learn 10,000 rows of MNIST in few epochs, at smoke scale the 8 x 8 digits of "
    "scikit-learn: their errors are higher."
)


def fixed(scale: str, scheme: str, density: float = 1e-5, significant: float = 0.2, k: int | None = None) -> Cell:
    """A network on synthetic data behind a projection that does not learn."""
    network = {**_projection(scale, scheme, k), "learn": False, **sizes.synthetic_network(scale)}
    return Cell("synthetic_network", {**sizes.synthetic(scale, density, significant), **network})


def learnt(scale: str, scheme: str, k: int | None = None, density: float = 1e-5, **changes) -> Cell:
    """The same with a projection that learns."""
    network = {**_projection(scale, scheme, k), "learn": True, **sizes.synthetic_network(scale)}
    network |= {"sparse_rate": _RATES[scheme], "feature_dropout": 0.0}
    return Cell("synthetic_network", {**sizes.synthetic(scale, density), **network, **changes})


def reduced(scale: str, method: str, density: float) -> Cell:
    """A network on synthetic data of which 1000 columns are left in a million."""
    how = {"method": method, "n_columns": sizes.share_of_columns(scale)}
    return Cell("synthetic_reduced", {**sizes.synthetic(scale, density), **how, **sizes.synthetic_network(scale)})


def fixed_digits(scale: str, scheme: str) -> Cell:
    """A pretrained network on digits behind a projection that does not learn."""
    projection = {"scheme": scheme, "n_components": sizes.digits_components(scale), "learn": False}
    return Cell("digits_network", {**sizes.digits(scale), **projection, **sizes.digits_network(scale, pretrain=True)})


def learnt_digits(scale: str, scheme: str, **changes) -> Cell:
    projection = {"scheme": scheme, "n_components": sizes.digits_components(scale), "learn": True, "sparse_rate": 0.01}
    network = {**projection, **sizes.digits_network(scale, pretrain=False)}
    return Cell("digits_network", {**sizes.digits(scale), **network, **changes})


def reduced_digits(scale: str, method: str) -> Cell:
    how = {"method": method, "n_columns": sizes.digits_components(scale)}
    return Cell("digits_reduced", {**sizes.digits(scale), **how, **sizes.digits_network(scale, pretrain=True)})


def linear(scale: str, model: str, density: float, **changes) -> Cell:
    return Cell("synthetic_linear", {**sizes.synthetic(scale, density), "model": model, **changes})


def linear_digits(scale: str, model: str) -> Cell:
    return Cell("digits_linear", {**sizes.digits(scale), "model": model})


def projecting(scale: str, scheme: str, k: int) -> Cell:
    """The time of projecting synthetic data at density 1e-5."""
    repeats = 1 if scale == "full" and k > 300 else 5
    how = {"scheme": scheme, "n_components": k, "options": _options(scale, scheme), "repeats": repeats}
    return Cell("projection_time", {**sizes.synthetic(scale), **how})


def _projection(scale: str, scheme: str, k: int | None) -> dict:
    options = _options(scale, scheme)
    found = {"scheme": scheme, "n_components": k or sizes.COMPONENTS[scale]}
    return {**found, "options": options} if options else found


def _options(scale: str, scheme: str) -> dict:
    """Li's matrix has one non-zero in a row of 1000, as in the dissertation, where s = sqrt(1,000,000)."""
    return {"s": float(sizes.COMPONENTS[scale])} if scheme == "li" else {}
