"""Finished experts of a run, kept in a folder, so that the run can go on where it was cut off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from sketchnet.experts.expert import Expert
from sketchnet.storage import writing
from sketchnet.training import checkpoint


class KeptExperts:
    """Writes experts to a folder and reads them back; without a folder, it does neither."""

    def __init__(self, folder: Path | None):
        self._folder = folder

    def write(self, name: str, expert: Expert, more: dict[str, np.ndarray]) -> None:
        """Keep an expert under a name, and more arrays beside it; what is there already stays."""
        folder = self._folder
        if folder is None or (folder / f"{name}.safetensors").exists():
            return
        arrays, settings = expert.state()
        tensors = {key: torch.from_numpy(np.asarray(array, order="C")) for key, array in {**arrays, **more}.items()}
        with writing(folder):
            folder.mkdir(exist_ok=True)
        notes = {"settings": settings, "chosen": expert.chosen, "more": list(more)}
        checkpoint.write_tensors(folder / f"{name}.safetensors", tensors, notes)

    def read(self, name: str, expert: Expert) -> dict[str, np.ndarray] | None:
        """Restore an expert that an earlier run has kept; returns what was kept beside it."""
        path = self._folder and self._folder / f"{name}.safetensors"
        if path is None or not path.exists():
            return None
        tensors, notes = checkpoint.read_tensors(path)
        arrays = {key: tensor.numpy() for key, tensor in tensors.items()}
        more = {key: arrays.pop(key) for key in notes["more"]}
        expert.restore(arrays, notes["settings"])
        expert.chosen = notes["chosen"]
        return more
