"""The page of a results file: every label of the dissertation beside its published numbers."""

from __future__ import annotations

from pathlib import Path

from reproduction.experiments.experiment import SCALES, Experiment
from reproduction.experiments.results import Results
from reproduction.experiments.verdict import CONFIRMED, DENIED, OF_OURS, OPEN, count_verdicts
from reproduction.report.label_section import label_section
from reproduction.report.measured import (
    Measured,
    count_measured,
    days_of,
    find_scale,
    machines,
    seconds_of,
    worded,
)
from sketchnet.errors import InputError
from sketchnet.report import (
    Block,
    Code,
    Command,
    Content,
    Facts,
    Link,
    Number,
    Page,
    Quiet,
    Section,
    Table,
    Text,
    Tiles,
    time_shown,
)

VALUES = ("as good", "better", "worse")
CLAIMS = (CONFIRMED, DENIED, OPEN)
_FOLDER = "reproduced"  # if the file lies in the working folder, which has no name here


def reproduction_page(path: Path, experiments: list[Experiment], scale: str | None = None) -> tuple[Page, dict]:
    """(page, its summary). Without a scale, each label is shown at the largest that was run."""
    results = Results(path)
    if not len(results):
        raise InputError(f"{path} has no results: it is no file of JSON lines that `python -m reproduction` wrote")
    every = [find_scale(experiment, results, scale) for experiment in experiments]
    if scale is not None and not any(measured.records for measured in every):
        known = [name for name in SCALES if any(results.of(experiment, name) for experiment in experiments)]
        raise InputError(
            f"{path} has no results at scale {scale}; it has {', '.join(known) or 'none that a label asks for'}"
        )
    folder = path.parent.name or _FOLDER
    counts = {measured.label: count_verdicts(measured.experiment, measured.scale, results) for measured in every}
    total = {word: sum(count[word] for count in counts.values()) for word in (*VALUES, *CLAIMS, *OF_OURS.values())}
    # Labels share measurements.
    records = list({id(record): record for measured in every for record in measured.records}.values())
    summary = {
        "labels": len(every),
        "labels measured": sum(bool(measured.values.runs) for measured in every),
        "values": {word: total[word] for word in VALUES},
        "claims": {word: total[word] for word in CLAIMS},
        "claims of ours": {word: total[OF_OURS[word]] for word in CLAIMS},
        "measurements": count_measured(records),
        "seconds": seconds_of(records),
    }
    opening = Section("summary", "Summary", _summary(summary, every, records, path, folder))
    contents = Section("contents", "Contents", [_contents(every, counts)])
    about = (
        "Every table and figure of P. I. Wójcik's dissertation “Random Projection in Deep Neural Networks” (2018), "
        "measured again with sketchnet, beside its published numbers and claims."
    )
    sections = [opening, contents, *(label_section(measured, folder) for measured in every)]
    return Page("Random projections in deep networks, reproduced", about, sections), summary


def _summary(summary: dict, every: list[Measured], records: list[dict], path: Path, folder: str) -> list[Block]:
    scales = list(dict.fromkeys(measured.scale for measured in every if measured.records))
    values = [
        (_count(n, f"summary/{word}"), _of_values(word), worded(word).tone) for word, n in summary["values"].items()
    ]
    claims, ours = (
        [(_count(n, f"summary/{place}{word}"), word, worded(word).tone) for word, n in summary[whose].items()]
        for whose, place in (("claims", ""), ("claims of ours", "of ours "))
    )
    seconds = Number(summary["seconds"], time_shown(summary["seconds"]), "summary/seconds")
    measured = _count(summary["measurements"], "summary/measurements")
    rows: list[tuple[str, Content]] = [
        ("Scale", ", ".join(scales) or "none"),
        ("Measured", (measured, " times, in ", seconds, f" altogether; {days_of(records)}")),
        *machines(records),
    ]
    commands = [f"python -m reproduction all --scale {scale} --out {folder}" for scale in scales]
    commands.append(f"python -m reproduction report {folder}/{path.name} --out report.html")
    slack = (
        "A value is as good as the thesis's if the two differ by no more than the slack that the table names. Figures "
        "survive only as what the text says of them, so those claims are tested instead."
    )
    tiles = [Tiles("Values that the thesis prints", values), Tiles("Claims that the thesis makes", claims)]
    if any(summary["claims of ours"].values()):
        tiles.append(Tiles("Claims that we make beside it", ours))
    return [*tiles, Text(slack), Command("\n".join(commands)), Facts(rows)]


def _count(n: int, name: str) -> Number:
    return Number(float(n), f"{n:,}", name)


def _of_values(word: str) -> str:
    return {"as good": "as good as published", "better": "better than published"}.get(word, "worse than published")


def _contents(every: list[Measured], counts: dict[str, dict[str, int]]) -> Table:
    header = ["label and title", "scale", *VALUES, *CLAIMS]
    rows: list[list[Content]] = []
    for measured in every:
        label = measured.label
        found = [_count(n, f"{label}/{word}") if (n := counts[label][word]) else "" for word in (*VALUES, *CLAIMS)]
        name = (Link(label, label), " ", Quiet(measured.experiment.title))
        rows.append([name, Code(measured.scale) if measured.records else "", *found])
    return Table(
        "Labels in the order of the dissertation, with the number of its values and claims by verdict", header, rows
    )
