"""`sketchnet ingest`: files of any kind to a data set of mapped shards."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from sketchnet.cli.inputs import InputOptions, takes_input_options
from sketchnet.cli.printing import print_note
from sketchnet.errors import InputError


@takes_input_options
def ingest(
    options: InputOptions,
    paths: Annotated[list[Path], typer.Argument(metavar="INPUT... OUTPUT", help="Files, then a folder to write.")],
    like: Annotated[
        Path | None, typer.Option(help="A data set that this one must fit: its base, classes, hashes, categories.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the hash.")] = 0,
    memory: Annotated[str, typer.Option(help="What may be used, the program itself aside.")] = "400MB",
    overwrite: Annotated[bool, typer.Option(help="Replace OUTPUT, or forget an unfinished run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Turn files into a data set on disk. Run it again after an interruption: it goes on where it stopped.

    \b
    Examples:
      sketchnet ingest day0.svm.gz day1.svm.gz clicks
      sketchnet ingest urls.tsv urls --text --header --text-column 4 --label-column 2
      sketchnet ingest train.csv train --label income
      sketchnet ingest test.csv test --like train
    """
    from sketchnet.cli.progress import progress_rows
    from sketchnet.cli.training_data import say_left_out
    from sketchnet.data.ingestion import ingest as run
    from sketchnet.data.shards import read_description

    if len(paths) < 2:
        raise InputError("ingest takes at least one INPUT and an OUTPUT folder")
    *inputs, output = paths
    known = {} if like is None else read_description(like / "dataset.json")
    if like is not None:
        _check_kind(options.kind(inputs, known), inputs, like, known)
    source, job = options.source(inputs, memory, seed, known, output.absolute().parent)
    start = time.perf_counter()
    with progress_rows(f"reading {inputs[0].name}{' ...' if len(inputs) > 1 else ''}") as progress:
        made = run(source, output, **job, overwrite=overwrite, progress=progress)
    seconds = time.perf_counter() - start
    say_left_out({**made, "skipped_lines": 0}, known, inputs[0])  # lines are told below
    if as_json:
        names = ("rows", "columns", "entries", "shards", "skipped_lines", "classes")
        print_note({"output": str(output), "seconds": seconds} | {n: made[n] for n in names if n in made})
        return
    skipped = f", {made['skipped_lines']:,} malformed lines left out" if made.get("skipped_lines") else ""
    print_note(
        f"{output}: {made['rows']:,} x {made['columns']:,}, {made['entries']:,} non-zeros in {made['shards']} shards"
        f"{skipped}, in {seconds:.1f} s"
    )


def _check_kind(kind: str, inputs: list[Path], like: Path, known: dict) -> None:
    """Ids can be like ids, strings like strings and tables like tables."""
    from sketchnet.data.parquet import is_sparse

    wanted = "text" if known.get("hasher") else "table" if known.get("encoder") else "ids"
    if kind in ("svmlight", "npz") or (kind == "table" and is_sparse(inputs[0])):
        kind = "ids"
    if kind != wanted:
        raise InputError(f"{inputs[0]} is read as {kind} and cannot be like {like}, which was read as {wanted}")
