"""Experts with their blend: what is saved, loaded and asked for predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import numpy as np
import torch

from sketchnet import __version__
from sketchnet.checks import check_integer
from sketchnet.data.batches import iterate_batches
from sketchnet.data.csr import CsrBatch
from sketchnet.errors import InputError
from sketchnet.experts.blend import Blend
from sketchnet.experts.expert import Expert
from sketchnet.experts.rows import SeenColumns
from sketchnet.kernels.cpu.threads import limited
from sketchnet.training import checkpoint
from sketchnet.training.model import load_model as load_network
from sketchnet.training.predictor import Predictor
from sketchnet.training.task import Task

EXPERTS = {  # and the files that they are in, in the order in which they are fitted
    "linear": "linear.LinearExpert",
    "weights": "network.WeightsExpert",
    "vectors": "network.VectorsExpert",
    "columns": "columns.ColumnsExpert",
    "trees": "trees.TreesExpert",
    "dense": "network.DenseExpert",
    "sketch": "sketch.SketchExpert",
}
_ROWS = 4096  # predicted at a time


def expert_class(name: str) -> type[Expert]:
    """Return an expert's class; its file is loaded only when it is wanted."""
    file, _, kind = EXPERTS[name].partition(".")
    return getattr(import_module(f"sketchnet.experts.{file}"), kind)


@dataclass
class BlendedModel(Predictor):
    """Experts on the columns that occurred, and the weights by which their logits are added up."""

    task: Task
    columns: SeenColumns
    experts: dict[str, Expert]
    blend: Blend
    width: int  # of the rows
    settings: dict = field(default_factory=dict)
    data: dict = field(default_factory=dict)
    history: list[dict] = field(default_factory=list)

    @property
    def n_columns(self) -> int:
        return self.width

    def outputs(
        self, rows, progress: Callable[[int, int], None] | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Return the blended logits, or standardised numbers (rows x outputs), of a CsrBatch or a data set on disk."""
        outputs, done = np.empty((rows.n_rows, self.task.n_outputs)), 0
        with limited(threads):
            pieces = [rows] if rows.n_rows <= _ROWS and isinstance(rows, CsrBatch) else _in_order(rows)
            for batch in pieces:
                numbered = self.columns.compact(batch)
                outputs[done : done + batch.n_rows] = self.blend.apply(
                    [expert.logits(numbered) for expert in self.experts.values()]
                )
                done += batch.n_rows
                if progress is not None:
                    progress(done, rows.n_rows)
        return outputs

    def contributions(self, batch: CsrBatch, outputs: np.ndarray) -> np.ndarray:
        """Return what each entry of rows without repeated ids adds to its row's output number outputs[row]."""
        numbered = self.columns.compact(batch)
        parts = [expert.contributions(numbered, outputs) for expert in self.experts.values()]
        return sum(weight * part for weight, part in zip(self.blend.weights, parts))

    def tensors(self) -> dict[str, torch.Tensor]:
        arrays = {"columns": self.columns.ids, "blend.weights": self.blend.weights}
        if self.columns.scales is not None:
            arrays["scales"] = self.columns.scales
        arrays["blend.constants"] = self.blend.constants
        for name, expert in self.experts.items():
            arrays |= {f"{name}.{key}": array for key, array in expert.state()[0].items()}
        return {name: torch.from_numpy(np.asarray(array, order="C")) for name, array in arrays.items()}

    def config(self) -> dict:
        return {
            "sketchnet": __version__,
            "columns": self.width,
            "experts": {name: expert.state()[1] for name, expert in self.experts.items()},
            "training": self.settings,
            "task": self.task.to_dict(),
            "data": self.data,
        }


def _in_order(rows):
    return iterate_batches(rows, _ROWS, shuffle=False)


def load_model(folder: str | Path) -> Predictor:
    """Read a model folder, of a blend or of a network. Nothing in it is executed."""
    folder = Path(folder)
    checkpoint.recover(folder)
    content = checkpoint.read_config(folder)
    if "experts" not in content:
        return load_network(folder)
    try:
        task = Task.from_dict(content["task"])
        data = content.get("data") or {}
        if not isinstance(data, dict) or not isinstance(content["experts"], dict):
            raise InputError("data and experts are objects")
        for name in ("rows", "entries"):
            check_integer(f"data.{name}", data.get(name, 0), 0, 2**63)
        width = check_integer("columns", content["columns"], 0, 2**63)
        settings = dict(content["training"])
        tensors, _ = checkpoint.read_tensors(folder / checkpoint.WEIGHTS)
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        experts = {name: _restore(name, task, content["experts"][name], arrays) for name in content["experts"]}
        columns = _columns(arrays["columns"], arrays.get("scales"))
        blend = _blend(arrays, len(experts), task.n_outputs)
        for name, expert in experts.items():  # kernels look columns up without asking
            if expert.n_columns != len(columns.ids) + 1:
                raise InputError(f"its expert {name} has {expert.n_columns} columns, not {len(columns.ids) + 1}")
        model = BlendedModel(task, columns, experts, blend, width, settings, data)
        model.outputs(CsrBatch(np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), width))
        _ = model.class_names  # whose names may not fit
    except InputError as error:
        raise InputError(f"{folder}: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RuntimeError) as error:
        what = str(error).partition("\n")[0]
        raise InputError(f"{folder / checkpoint.CONFIG} is damaged: {type(error).__name__}: {what}") from None
    model.history = checkpoint.read_history(folder)
    return model


def _restore(name: str, task: Task, settings: dict, arrays: dict[str, np.ndarray]) -> Expert:
    if name not in EXPERTS or not isinstance(settings, dict):
        raise InputError(f"there is no expert {name!r}; there are {', '.join(EXPERTS)}")
    expert = expert_class(name)(task.kind, task.n_outputs)
    own = {key.removeprefix(f"{name}."): value for key, value in arrays.items() if key.startswith(f"{name}.")}
    expert.restore(own, settings)
    return expert


def _columns(ids: np.ndarray, scales: np.ndarray | None) -> SeenColumns:
    if ids.dtype != np.int64 or ids.ndim != 1 or (ids.size and ids.min() < 0) or len(np.unique(ids)) < len(ids):
        raise InputError("the ids of its columns are damaged")
    fit = scales is None or (scales.dtype == np.float32 and scales.shape == (len(ids) + 1,))
    if not fit or (scales is not None and not np.isfinite(scales).all()):
        raise InputError("the scales of its columns are damaged")
    return SeenColumns(ids, scales)


def _blend(arrays: dict[str, np.ndarray], n_experts: int, n_outputs: int) -> Blend:
    weights, constants = arrays["blend.weights"], arrays["blend.constants"]
    if weights.shape != (n_experts,) or constants.shape != (n_outputs,):
        raise InputError(f"the blend's weights do not fit {n_experts} experts with {n_outputs} outputs")
    if not (np.isfinite(weights).all() and np.isfinite(constants).all()):
        raise InputError("the blend has a weight that is not finite")
    return Blend(weights.astype(np.float64), constants.astype(np.float64), float("nan"))
