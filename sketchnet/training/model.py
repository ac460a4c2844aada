"""A network with its task: what is saved, loaded and asked for predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sketchnet import __version__, random
from sketchnet.checks import check_integer
from sketchnet.data.batches import iterate_batches
from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.nn import Autoencoder, AutoencoderConfig, LearnableProjection, NetworkConfig, SketchNetwork
from sketchnet.nn.table import TableLayer
from sketchnet.training import checkpoint
from sketchnet.training.config import TrainingConfig
from sketchnet.training.predictor import Predictor
from sketchnet.training.task import Task
from sketchnet.training.threads import step_work, thread_budget

_ROWS = 1024  # predicted at a time


@dataclass
class Model(Predictor):
    """A network with its task."""

    network: Any  # a SketchNetwork or an Autoencoder: courses know which
    task: Task
    training: TrainingConfig
    data: dict = field(default_factory=dict)
    history: list[dict] = field(default_factory=list)
    _double: Any = field(default=None, repr=False, compare=False)

    def outputs(
        self, rows, progress: Callable[[int, int], None] | None = None, threads: int | None = None
    ) -> np.ndarray:
        """The network's outputs (n x n_outputs), or codes, for a CsrBatch or a data set on disk, in pieces.

        Rows of float64 are computed in float64, so that a row's outputs hardly depend on its neighbours; others in
        float32, which is twice as fast.
        """
        network, dtype = self.network, np.float32
        if network.training:  # asked first: telling every layer takes longer than some predictions
            network.eval()
        if isinstance(rows, CsrBatch) and rows.values.dtype == np.float64:
            network, dtype = self._in_double(), np.float64
        at_once = network.at_once if self.task.kind == "autoencoder" else _ROWS
        with torch.no_grad(), thread_budget(step_work(network, min(at_once, rows.n_rows)), threads):
            if isinstance(rows, CsrBatch) and rows.n_rows <= at_once:
                return network(rows).cpu().numpy()
            outputs, done = np.empty((rows.n_rows, network.config.n_outputs), dtype), 0
            for batch in iterate_batches(rows, at_once, shuffle=False):
                outputs[done : done + batch.n_rows] = network(batch).cpu().numpy()
                done += batch.n_rows
                if progress is not None:
                    progress(done, rows.n_rows)
        return outputs

    def _in_double(self) -> Any:
        if self._double is None:
            self._double = self.network.in_double()
        return self._double

    def __getstate__(self) -> dict:
        return {**vars(self), "_double": None}  # which is made again where it is wanted

    def forget_double(self) -> None:
        """The network has changed, so that its copy in float64 is another one's."""
        self._double = None

    @property
    def n_columns(self) -> int:
        return self.network.config.n_columns

    @property
    def n_parameters(self) -> int:
        return sum(tensor.numel() for tensor in self.network.parameters())

    @property
    def takes_any_id(self) -> bool:
        return getattr(self.network.config, "hashed_columns", None) is not None

    @property
    def settings(self) -> dict:
        return {**self.network.config.to_dict(), **self.training.to_dict()}

    def tensors(self) -> dict[str, torch.Tensor]:
        return self.network.state_dict()

    def contributions(self, batch: CsrBatch, outputs: np.ndarray) -> np.ndarray:
        """Return the gradient of each row's output number outputs[row] by each of its values, times the value."""
        network = self.network.eval()
        read = network.read(batch)
        values = torch.from_numpy(read.batch.values.copy()).requires_grad_()
        logits = network(read, values)
        picked = logits.gather(1, torch.from_numpy(outputs)[:, None].to(logits.device))
        (gradient,) = torch.autograd.grad(picked.sum(), values)
        return gradient.numpy() * read.batch.values

    def config(self) -> dict:
        return {
            "sketchnet": __version__,
            "layout": random.LAYOUT_VERSION,
            "network": self.network.config.to_dict(),
            "training": self.training.to_dict(),
            "task": self.task.to_dict(),
            "data": self.data,
        }


def load_model(folder: str | Path) -> Model:
    """Read a model folder. Nothing in it is executed, and sizes are checked before memory is taken."""
    folder = Path(folder)
    checkpoint.recover(folder)
    content = checkpoint.read_config(folder)
    if content.get("layout") != random.LAYOUT_VERSION:
        raise InputError(f"{folder} draws by layout {content.get('layout')!r}; this version by {random.LAYOUT_VERSION}")
    try:
        task = Task.from_dict(content["task"])
        makes_codes = task.kind == "autoencoder"
        config: Any = (AutoencoderConfig if makes_codes else NetworkConfig)(**content["network"])
        training = TrainingConfig(**content["training"])
        if not makes_codes and config.n_outputs != task.n_outputs:
            raise InputError(f"{config.n_outputs} outputs do not fit the task's {task.n_outputs}")
        with torch.device("meta"):  # shapes without memory
            network: Any = (Autoencoder if makes_codes else SketchNetwork)(config)
        data = content.get("data") or {}
        if not isinstance(data, dict):
            raise InputError(f"data is {data!r}; it is an object")
        for name in ("rows", "entries"):
            check_integer(f"data.{name}", data.get(name, 0), 0, 2**63)
        model = Model(network, task, training, data)
        _ = model.classes  # whose names may not fit
    except InputError as error:
        raise InputError(f"{folder / checkpoint.CONFIG}: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RuntimeError) as error:
        what = str(error).partition("\n")[0]  # torch says some things at length
        raise InputError(f"{folder / checkpoint.CONFIG} is damaged: {type(error).__name__}: {what}") from None
    like = network.state_dict()
    if not makes_codes and config.learn and config.scheme == "li":
        like["projection.weight"] = _like_li(folder / checkpoint.WEIGHTS, network.projection)
        network.projection.weight = torch.nn.Parameter(like["projection.weight"])
    tensors, _ = checkpoint.read_tensors(folder / checkpoint.WEIGHTS, like)
    # Products of some processors round by where a matrix begins in memory, and in a file it begins anywhere. Tables may
    # be large, and are read by our own kernels, which do not.
    tables = {f"{name}.weight" for name, layer in network.named_modules() if isinstance(layer, TableLayer)}
    tensors = {name: tensor if name in tables else tensor.clone() for name, tensor in tensors.items()}
    network.load_state_dict(tensors, assign=True)
    network.eval()
    model.history = checkpoint.read_history(folder)
    return model


def _like_li(path: Path, layer: LearnableProjection) -> torch.Tensor:
    """Li's weights as the file has them, if there can be so many: counting them would take a walk over all columns."""
    n, expected = checkpoint.length_of(path, "projection.weight"), layer.operator.d * layer.operator.per_entry
    if abs(n - expected) > 10 * (expected + 10) ** 0.5:
        raise InputError(f"{path} has {n} weights for a projection that has about {expected:.0f}")
    return torch.empty(n, device="meta")
