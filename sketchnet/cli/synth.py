"""`sketchnet synth`: the dissertation's synthetic data, written to shards."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from sketchnet.cli.printing import print_note


def synth(
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="Folder to write; it gets train/ and test/.")],
    rows: Annotated[int, typer.Option("--rows", "-n", help="Examples in all; 80 % go to train/.")] = 1_250_000,
    columns: Annotated[int, typer.Option("--columns", "-d", help="Features.")] = 1_000_000,
    density: Annotated[float, typer.Option(help="Fraction of entries that are not zero.")] = 1e-5,
    significant: Annotated[float, typer.Option(help="Fraction of features that separate the classes.")] = 0.2,
    seed: Annotated[int, typer.Option(help="The same seed gives the same data.")] = 0,
    overwrite: Annotated[bool, typer.Option(help="Replace OUTPUT.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make two-class data with few significant features. Run it again after an interruption: it goes on.

    Example: sketchnet synth synthetic --density 3e-5 --seed 1
    """
    from sketchnet.cli.progress import progress_rows
    from sketchnet.data.ingestion import check_folder, ingest
    from sketchnet.data.sources import SyntheticSource
    from sketchnet.data.synthetic import Synthetic
    from sketchnet.storage import make_folder

    start = time.perf_counter()
    data = Synthetic(rows, columns, density, significant, seed)
    summary = {}
    for part in ("train", "test"):  # before the first is made
        check_folder(output / part)
    for part in ("train", "test"):
        make_folder(output)
        with progress_rows(f"making {output / part}") as progress:
            made = ingest(
                SyntheticSource(data, part), output / part, n_columns=columns, overwrite=overwrite, progress=progress
            )
        summary[part] = {name: made[name] for name in ("rows", "columns", "entries", "shards")}
    seconds = time.perf_counter() - start
    if as_json:
        print_note({"output": str(output), "seconds": seconds, **summary})
        return
    for part, made in summary.items():
        print_note(f"{output / part}: {made['rows']:,} x {made['columns']:,}, {made['entries']:,} non-zeros")
    print_note(f"in {seconds:.1f} s")
