"""The command line, from a clone: `python -m reproduction LABEL...` measures, `python -m reproduction report` shows."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from sketchnet.cli import check_output, print_json, print_line, print_note, progress_steps, run
from sketchnet.errors import InputError, SketchnetError

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Measure the dissertation's tables and figures, and show them beside its numbers.",
)  # fmt: skip
_VERBS = ("measure", "report")


def main() -> None:
    """Run `python -m reproduction`; labels without a verb are to be measured."""
    words = sys.argv[1:]
    if words and words[0] not in (*_VERBS, "--help"):
        sys.argv.insert(1, "measure")
    run(app, "python -m reproduction", resumable=("measure",))


@app.command(short_help="Measure tables and figures; the verb may be left out.")
def measure(
    labels: Annotated[list[str] | None, typer.Argument(metavar="[LABEL...]", help="Labels; all: every one.")] = None,
    scale: Annotated[str, typer.Option(help="smoke: seconds; small: minutes on two cores; full: for a GPU.")] = "small",
    out: Annotated[Path, typer.Option(help="Folder of the results; a further run does what is missing.")] = Path(
        "reproduced"
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

    Example: python -m reproduction tab:dr_accuracy_comparison --scale small
    """
    from reproduction.experiments import LABELS, SCALES, find_experiment
    from reproduction.experiments.runner import RESULTS, missing_cells, reproduce
    from reproduction.experiments.verdict import count_verdicts
    from sketchnet.checks import check_choice

    check_choice("scale", scale, SCALES)
    if as_list:
        titles = {label: find_experiment(label).title for label in LABELS}
        if as_json:
            print_json(titles)
            return
        for label, title in titles.items():
            print_line(f"{label:<32}{title}")
        return
    if not labels:
        raise InputError("no label is given; name some, or all (python -m reproduction --list shows them)")
    chosen = [find_experiment(label) for label in (LABELS if labels == ["all"] else labels)]
    begun = time.perf_counter()
    with progress_steps(f"measuring at scale {scale}") as progress:
        results = reproduce(
            chosen, scale, out,
            device=device, search=search, seeds=seeds, first_seed=seed, jobs=jobs, progress=progress,
        )  # fmt: skip
    failed = len(results.failures)  # what failed before was tried again
    left = len(missing_cells(chosen, scale, results, search, seeds, seed)) - failed
    summary = {e.label: count_verdicts(e, scale, results) for e in chosen}
    found = {"results": str(out / RESULTS), "seconds": round(time.perf_counter() - begun, 1)}
    found |= {"missing": left, "failed": failed}
    if as_json:
        print_note({**found, "labels": summary})
    else:
        for label, counts in summary.items():
            print_note(f"{label:<32}" + ", ".join(f"{number} {what}" for what, number in counts.items() if number))
        if left:
            print_note(f"{left} measurements could not be made here; the report says why")
        print_note(f"in {found['seconds']} s; a page of it: python -m reproduction report {found['results']}")
    if failed:
        raise SketchnetError(f"{failed} measurements failed; the first: {results.failures[0]}")


@app.command(short_help="Write a page of results.")
def report(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="results.jsonl of a run.")],
    out: Annotated[Path, typer.Option(metavar="FILE.html", help="Page to write.")] = Path("report.html"),
    markdown: Annotated[Path | None, typer.Option(metavar="FILE.md", help="The same, as Markdown.")] = None,
    scale: Annotated[
        str | None, typer.Option(help="smoke, small or full. [default: the largest that a label was run at]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write a page of results: each table and figure of the dissertation beside its published numbers.

    Example: python -m reproduction report reproduced/results.jsonl --out report.html --markdown report.md
    """
    from reproduction.experiments import LABELS, SCALES, find_experiment
    from reproduction.report.page import reproduction_page
    from sketchnet.checks import check_choice
    from sketchnet.report import write_page

    check_output("--out", out, ".html")
    if markdown is not None:
        check_output("--markdown", markdown, ".md")
    if scale is not None:
        check_choice("scale", scale, SCALES)
    if not results.is_file():
        raise InputError(f"{results} is not a file; give the results.jsonl of a run of python -m reproduction")
    page, summary = reproduction_page(results, [find_experiment(label) for label in LABELS], scale)
    write_page(page, out, markdown)
    if as_json:
        print_note({"out": str(out), **summary})
        return
    titles = {"values": "published values", "claims": "published claims", "claims of ours": "claims of ours"}
    counts = {title: ", ".join(f"{n} {word}" for word, n in summary[part].items()) for part, title in titles.items()}
    print_note(f"{out}: " + "; ".join(f"{title}: {count}" for title, count in counts.items()))
