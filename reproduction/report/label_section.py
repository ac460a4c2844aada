"""A label of the dissertation as a section: numbers, drawings, claims, and how all of it was measured."""

from __future__ import annotations

from reproduction.experiments.runner import missing_cells
from reproduction.experiments.verdict import of_claim
from reproduction.report.label_figures import label_figures
from reproduction.report.label_table import label_table
from reproduction.report.measured import Measured, count_measured, days_of, machines, seconds_of, worded
from sketchnet.report import Block, Claims, Command, Content, Facts, Number, Quiet, Section, Text, time_shown


def label_section(measured: Measured, folder: str) -> Section:
    """`folder` is where `python -m reproduction` kept the results."""
    experiment, records, values = measured.experiment, measured.records, measured.values
    blocks: list[Block] = []
    if not records:
        blocks.append(Text(Quiet("Nothing was measured for this label yet.")))
    if not experiment.figure and measured.entries:
        blocks.append(label_table(measured))
    blocks += label_figures(measured)
    for title, ours in (("What the thesis says", False), ("What we say", True)):
        claims = [(claim.text, worded(of_claim(claim, values))) for claim in experiment.claims if claim.ours == ours]
        if claims:
            blocks.append(Claims(title, claims))
    if experiment.note:
        blocks.append(Text(experiment.note))
    blocks += _missing(measured)
    blocks.append(Command(command(measured, folder)))
    if records:
        blocks.append(Facts(_facts(measured, records)))
    return Section(measured.label, experiment.title, blocks, measured.label)


def command(measured: Measured, folder: str) -> str:
    """More seeds than the label asks for are told."""
    seeds = {record["seed"] for record in measured.records} or {0}
    first, number = min(seeds), max(seeds) - min(seeds) + 1
    more = f" --seeds {number}" if number > measured.experiment.seeds[measured.scale] else ""
    more += f" --seed {first}" if first else ""
    return f"python -m reproduction {measured.label} --scale {measured.scale}{more} --out {folder}"


def _missing(measured: Measured) -> list[Block]:
    rows = []
    for (kind, reason), entries in measured.missing.items():
        cells = "; ".join(dict.fromkeys(f"{entry.series}, {entry.x}" for entry in entries))
        rows.append(("Failed" if kind == "failed" else "Not measured", (f"{reason} ", Quiet(f"({cells})"))))
    return [Facts(rows)] if rows else []


def _facts(measured: Measured, records: list[dict]) -> list[tuple[str, Content]]:
    seconds = seconds_of(records)
    seeds = sorted({record["seed"] for record in records})
    done, left = count_measured(records), len(missing_cells([measured.experiment], measured.scale, measured.results))
    took = Number(seconds, time_shown(seconds), f"{measured.label}/seconds")
    part = f" of {done + left}" if left else ""
    whose = f" for {done}{part} measurements at scale {measured.scale}, seed{'s' if len(seeds) > 1 else ''} "
    return [
        ("Measured", (took, whose + ", ".join(map(str, seeds)) + f"; {days_of(records)}")),
        *machines(records),
    ]
