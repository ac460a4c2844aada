"""`sketchnet reproduce`: the dissertation's tables and figures, measured here."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from sketchnet.errors import InputError, SketchnetError


def reproduce(
    labels: Annotated[list[str] | None, typer.Argument(metavar="[LABEL...]", help="Labels; all: every one.")] = None,
    scale: Annotated[str, typer.Option(help="smoke: seconds; small: minutes on two cores; full: for a GPU.")] = "small",
    out: Annotated[Path, typer.Option(help="Folder of the results; a further run does what is missing.")] = Path(
        "reproduction"
    ),
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    search: Annotated[int, typer.Option(min=0, help="Choose networks' settings by so many trials (Optuna).")] = 0,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Of each network. [default: 1; 3 to 10 where runs are ranked]")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**31, help="The first of the seeds; others follow it, one by one.")
    ] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that measure at once.")] = 1,
    as_list: Annotated[bool, typer.Option("--list", help="List the labels, and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure tables and figures of the dissertation, beside its numbers. Interrupted, the same command goes on.

    Data sets come from $SKETCHNET_DATA; what is not there is noted, and the rest is measured. What fails is noted too,
    and makes the exit code 1.

    Example: sketchnet reproduce tab:dr_accuracy_comparison --scale small && sketchnet report reproduction/results.jsonl
    """
    from sketchnet.checks import check_choice
    from sketchnet.cli.lines import one_line
    from sketchnet.cli.progress import progress_steps
    from sketchnet.experiments import LABELS, SCALES, find_experiment
    from sketchnet.experiments.runner import RESULTS, missing_cells
    from sketchnet.experiments.runner import reproduce as measure
    from sketchnet.experiments.verdict import count_verdicts

    check_choice("scale", scale, SCALES)
    if as_list:
        titles = {label: find_experiment(label).title for label in LABELS}
        print(json.dumps(titles) if as_json else "\n".join(f"{label:<32}{title}" for label, title in titles.items()))
        return
    if not labels:
        raise InputError("no label is given; name some, or all (sketchnet reproduce --list shows them)")
    chosen = [find_experiment(label) for label in (LABELS if labels == ["all"] else labels)]
    begun = time.perf_counter()
    with progress_steps(f"measuring at scale {scale}") as progress:
        how: dict = {"device": device, "search": search, "seeds": seeds, "first_seed": seed, "jobs": jobs}
        results = measure(chosen, scale, out, **how, progress=progress)
    failed = len(results.failures)  # what failed before was tried again
    left = len(missing_cells(chosen, scale, results, search, seeds, seed)) - failed
    summary = {e.label: count_verdicts(e, scale, results) for e in chosen}
    found = {"results": str(out / RESULTS), "seconds": round(time.perf_counter() - begun, 1)}
    found |= {"missing": left, "failed": failed}
    if as_json:
        print(json.dumps({**found, "labels": summary}))
    else:
        for label, counts in summary.items():
            print(f"{label:<32}" + ", ".join(f"{number} {what}" for what, number in counts.items() if number))
        if left:
            print(f"{left} measurements could not be made here; the report says why")
        print(f"in {found['seconds']} s; a page of it: sketchnet report {found['results']} --out report.html")
    if failed:
        raise SketchnetError(f"{failed} measurements failed; the first: {one_line(results.failures[0])}")
