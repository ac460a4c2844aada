"""sketchnet as scikit-learn estimators."""

from importlib import import_module

# On first use: a projection alone does not need torch.
_WHERE = {
    "ColumnSelector": "selection",
    "RandomProjection": "projection",
    "RestrictedBoltzmannMachine": "boltzmann",
    "SketchAutoencoder": "autoencoder",
    "SketchClassifier": "networks",
    "SketchRegressor": "networks",
    "SparseSVD": "selection",
}

__all__ = [*_WHERE]


def __getattr__(name: str):
    if name in _WHERE:
        return getattr(import_module(f"sketchnet.estimators.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'sketchnet.estimators' has no attribute {name!r}")
