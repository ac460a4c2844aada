"""Training of residual networks with stochastic depth on small images: one, or several at once on one GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager, nullcontext

import torch

from reproduction.images.config import ImageConfig, Images
from reproduction.images.data import ImagesOnDevice
from reproduction.images.run import ImageRun
from sketchnet.errors import InputError

__all__ = ["ImageConfig", "Images", "train_together"]


def train_together(
    configs: Sequence[ImageConfig],
    train: Images,
    test: Images,
    device: str | torch.device = "cpu",
    report: Callable[[dict], None] | None = None,
    fused: bool = True,
) -> list[list[float]]:
    """Train networks, a step each in turn; of each one the test error (a share) after each epoch.

    They must agree in the epochs and the size of batches. On the processor the seed decides everything; on a GPU
    results also depend on the order of its sums. Images that fill no batch at an epoch's end are left out of it.
    `report` gets a record after each epoch of each network.

    `fused`: on a GPU, by kernels of our own for batch normalisation, where they can run; otherwise by torch's.
    """
    if not configs or len({(config.epochs, config.batch_size) for config in configs}) != 1:
        raise InputError("networks that are trained together must have the same epochs and batch_size")
    device = torch.device(device)
    data, epochs = ImagesOnDevice(train, test, device), configs[0].epochs
    with _gpu(device) if data.on_gpu else nullcontext():
        runs = [ImageRun(config, data, fused) for config in configs]
        errors = [[] for _ in runs]
        for epoch in range(epochs):
            for run in runs:
                run.begin(epoch)
            for _ in range(runs[0].n_batches):
                for run in runs:
                    run.advance()
            for run in runs:
                run.evaluate()
            for run, of_run in zip(runs, errors):
                error, loss = run.result()
                of_run.append(error)
                if report is not None:
                    rate, how = run.config.rate_at(epoch), {"scheme": run.config.scheme, "seed": run.config.seed}
                    report({**how, "epoch": epoch, "rate": rate, "loss": loss, "test_error": error})
    return errors


@contextmanager
def _gpu(device: torch.device):
    """The current one, with cuDNN allowed to try which of its algorithms are fastest: shapes never change."""
    before, torch.backends.cudnn.benchmark = torch.backends.cudnn.benchmark, True
    try:
        with torch.cuda.device(device):
            yield
    finally:
        torch.backends.cudnn.benchmark = before
