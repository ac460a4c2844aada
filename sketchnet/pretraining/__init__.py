"""PRETRAIN: restricted Boltzmann machines, and stacks of them whose weights a deep network starts from."""

from importlib import import_module

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


def __getattr__(name: str):
    if name in _WHERE:
        return getattr(import_module(f"sketchnet.pretraining.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'sketchnet.pretraining' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
