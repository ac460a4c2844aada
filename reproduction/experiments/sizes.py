"""How large data and networks are at each scale, and how they are trained: one regime for all points of a figure.

Smaller synthetic data has as many non-zeros a row and occurrences a column as the dissertation's: rows and columns are
divided by the same number, the density is multiplied by it. The errors of networks then stay nearly the same.
"""

from __future__ import annotations

_ROWS, _COLUMNS = 1_250_000, 1_000_000
_SMALLER = {"smoke": 500, "small": 40, "full": 1}
COMPONENTS = {"smoke": 100, "small": 1000, "full": 1000}  # of a projection of synthetic data, where k does not vary
_SYNTHETIC_NETWORKS = {
    "smoke": {"hidden": [32], "epochs": 4, "batch_size": 64, "patience": 3},
    "small": {"hidden": [256, 256], "epochs": 10, "batch_size": 512, "patience": 3},
    "full": {"hidden": [1000, 1000], "epochs": 10, "batch_size": 4096, "patience": 3},
}
_DIGITS = {
    "smoke": {"data": "digits", "rows": 1000, "n_components": 40},  # the 8 x 8 images that come with scikit-learn
    "small": {"data": "mnist", "rows": 10_000, "n_components": 400},
    "full": {"data": "mnist", "rows": 60_000, "n_components": 400},
}
_DIGITS_NETWORKS = {
    "smoke": {"hidden": [32], "epochs": 4, "batch_size": 50},
    "small": {"hidden": [300, 300], "epochs": 12},
    "full": {"hidden": [1000, 1000], "epochs": 60},
}
# Chosen on MNIST by the validation error, with a sixth of the training rows held back; then all of them are learnt.
_DIGITS_REGIME = {"feature_dropout": 0.2, "dropout": 0.4, "l2": 0.1, "rate": 2e-3, "patience": None, "wide": False}
_PRETRAIN = {"smoke": 1, "small": 4, "full": 16}  # epochs of each hidden layer of networks on digits


def synthetic(scale: str, density: float = 1e-5, significant: float = 0.2) -> dict:
    """The data that stands for the dissertation's of that density and share of significant columns."""
    by = _SMALLER[scale]
    return {"n": _ROWS // by, "d": _COLUMNS // by, "density": _tidy(density * by), "significant": significant}


def share_of_columns(scale: str, k: int = 1000) -> int:
    """As large a part of the columns as k is of the dissertation's million."""
    return max(2, k // _SMALLER[scale])


def synthetic_network(scale: str) -> dict:
    return {**_SYNTHETIC_NETWORKS[scale], "wide": False}


def digits(scale: str) -> dict:
    return {name: _DIGITS[scale][name] for name in ("data", "rows")}


def digits_components(scale: str) -> int:
    return _DIGITS[scale]["n_components"]


def digits_network(scale: str, *, pretrain: bool) -> dict:
    settings = {**_DIGITS_REGIME, **_DIGITS_NETWORKS[scale]}
    return settings | ({"pretrain": _PRETRAIN[scale]} if pretrain else {})


def _tidy(number: float) -> float:
    """Without the last digits, which differ by how a number was computed."""
    return float(f"{number:.8g}")
