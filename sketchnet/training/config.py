"""How a network is trained, in one place."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from sketchnet.checks import as_flag, check_choice, check_integer, check_real
from sketchnet.errors import InputError
from sketchnet.nn.rbm_init import RBM_SCHEMES

OPTIMISERS = ("adamw", "sgd")
_SPARSE_RATE = 0.1  # the best of 0.01, 0.03 and 0.1 on held-back rows of clicks and of addresses as text


@dataclass(frozen=True)
class TrainingConfig:
    """`optimiser="adamw"`: the default, with a warm-up over the first twentieth of all steps and a cosine to zero.

    Weights of the learnable projection move only when their column is in the batch, by Adam's rule with the rate
    `sparse_rate`, 0.1 if None; their moments and decay wait meanwhile (the lazy form of Adam).

    `optimiser="sgd"`: the dissertation's regime. Momentum rises in a straight line from `momentum[0]` to `momentum[1]`
    over the first half of the epochs, the rate decays by the factor `decay` an epoch. Weights of columns move exactly
    as if every step had updated all of them. `sparse_rate` is then a factor on `rate`, 1 if None.

    `l2` applies to weights, never to biases or batch norm; in "adamw" it is decoupled. Training ends after `epochs`,
    after `patience` epochs without a better validation error, or after `seconds`; the network of the best epoch counts.

    `frozen_epochs`: in the first so many epochs a projection that learns stays as it was drawn, and the rest of the
    network learns alone; `patience` counts from their end. (In the dissertation, learning all at once did better.)

    `pretrain`: each hidden layer first learns, for so many epochs, to model what the layer below makes of the rows
    (`pretraining/`), at `pretrain_rate`, which None leaves to the kinds of units. The RBMs start from small normal
    weights, or with `pretrain_init="li"` and the like from those of a random projection (`nn/rbm_init.py`); it is a
    setting for `build_model` and `build_autoencoder`.
    """

    epochs: int = 10
    batch_size: int = 256
    frozen_epochs: int = 0
    optimiser: str = "adamw"
    rate: float = 1e-3
    sparse_rate: float | None = None
    l2: float = 0.0
    momentum: tuple[float, float] = (0.5, 0.95)
    decay: float = 0.98
    patience: int | None = None
    seconds: float | None = None
    pretrain: int = 0
    pretrain_rate: float | None = None
    pretrain_init: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        def fix(name: str, value) -> None:
            object.__setattr__(self, name, value)

        for name in ("epochs", "batch_size"):
            fix(name, check_integer(name, getattr(self, name), 1, 2**31))
        fix("frozen_epochs", check_integer("frozen_epochs", self.frozen_epochs, 0, 2**31))
        fix("seed", check_integer("seed", self.seed, 0, 2**64 - 1))
        check_choice("optimiser", self.optimiser, OPTIMISERS)
        for name in ("rate", "l2", "decay"):
            fix(name, check_real(name, getattr(self, name)))
        fix("pretrain", check_integer("pretrain", 0 if as_flag(self.pretrain) is False else self.pretrain, 0, 2**31))
        for name in ("sparse_rate", "seconds", "pretrain_rate"):
            if getattr(self, name) is not None:
                fix(name, check_real(name, getattr(self, name)))
        if self.pretrain_init is not None:
            check_choice("pretrain_init", self.pretrain_init, RBM_SCHEMES)
        if self.patience is not None:
            fix("patience", check_integer("patience", self.patience, 0, 2**31))
        if not isinstance(self.momentum, list | tuple) or len(self.momentum) != 2:
            raise InputError(f"momentum={self.momentum!r} is not possible; it is a first and a last value")
        fix("momentum", tuple(check_real("momentum", value, below=1.0) for value in self.momentum))

    @property
    def row_rate(self) -> float:
        """The rate of the weights of columns, or for "sgd" the factor on the others' rate."""
        if self.sparse_rate is not None:
            return self.sparse_rate
        return 1.0 if self.optimiser == "sgd" else _SPARSE_RATE

    def to_dict(self) -> dict:
        return {**dataclasses.asdict(self), "momentum": list(self.momentum)}
