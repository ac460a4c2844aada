"""sketchnet as scikit-learn estimators."""

from sketchnet.lazy import load_on_use

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
__getattr__, __dir__ = load_on_use(__name__, _WHERE)
