"""PRETRAIN: restricted Boltzmann machines, and stacks of them whose weights a deep network starts from."""

from sketchnet.pretraining.rbm import RBM, RBMConfig
from sketchnet.pretraining.rbm_training import RBMTrainingConfig, train_rbm, train_rbm_once
from sketchnet.pretraining.rows import make_rows
from sketchnet.pretraining.stack import LayerSpec, pretrain_stack

__all__ = [
    "RBM",
    "LayerSpec",
    "RBMConfig",
    "RBMTrainingConfig",
    "make_rows",
    "pretrain_stack",
    "train_rbm",
    "train_rbm_once",
]
