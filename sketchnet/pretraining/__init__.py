"""PRETRAIN: restricted Boltzmann machines, and stacks of them whose weights a deep network starts from."""

from sketchnet.lazy import load_on_use

# On first use: a module takes only what it needs of the rest.
_WHERE = {
    "LayerSpec": "stack",
    "Pretrained": "course",
    "RBM": "rbm",
    "RBMConfig": "rbm",
    "RBMTrainingConfig": "rbm_training",
    "Unsupervised": "autoencoder",
    "build_autoencoder": "autoencoder",
    "make_rows": "rows",
    "pretrain_stack": "stack",
    "train_rbm": "rbm_training",
    "train_rbm_once": "rbm_training",
}

__all__ = [*_WHERE]
__getattr__, __dir__ = load_on_use(__name__, _WHERE)
