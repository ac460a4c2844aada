"""Settings for those who set none: chosen from the number of rows, and the hardware."""

from __future__ import annotations

import dataclasses
import os

import torch

from sketchnet.checks import as_flag, check_device, check_integer, meant
from sketchnet.errors import InputError
from sketchnet.kernels.registry import cuda_missing, gpu_missing
from sketchnet.nn import AutoencoderConfig, NetworkConfig, SketchNetwork
from sketchnet.projection import SRHT
from sketchnet.training.captured import is_known
from sketchnet.training.config import TrainingConfig
from sketchnet.training.model import Model
from sketchnet.training.task import Task
from sketchnet.training.threads import choose_threads, step_work

_WORTHWHILE = 20_000  # rows from which on a GPU is taken unasked: compiling its kernels takes seconds
_RBM_EPOCHS, _RBM_ROWS, _RBM_STEPS = 40, 1_000_000, 1000  # of pretraining, in batches of 100 rows
_STEPS = 2000  # about as many as text and clicks take before they overfit, in batches of 16 to 256 rows


def build_model(task: Task, data, settings: dict, seed: int) -> Model:
    """An untrained model for rows like those of `data`."""
    network, training = make_configs(task, data.n_rows, data.n_columns, settings, seed)
    return Model(SketchNetwork(network), task, training)


def make_configs(
    task: Task, n_rows: int, n_columns: int, settings: dict, seed: int
) -> tuple[NetworkConfig, TrainingConfig]:
    """`settings` are fields of both configs; those that are "auto", or not there, are chosen here."""
    given = {name: value for name, value in settings.items() if not is_auto(value)}
    ours = {"n_columns", "n_outputs", "seed"}  # which the caller knows
    of_network, of_training = _names(NetworkConfig) - ours, _names(TrainingConfig) - ours
    network = {name: given.pop(name) for name in list(given) if name in of_network}
    training = {name: given.pop(name) for name in list(given) if name in of_training}
    for name in given:
        raise InputError(f"there is no setting {name}; {meant(name, of_network | of_training)}")
    learn = network.get("learn", True)
    batch_size = training.setdefault("batch_size", min(256, max(16, n_rows // 100)))
    steps = max(1, n_rows // check_integer("batch_size", batch_size, 1, 2**31))
    epochs = training.setdefault("epochs", min(60, max(6, -(-_STEPS // steps))))
    training.setdefault("patience", max(5, check_integer("epochs", epochs, 1, 2**31) // 3))
    network.setdefault("normalise", "batch" if learn else "standard")
    network.setdefault("dropout", 0.5)
    if as_flag(training.get("pretrain")) is True:
        training["pretrain"] = rbm_epochs(n_rows)
    network.setdefault("hidden_norm", training.get("optimiser", "adamw") == "adamw")
    config = NetworkConfig(n_columns=n_columns, n_outputs=task.n_outputs, seed=seed, **network)
    return with_density(config, n_rows, config.width), TrainingConfig(seed=seed, **training)


def with_density(config: NetworkConfig | AutoencoderConfig, n_rows: int, width: int):
    """The config with the density that "srht_sparse" takes from the rows, if it has none: kept there, so that a model
    that is loaded, or goes on, draws by the same law.
    """
    if config.scheme != "srht_sparse":
        return config
    return dataclasses.replace(config, options={"density": SRHT.thesis_density(n_rows, width), **config.options})


def is_auto(value) -> bool:
    return isinstance(value, str) and value == "auto"


def rbm_epochs(n_rows: int) -> int:
    """Of each layer's pretraining: fewer of many rows, and of few rows enough for the units to become different."""
    steps = max(1, -(-n_rows // 100))
    return max(2, min(_RBM_EPOCHS, _RBM_ROWS // max(1, n_rows)), -(-_RBM_STEPS // steps))


def _names(config: type) -> set[str]:
    return {field.name for field in dataclasses.fields(config)}


def describe(model: Model, n_rows: int, threads: int | None = None) -> str:
    """The settings in one paragraph, for people."""
    network, training = model.network.config, model.training
    front = f"{network.scheme} to {network.n_components} ({'learnt' if network.learn else 'fixed'})"
    widths = "-".join(map(str, (network.n_components, *network.hidden, network.n_outputs)))
    table = f", ids hashed to {network.hashed_columns:,}" if network.hashed_columns else ""
    return "; ".join(
        (
            f"{n_rows:,} rows x {network.n_columns:,} columns{table}",
            f"{model.task.kind}, {front}, network {widths}",
            f"dropout {network.dropout:g}, of features {network.feature_dropout:g}",
            f"{training.optimiser} with rate {training.rate:g}, l2 {training.l2:g}",
            f"{training.epochs} epochs in batches of {training.batch_size}",
            describe_device(model, threads),
        )
    )


def describe_device(model: Model, threads: int | None) -> str:
    """Where the network learns, and with how many of torch's threads."""
    n = choose_threads(step_work(model.network, model.training.batch_size), threads)
    return f"{model.network.device}, {n} thread{'s' * (n > 1)}"


def choose_device(name: str, model: Model | None = None, n_rows: int = 0) -> torch.device:
    """ "auto" is a CUDA device where there is one, rows enough to be worth its start, and a model that gains by it."""
    name = check_device(name)
    if name == "auto":
        return _gpu() if model is not None and _gains(model, n_rows) else torch.device("cpu")
    device = torch.device(name)
    missing = cuda_missing(device.index) if device.type == "cuda" else None
    if missing:
        raise InputError(f"device {name!r} is not possible here: {missing}")
    return _gpu() if device == torch.device("cuda") else device


def _gains(model: Model, n_rows: int) -> bool:
    if model.task.kind == "autoencoder":  # whose layers are torch's, so that nothing has to be compiled
        return n_rows >= _WORTHWHILE // 10 and torch.cuda.is_available()
    known = is_known(model.network.config, model.task, model.training)
    return n_rows >= _WORTHWHILE and known and gpu_missing() is None


def _gpu() -> torch.device:
    """The only one, or among those that torchrun started, this process's."""
    if "LOCAL_RANK" not in os.environ:
        return torch.device("cuda")
    wanted, there = int(os.environ.get("LOCAL_WORLD_SIZE", 1)), torch.cuda.device_count()
    if wanted > there:
        raise InputError(f"{wanted} processes need as many CUDA devices, but there are {there}; choose cpu")
    return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
