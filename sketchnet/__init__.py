"""sketchnet: deep networks on sparse data with millions of features, through random projections."""

from importlib import import_module

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

__all__ = [*_ESTIMATORS, *_MODULES]


def __getattr__(name: str):
    if name in _ESTIMATORS:
        return getattr(import_module("sketchnet.estimators"), name)
    if name in _MODULES:
        return import_module(f"sketchnet.{name}")
    raise AttributeError(f"module 'sketchnet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
