"""Networks on handwritten digits that are pretrained as a stack of RBMs, which begin by a scheme."""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from reproduction.experiments.recipes.digits import digit_rows
from sketchnet.nn import Linear
from sketchnet.pretraining import LayerSpec, RBMTrainingConfig, make_rows, pretrain_stack

_BATCH = 100
_SHARE = 1 / 6  # of the epochs, the last ones, whose mean error counts
_MOMENTUM = 0.5, 0.95  # from the first epoch to the middle one
_DECAY = 0.01  # what is left of the rate in the end


def initialised_digits(
    *,
    seed: int,
    device: str,
    scheme: str | None = None,
    hidden: tuple[int, ...] = (1000, 1000),
    rows: int | None = None,
    pretrain: int = 10,
    epochs: int = 60,
    rate: float = 0.3,
    dropout: float = 0.5,
    data: str = "mnist",
) -> dict:
    """The mean test error of the last epochs, and that of each epoch.

    Binary visible units, rectified hidden ones; `scheme` None is the reference, N(0, 0.01**2). Finetuning is the
    dissertation's: momentum that rises slowly, a rate in slow exponential decay, dropout. All training rows are learnt.
    """
    begun = time.perf_counter()
    device = torch.device("cuda" if device == "auto" and torch.cuda.is_available() else device.replace("auto", "cpu"))
    (X, y), (X_test, y_test) = (
        (torch.from_numpy(x).to(device) for x in part)
        for part in (digit_rows(data, rows) if data == "mnist" else _generated())
    )
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        widths = [X.shape[1], *hidden, int(y.max()) + 1]
        layers = [Linear(n, m) for n, m in zip(widths, widths[1:])]
    nn.init.zeros_(layers[-1].bias)
    layers = [layer.to(device) for layer in layers]
    how = RBMTrainingConfig(epochs=pretrain, batch_size=_BATCH, seed=seed)
    pretrain_stack(
        [LayerSpec(layer, "relu", scheme) for layer in layers[:-1]], "binary", make_rows(X, _BATCH, seed, device), how
    )
    errors = _finetune(layers, (X, y), (X_test, y_test), epochs, rate, dropout, seed)
    last = errors[-max(1, round(_SHARE * epochs)) :]
    seconds = round(time.perf_counter() - begun, 2)
    return {"error": round(sum(last) / len(last), 9), "errors": errors, "seconds": seconds}


def _finetune(layers: list[nn.Linear], learnt, test, epochs: int, rate: float, dropout: float, seed: int) -> list:
    """Test errors (%) by epoch."""
    (X, y), (X_test, y_test) = learnt, test
    device = X.device
    numbers = torch.Generator(device).manual_seed(seed)
    weights = [p for layer in layers for p in layer.parameters()]
    optimiser = torch.optim.SGD(weights, rate, _MOMENTUM[0], foreach=True)
    errors = []

    def scores(x: torch.Tensor, dropping: bool) -> torch.Tensor:
        for layer in layers[:-1]:
            x = functional.relu(layer(x))
            if dropping:
                kept = torch.rand(x.shape, generator=numbers, device=device) >= dropout
                x = x * kept / (1 - dropout)
        return layers[-1](x)

    for epoch in range(epochs):
        risen = min(1.0, 2 * epoch / max(1, epochs))
        for group in optimiser.param_groups:
            group["momentum"] = _MOMENTUM[0] + risen * (_MOMENTUM[1] - _MOMENTUM[0])
            # A step's length in the end is the rate over (1 - momentum), which rises with the momentum.
            group["lr"] = rate * (1 - group["momentum"]) / (1 - _MOMENTUM[0]) * _DECAY ** (epoch / epochs)
        order = torch.randperm(len(X), generator=numbers, device=device)
        for part in order.split(_BATCH):
            optimiser.zero_grad()
            functional.cross_entropy(scores(X[part], True), y[part]).backward()
            optimiser.step()
        with torch.no_grad():
            wrong = sum((scores(a, False).argmax(1) != b).sum() for a, b in zip(X_test.split(2000), y_test.split(2000)))
        errors.append(wrong)
    return [round(100 * int(wrong) / len(y_test), 9) for wrong in errors]


def _generated(n: int = 2000, width: int = 20):
    """Three patterns of bits, some of them flipped."""
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 2, (3, width))
    parts = []
    for _ in range(2):
        y = rng.integers(0, 3, n)
        parts.append(((patterns[y] ^ (rng.random((n, width)) < 0.1)).astype(np.float32), y))
    return parts
