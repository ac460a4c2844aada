"""The classifiers that sketchnet is compared with, behind one small interface, and sketchnet behind the same.

>>> from reproduction.rivals import RIVALS
>>> RIVALS["liblinear"]().name
'LIBLINEAR'
"""

from __future__ import annotations

from reproduction.rivals.boosting import LightGBM, XGBoost
from reproduction.rivals.embedding import EmbeddingNetwork
from reproduction.rivals.factorisation import FactorisationMachine
from reproduction.rivals.linear import L1Svm, LinearSvm, LogisticRegression, SparseLogisticRegression
from reproduction.rivals.naive_bayes_svm import NaiveBayesSvm
from reproduction.rivals.ours import ON_PROJECTIONS, Sketch
from reproduction.rivals.pegasos import Pegasos
from reproduction.rivals.perceptron import Perceptron
from reproduction.rivals.rival import Rival
from reproduction.rivals.vowpal import VowpalWabbit, VowpalWabbitNetwork
from sketchnet.errors import InputError

RIVALS: dict[str, type[Rival]] = {
    **ON_PROJECTIONS,
    "liblinear": LinearSvm,
    "liblinear_l1": L1Svm,
    "logistic": LogisticRegression,
    "logistic_l1": SparseLogisticRegression,
    "pegasos": Pegasos,
    "vw": VowpalWabbit,
    "vw_nn": VowpalWabbitNetwork,
    "xgboost": XGBoost,
    "lightgbm": LightGBM,
    "mlp": Perceptron,
    "embedding": EmbeddingNetwork,
    "nbsvm": NaiveBayesSvm,
    "fm": FactorisationMachine,
    "sketchnet": Sketch,
}

__all__ = ["RIVALS", "Rival", "find_rival"]


def find_rival(key: str) -> type[Rival]:
    """A rival's class by its key, such as "liblinear"."""
    if key not in RIVALS:
        raise InputError(f"there is no rival {key!r}; there are {', '.join(RIVALS)}")
    return RIVALS[key]
