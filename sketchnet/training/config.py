"""How a network is trained, in one place."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from sketchnet.errors import InputError

OPTIMISERS = ("adamw", "sgd")


@dataclass(frozen=True)
class TrainingConfig:
    """`optimiser="adamw"`: the default, with a warm-up over the first twentieth of all steps and a cosine to zero.

    Weights of columns move only when their column is in the batch, by Adam's rule with the rates `sparse_rate` (the
    learnable projection) and `wide_rate` (the wide path); their moments and decay wait meanwhile (the lazy form of
    Adam). Rates that are None are chosen between two pairs, by the validation error after an epoch with each.

    `optimiser="sgd"`: the dissertation's regime. Momentum rises in a straight line from `momentum[0]` to `momentum[1]`
    over the first half of the epochs, the rate decays by the factor `decay` an epoch. Weights of columns move exactly
    as if every step had updated all of them. `sparse_rate` and `wide_rate` are then factors on `rate`, 1 if None.

    `l2` applies to weights, never to biases or batch norm; in "adamw" it is decoupled. Training ends after `epochs`,
    after `patience` epochs without a better validation error, or after `seconds`; the network of the best epoch counts.

    `blend`: in the end, a linear model that is solved exactly goes into the wide path, as much of it as validation rows
    ask for (`training/linear.py`).
    """

    epochs: int = 10
    batch_size: int = 256
    optimiser: str = "adamw"
    rate: float = 1e-3
    sparse_rate: float | None = None
    wide_rate: float | None = None
    l2: float = 0.0
    blend: bool = True
    momentum: tuple[float, float] = (0.5, 0.95)
    decay: float = 0.98
    patience: int | None = None
    seconds: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "momentum", tuple(float(m) for m in self.momentum))
        if self.optimiser not in OPTIMISERS:
            raise InputError(f"optimiser={self.optimiser!r} is not possible; allowed are {', '.join(OPTIMISERS)}")
        for name, least in (("epochs", 1), ("batch_size", 1)):
            if not getattr(self, name) >= least:
                raise InputError(f"{name}={getattr(self, name)} is not possible; it is at least {least}")
        for name in ("rate", "sparse_rate", "wide_rate", "l2"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise InputError(f"{name}={value} is not possible; it is zero or positive")
        if not all(0 <= m < 1 for m in self.momentum):
            raise InputError(f"momentum={self.momentum} is not possible; it is from 0 to below 1")

    def to_dict(self) -> dict:
        return {**dataclasses.asdict(self), "momentum": list(self.momentum)}
