"""What was measured: lines of JSON in a folder, and beside them the predictions of each run."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from reproduction.experiments.results import append_line
from reproduction.scoreboard.arithmetic import Predictions
from reproduction.scoreboard.measuring import read_predictions
from reproduction.scoreboard.plan import DEFAULT

_KEY = ("set", "rival", "seed", "quick", "code")


class Records:
    """The runs of a folder; of two with the same key the later one counts."""

    def __init__(self, folder: Path):
        self.folder, self.path = folder, folder / "results.jsonl"
        self._runs: dict[tuple, dict] = {}
        for line in self.path.read_text(encoding="utf8").splitlines() if self.path.exists() else ():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue  # cut off while it was written; it will be measured again
            self._keep(record)

    def _keep(self, record: dict) -> None:
        key = _key(record)
        self._runs.pop(key, None)  # so that they stand in the order of measurement
        self._runs[key] = record

    def add(self, record: dict) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        append_line(self.path, record)
        self._keep(record)

    def get(self, **key) -> dict | None:
        return self._runs.get(_key(key))

    def choice(self, **key) -> dict | None:
        """The settings that a search with another seed has found for the same rival and set."""
        alike = [name for name in _KEY if name != "seed"]
        found = (run for run in self._runs.values() if all(run[name] == key[name] for name in alike))
        return next((run["choice"] for run in found if run.get("choice")), None)

    def current(self, quick: bool) -> dict[str, dict[str, list[dict]]]:
        """Runs by set and rival, in the order of seeds. Of those with other code the last measured count."""
        found: dict[str, dict[str, list[dict]]] = {}
        for run in self._runs.values():
            if run["quick"] == quick:
                found.setdefault(run["set"], {}).setdefault(run["rival"], []).append(run)
        for runs in found.values():
            for rival, own in runs.items():
                last = own[-1]["code"]
                runs[rival] = sorted((run for run in own if run["code"] == last), key=lambda run: run["seed"])
        return {name: runs for name, runs in found.items() if DEFAULT in runs}

    def predictions_path(self, **key) -> Path:
        name = sha256(repr(_key(key)).encode()).hexdigest()[:16]
        return self.folder / "predictions" / f"{key['set']}-{key['rival']}-{key['seed']}-{name}.npz"

    def predictions(self, record: dict) -> Predictions:
        return read_predictions(self.predictions_path(**{name: record[name] for name in _KEY}))


def _key(record: dict) -> tuple:
    return tuple(record[name] for name in _KEY)
