"""sketchnet: learning from sparse rows with millions of columns, by blends of small experts and deep networks."""

from sketchnet.lazy import load_on_use

TYPE_CHECKING = False  # as type checkers know it: loading `typing` would take most of the time of this import
if TYPE_CHECKING:  # what editors and type checkers see
    from sketchnet.estimators.autoencoder import SketchAutoencoder as SketchAutoencoder
    from sketchnet.estimators.boltzmann import RestrictedBoltzmannMachine as RestrictedBoltzmannMachine
    from sketchnet.estimators.networks import SketchClassifier as SketchClassifier
    from sketchnet.estimators.networks import SketchRegressor as SketchRegressor
    from sketchnet.estimators.projection import RandomProjection as RandomProjection
    from sketchnet.estimators.selection import ColumnSelector as ColumnSelector
    from sketchnet.estimators.selection import SparseSVD as SparseSVD

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
    "experts",
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
