"""What a results file has for a label, at one scale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reproduction.experiments.experiment import SCALES, Entry, Experiment, Values
from reproduction.experiments.results import Results, why_none
from reproduction.experiments.verdict import CONFIRMED, DENIED, OPEN
from sketchnet.report import Verdict

_TONES = {"better": "good", "worse": "bad", "as good": "good", CONFIRMED: "good", DENIED: "bad", OPEN: "neutral"}
_GOOD_PART = 0.25  # of the measurements that a scale asks for
_NOTHING = "small"  # the scale of a label for which nothing was measured


@dataclass(frozen=True)
class Measured:
    experiment: Experiment
    scale: str
    results: Results

    @property
    def label(self) -> str:
        return self.experiment.label

    @property
    def entries(self) -> list[Entry]:
        return self.experiment.entries(self.scale)

    @property
    def values(self) -> Values:
        return self.results.values(self.experiment, self.scale)

    @property
    def records(self) -> list[dict]:
        return self.results.of(self.experiment, self.scale)

    @property
    def missing(self) -> dict[tuple[str, str], list[Entry]]:
        """Entries that could not be measured or failed, by which of the two and the reason."""
        found: dict[tuple[str, str], list[Entry]] = {}
        for entry in self.entries:
            runs = self.results.runs(self.scale, entry.cell) if entry.cell is not None else ()
            why = next(filter(None, map(why_none, runs)), None)
            if why:
                found.setdefault(why, []).append(entry)
        return found

    def lists(self, *names: str) -> dict[tuple[str, str | float], list[dict]]:
        """By series and x, what was found for each seed, where that has lists of these names. A cell is told once."""
        found, told = {}, set()
        for entry in self.entries:
            if entry.cell is None or entry.cell.key in told:
                continue
            told.add(entry.cell.key)
            have = [record["found"] for record in self.results.runs(self.scale, entry.cell)]
            have = [each for each in have if all(each.get(name) and isinstance(each[name], list) for name in names)]
            if have:
                found[entry.series, entry.x] = have
        return found


def find_scale(experiment: Experiment, results: Results, scale: str | None = None) -> Measured:
    """At the scale that is asked for; else at the largest of which a good part was measured, or else was begun."""
    if scale is not None:
        return Measured(experiment, scale, results)
    good, begun = [], []
    for name in SCALES:
        records = results.of(experiment, name)
        measured = count_measured(records)
        if measured and measured >= _GOOD_PART * len(experiment.cells(name)):
            good.append(name)
        elif records:
            begun.insert(0 if not measured else len(begun), name)
    return Measured(experiment, [_NOTHING, *begun, *good][-1], results)


def count_measured(records: Iterable[dict]) -> int:
    """Without those that only say why there is no number."""
    return sum(why_none(record) is None for record in records)


def worded(word: str) -> Verdict:
    return Verdict(word, _TONES[word])


def machines(records: Iterable[dict]) -> list[tuple[str, str]]:
    """What versions measured, on what hardware."""
    keys = {"Versions": ("sketchnet", "python", "torch", "numpy"), "Hardware": ("machine", "device")}
    return [(title, "; ".join(_circumstances(records, *names)) or "not known") for title, names in keys.items()]


def _circumstances(records: Iterable[dict], *keys: str) -> list[str]:
    """The different values of some keys of the circumstances, each with its key."""
    told = []
    for record in records:
        found = record.get("circumstances") or {}
        told.append(", ".join(f"{key} {found[key]}" for key in keys if found.get(key)))
    return [text for text in dict.fromkeys(told) if text]


def seconds_of(records: Iterable[dict]) -> float:
    return float(sum((record.get("circumstances") or {}).get("seconds") or 0.0 for record in records))


def days_of(records: Iterable[dict]) -> str:
    """The first and the last day of measuring."""
    days = sorted(str((record.get("circumstances") or {}).get("when") or "")[:10] for record in records)
    days = [day for day in days if day]
    return " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "not known"
