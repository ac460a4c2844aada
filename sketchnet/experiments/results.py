"""Measurements as lines of JSON: appended as they come, read back by what was asked for."""

from __future__ import annotations

import json
import os
from pathlib import Path

from sketchnet.errors import StorageError
from sketchnet.experiments.experiment import Cell, Experiment, Values
from sketchnet.storage import writing


class Results:
    """The measurements of a file, by (scale, cell, seed); of two with the same place the later one counts.

    One that failed, though, never hides a number that was there before it.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._found: dict[tuple[str, str, int], dict] = {}
        for record in self._read():
            self._keep(record)

    def _keep(self, record: dict) -> None:
        place = record["scale"], Cell(record["recipe"], record["settings"]).key, record["seed"]
        if place not in self._found or "missing" not in record["found"]:
            self._found[place] = record

    def _read(self) -> list[dict]:
        if not self.path.exists():
            return []
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise StorageError(f"cannot read {self.path}: {error.strerror}") from None
        records = []
        for line in lines:
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue  # cut off while it was written; it will be measured again
            if isinstance(record, dict) and {"scale", "recipe", "settings", "seed", "found"} <= record.keys():
                records.append(record)
        return records

    def __len__(self) -> int:
        return len(self._found)

    def get(self, scale: str, cell: Cell, seed: int) -> dict | None:
        """The whole record: its numbers are in record["found"]."""
        return self._found.get((scale, cell.key, seed))

    def add(self, scale: str, cell: Cell, seed: int, found: dict, circumstances: dict) -> None:
        """Append a measurement; it is on the disk when this returns."""
        record = {"scale": scale, "recipe": cell.recipe, "settings": cell.settings, "seed": seed, "found": found}
        record |= {"circumstances": circumstances}
        with writing(self.path), open(self.path, "a+b") as file:
            file.seek(0, os.SEEK_END)
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # a line that was cut off
                    file.write(b"\n")
            file.write(json.dumps(record).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._keep(record)

    def of(self, experiment: Experiment, scale: str) -> list[dict]:
        """All records that an experiment asks for and the file has."""
        found = (self.get(scale, cell, seed) for cell, seed in experiment.cells(scale))
        return [record for record in found if record is not None]

    def values(self, experiment: Experiment, scale: str) -> Values:
        """The numbers of an experiment. Cells that could not be measured here have none."""
        found: dict[tuple, list[float]] = {}
        for entry in experiment.entries(scale):
            for seed in range(experiment.seeds[scale]) if entry.cell is not None else ():
                record = self.get(scale, entry.cell, seed)
                if record is not None and record["found"].get(entry.quantity) is not None:
                    found.setdefault((entry.series, entry.x), []).append(record["found"][entry.quantity])
        return Values(found)
