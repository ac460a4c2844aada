"""Measurements as lines of JSON: appended as they come, read back by what was asked for."""

from __future__ import annotations

import json
import os
from pathlib import Path

from reproduction.experiments.experiment import Cell, Experiment, Values
from sketchnet.errors import InputError, StorageError
from sketchnet.storage import check_regular, writing

_BEGINNING = '{"scale": "'  # of every line, also of one that was cut off


def why_none(record: dict) -> tuple[str, str] | None:
    """Of a record without numbers: "missing", if a data set or a package is, or "failed", and the reason."""
    return next(((kind, str(record["found"][kind])) for kind in ("missing", "failed") if kind in record["found"]), None)


def append_line(path: Path, record: dict) -> None:
    """Append a record as a line of JSON; it is on the disk when this returns."""
    with writing(path), open(path, "a+b") as file:
        file.seek(0, os.SEEK_END)
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # a line that was cut off
                file.write(b"\n")
        file.write(json.dumps(record).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


class Results:
    """The measurements of a file, by (scale, cell, seed); of two with the same place the later one counts.

    One without numbers, though, never hides one that was there before it. `failures` are the reasons of those that
    were added here and failed.
    """

    def __init__(self, path: str | Path):
        self.path, self.failures = Path(path), []
        self._runs: dict[tuple[str, str], dict[int, dict]] = {}  # by scale and cell, then by seed
        for record in self._read():
            self._keep(record)

    def _keep(self, record: dict) -> None:
        cell, seed = Cell(record["recipe"], record["settings"]), record["seed"]
        runs = self._runs.setdefault((record["scale"], cell.key), {})
        if seed not in runs or why_none(record) is None or why_none(runs[seed]) is not None:
            runs[seed] = record

    def _read(self) -> list[dict]:
        if not self.path.exists():
            return []
        try:
            check_regular(self.path)
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise StorageError(f"cannot read {self.path}: {error.strerror}") from None
        records, lines = [], text.split("\n")
        for line in lines:
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue  # cut off while it was written; it will be measured again
            if isinstance(record, dict) and {"scale", "recipe", "settings", "seed", "found"} <= record.keys():
                records.append(record)
        if not records and not all(_BEGINNING.startswith(line[: len(_BEGINNING)]) for line in lines):
            raise InputError(f"{self.path} has no results, but other lines; choose another place for them")
        return records

    def __len__(self) -> int:
        return sum(map(len, self._runs.values()))

    def get(self, scale: str, cell: Cell, seed: int) -> dict | None:
        """The whole record: its numbers are in record["found"]."""
        return self._runs.get((scale, cell.key), {}).get(seed)

    def add(self, scale: str, cell: Cell, seed: int, found: dict, circumstances: dict) -> None:
        """Append a measurement; it is on the disk when this returns."""
        record = {"scale": scale, "recipe": cell.recipe, "settings": cell.settings, "seed": seed, "found": found}
        record |= {"circumstances": circumstances}
        append_line(self.path, record)
        self._keep(record)
        if "failed" in found:
            self.failures.append(found["failed"])

    def of(self, experiment: Experiment, scale: str) -> list[dict]:
        """All records that an experiment asks for and the file has."""
        cells = {entry.cell.key: entry.cell for entry in experiment.entries(scale) if entry.cell is not None}
        return [record for cell in cells.values() for record in self.runs(scale, cell)]

    def runs(self, scale: str, cell: Cell) -> list[dict]:
        """The records of a cell, one a seed, in the seeds' order."""
        return [record for _, record in sorted(self._runs.get((scale, cell.key), {}).items())]

    def values(self, experiment: Experiment, scale: str) -> Values:
        """The numbers of an experiment. Cells that could not be measured here have none."""
        found: dict[tuple, list[float]] = {}
        for entry in experiment.entries(scale):
            for record in self.runs(scale, entry.cell) if entry.cell is not None else ():
                if record["found"].get(entry.quantity) is not None:
                    found.setdefault((entry.series, entry.x), []).append(record["found"][entry.quantity])
        return Values(found)
