"""The numbers of a label: what the thesis prints, what was measured here, and what that says."""

from __future__ import annotations

from statistics import fmean

from reproduction.experiments.experiment import Entry
from reproduction.experiments.verdict import of_entry
from reproduction.report.measured import Measured, worded
from sketchnet.report import Content, Number, Quiet, Table, decimals_for, shown

_SIDE_BY_SIDE = 2  # columns of the thesis's table; with more, the three numbers of a cell stand below each other
_NONE = Quiet("–")
_WORDS = {"missing": "no data", "failed": "failed"}  # in place of a number


def label_table(measured: Measured) -> Table:
    """Thesis, ours and verdict for each series and x. Names of the numbers are "label/series/x/ours" and so on."""
    return _Writer(measured).table()


class _Writer:
    def __init__(self, measured: Measured):
        self.measured, self.values = measured, measured.values
        self.entries = {(entry.series, entry.x): entry for entry in measured.entries}
        self.series = list(dict.fromkeys(series for series, _ in self.entries))
        self.xs = list(dict.fromkeys(x for _, x in self.entries))
        missing = ((kind, entry) for (kind, _), entries in measured.missing.items() for entry in entries)
        self.missing = {(entry.series, entry.x): _WORDS[kind] for kind, entry in missing}
        published = [entry.published for entry in self.entries.values() if entry.published is not None]
        means = [fmean(runs) for runs in self.values.runs.values()]
        self.decimals = decimals_for([*published, *means])

    def table(self) -> Table:
        rows = self._side_by_side() if len(self.xs) <= _SIDE_BY_SIDE else self._below_each_other()
        experiment = self.measured.experiment
        caption = f"{experiment.unit}, by {experiment.x_name}" if len(self.xs) > 1 else experiment.unit
        heads = 1 if len(self.xs) <= _SIDE_BY_SIDE else 2
        if any(len(runs) > 1 for runs in self.values.runs.values()):
            caption += "; mean over the seeds (least to largest)"
        if any(of_entry(experiment, entry, self.values) for entry in self.entries.values()):
            caption += f"; as good: no more than {experiment.slack:g} apart"
        return Table(caption, rows[0], rows[1:], heads)

    def _side_by_side(self) -> list[list[Content]]:
        header, columns = [""], []
        for x in self.xs:
            entries = [entry for entry in self.entries.values() if entry.x == x]
            of_x = "" if len(self.xs) == 1 else f"{_text(x)}: "
            kinds = [("thesis", self._thesis), ("ours", self._ours), ("verdict", self._verdict)]
            if all(entry.published is None for entry in entries):
                kinds = kinds[1:2]
            elif self.measured.experiment.slack is None:
                kinds = kinds[:2]
            header += [of_x + name for name, _ in kinds]
            columns += [(x, write) for _, write in kinds]
        rows = [[series, *(self._at(series, x, write) for x, write in columns)] for series in self.series]
        return [header, *rows]

    def _below_each_other(self) -> list[list[Content]]:
        rows: list[list[Content]] = [["", "", *map(_text, self.xs)]]
        for series in self.series:
            entries = [self.entries[series, x] for x in self.xs if (series, x) in self.entries]
            lines = []
            if any(entry.published is not None for entry in entries):
                lines.append(("thesis", self._thesis))
            if any(entry.cell is not None for entry in entries):
                lines.append(("ours", self._ours))
            if any(of_entry(self.measured.experiment, entry, self.values) for entry in entries):
                lines.append(("verdict", self._verdict))
            for number, (name, write) in enumerate(lines):
                if name == "thesis" and len(lines) == 1:
                    name = "published only"
                cells = [self._at(series, x, write) for x in self.xs]
                rows.append([series if number == 0 else "", name, *cells])
        return rows

    def _at(self, series: str, x: str | float, write) -> Content:
        entry = self.entries.get((series, x))
        return "" if entry is None else write(entry)

    def _number(self, entry: Entry, kind: str, value: float) -> Number:
        name = f"{self.measured.label}/{entry.series}/{entry.x}/{kind}"
        return Number(float(value), shown(value, self.decimals), name)

    def _thesis(self, entry: Entry) -> Content:
        return _NONE if entry.published is None else self._number(entry, "published", entry.published)

    def _ours(self, entry: Entry) -> Content:
        runs = self.values.runs.get((entry.series, entry.x))
        if not runs:
            if entry.cell is None:
                return Quiet("published only") if entry.published is not None else _NONE
            return Quiet(self.missing.get((entry.series, entry.x), "not measured"))
        mean = self._number(entry, "ours", fmean(runs))
        if len(runs) == 1:
            return mean
        least, largest = (self._number(entry, *pair) for pair in (("least", min(runs)), ("largest", max(runs))))
        return (mean, " (", least, " to ", largest, ")")

    def _verdict(self, entry: Entry) -> Content:
        word = of_entry(self.measured.experiment, entry, self.values)
        return worded(word) if word else ""


def _text(x: str | float) -> str:
    return x if isinstance(x, str) else f"{x:,.10g}"
