"""The classifiers that sketchnet is compared with, behind one small interface, and sketchnet behind the same.

>>> from sketchnet.baselines import RIVALS
>>> RIVALS["liblinear"]().name
'LIBLINEAR'
"""

from __future__ import annotations

from sketchnet.baselines.boosting import LightGBM, XGBoost
from sketchnet.baselines.embedding import EmbeddingNetwork
from sketchnet.baselines.linear import L1Svm, LinearSvm, LogisticRegression, SparseLogisticRegression
from sketchnet.baselines.ours import (
    AchlioptasProjection,
    CountSketchProjection,
    GaussianProjection,
    LiProjection,
    Sketch,
    SrhtProjection,
)
from sketchnet.baselines.pegasos import Pegasos
from sketchnet.baselines.perceptron import Perceptron
from sketchnet.baselines.rival import Rival
from sketchnet.baselines.vowpal import VowpalWabbit, VowpalWabbitNetwork
from sketchnet.errors import InputError

RIVALS: dict[str, type[Rival]] = {
    "gaussian": GaussianProjection,
    "achlioptas": AchlioptasProjection,
    "li": LiProjection,
    "srht": SrhtProjection,
    "count_sketch": CountSketchProjection,
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
    "sketchnet": Sketch,
}

__all__ = ["RIVALS", "Rival", "find_rival"]


def find_rival(key: str) -> type[Rival]:
    """A rival's class by its key, such as "liblinear"."""
    if key not in RIVALS:
        raise InputError(f"there is no rival {key!r}; there are {', '.join(RIVALS)}")
    return RIVALS[key]
