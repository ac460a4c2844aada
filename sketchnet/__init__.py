"""sketchnet: deep networks on sparse data with millions of features, through random projections."""

from sketchnet.lazy import load_on_use

__version__ = "0.1.0"

# Loaded on first use: importing sketchnet itself takes milliseconds and loads neither numba nor torch.
_ESTIMATORS = (
    "ColumnSelector",
    "RandomProjection",
    "RestrictedBoltzmannMachine",
    "SketchAutoencoder",
    "SketchClassifier",
    "SketchRegressor",
    "SparseSVD",
)
_MODULES = (
    "data",
    "errors",
    "estimators",
    "evaluation",
    "kernels",
    "metrics",
    "nn",
    "normalisation",
    "pretraining",
    "projection",
    "report",
    "selection",
    "training",
)

_WHERE = {**dict.fromkeys(_ESTIMATORS, "estimators"), **{name: name for name in _MODULES}}

__all__ = [*_WHERE]
__getattr__, __dir__ = load_on_use(__name__, _WHERE)
