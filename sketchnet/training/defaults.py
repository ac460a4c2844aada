"""Settings for those who set none: chosen from the numbers of rows, columns and non-zeros, and the hardware."""

from __future__ import annotations

import torch

from sketchnet.errors import InputError
from sketchnet.nn import NetworkConfig, SketchNetwork
from sketchnet.training.config import TrainingConfig
from sketchnet.training.model import Model
from sketchnet.training.task import Task

_STEPS = 2000  # about as many as text and clicks take before they overfit, in batches of 16 to 256 rows


def build_model(task: Task, n_rows: int, n_columns: int, settings: dict, seed: int) -> Model:
    """An untrained model. `settings` are fields of NetworkConfig and TrainingConfig; those that are "auto", or not
    there, are chosen here.
    """
    given = {name: value for name, value in settings.items() if value != "auto"}
    network = {name: given.pop(name) for name in list(given) if name in NetworkConfig.__dataclass_fields__}
    training = {name: given.pop(name) for name in list(given) if name in TrainingConfig.__dataclass_fields__}
    if given:
        raise InputError(f"there is no setting {', '.join(given)}")
    learn = network.get("learn", True)
    batch_size = training.setdefault("batch_size", min(256, max(16, n_rows // 100)))
    steps = max(1, n_rows // batch_size)
    training.setdefault("epochs", min(60, max(6, -(-_STEPS // steps))))
    network.setdefault("normalise", "batch" if learn else "standard")
    network.setdefault("feature_dropout", 0.3 if learn or network.get("wide", True) else 0.0)
    network.setdefault("dropout", 0.5)
    network.setdefault("hidden_norm", training.get("optimiser", "adamw") == "adamw")
    config = NetworkConfig(n_columns=n_columns, n_outputs=task.n_outputs, seed=seed, **network)
    return Model(SketchNetwork(config), task, TrainingConfig(seed=seed, **training))


def describe(model: Model, n_rows: int) -> str:
    """The settings in one paragraph, for people."""
    network, training = model.network.config, model.training
    front = f"{network.scheme} to {network.n_components} ({'learnt' if network.learn else 'fixed'})"
    widths = "-".join(map(str, (network.n_components, *network.hidden, network.n_outputs)))
    table = f", ids hashed to {network.hashed_columns:,}" if network.hashed_columns else ""
    return "; ".join(
        (
            f"{n_rows:,} rows x {network.n_columns:,} columns{table}",
            f"{model.task.kind}, {front}, network {widths}{' and wide path' if network.wide else ''}",
            f"dropout {network.dropout:g}, of features {network.feature_dropout:g}",
            f"{training.optimiser} with rate {training.rate:g}, l2 {training.l2:g}",
            f"{training.epochs} epochs in batches of {training.batch_size}",
            f"{model.network.device}, {torch.get_num_threads()} threads",
        )
    )


def choose_device(name: str) -> torch.device:
    """ "auto" is the processor: the layers that read sparse rows run there."""
    if name == "auto":
        return torch.device("cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device {name!r} is not possible; it is auto, cpu or cuda") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device {name!r} is not possible: torch finds no CUDA device here")
    return device
