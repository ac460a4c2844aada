"""Files or data sets on disk as the verbs of a model take them."""

from __future__ import annotations

from pathlib import Path

from sketchnet.cli.inputs import InputOptions
from sketchnet.cli.model_rows import check_columns
from sketchnet.cli.printing import tell
from sketchnet.cli.progress import progress_rows
from sketchnet.data.csr import CsrBatch
from sketchnet.data.ingestion import ingest, is_ingested
from sketchnet.data.shard_set import ShardSet, check_rows, open_shards
from sketchnet.errors import BeyondColumns, InputError


def open_data(
    inputs: list[Path],
    work: Path,
    options: InputOptions,
    memory: str,
    seed: int,
    known: dict,
    overwrite: bool = False,
) -> ShardSet:
    """A data set on disk as it is; files are first read into one, in the folder `work`, to fit the `known` one.

    `overwrite`: other rows in that folder are replaced; a run that was cut off goes on all the same.
    """
    folders = [path for path in inputs if path.is_dir()]
    if folders and len(folders) < len(inputs):
        raise InputError(f"{folders[0]} is a folder and others are files; give the ones or the others")
    if folders:
        data = open_shards(*folders)
        check_rows(data, folders)
        return _with_rows(data, inputs)
    source, job = options.source(inputs, memory, seed, known, work.absolute().parent)
    with progress_rows(f"reading {inputs[0].name}{' ...' if len(inputs) > 1 else ''}") as progress:
        overwrite = overwrite and not is_ingested(source, work, **job)
        made = ingest(source, work, **job, overwrite=overwrite, progress=progress)
    say_left_out(made, known, inputs[0])
    return _with_rows(open_shards(work, verify=False), inputs)


def check_features(data: ShardSet | CsrBatch, inputs: list[Path]) -> None:
    """Raise if the rows have nothing to learn from or to project."""
    if data.n_columns == 0:
        raise InputError(f"{inputs[0]} has no features: none of its {data.n_rows:,} rows has an entry")


def say_left_out(made: dict, known: dict, path: Path) -> None:
    """On standard error: how many lines of a data set that was read, and values of categories, are not in its rows."""
    lines, before = made.get("skipped_lines", 0), (known.get("encoder") or {}).get("unknown_", {})
    if lines:
        tell(f"{path}: {lines:,} malformed lines left out")
    for column, n in ((made.get("encoder") or {}).get("unknown_") or {}).items():
        if n > before.get(column, 0):
            what = f"{n - before.get(column, 0):,} values that the training rows do not have, left out"
            tell(f"{path}, column {column!r}: {what}")


def open_beside(path: Path, work: Path, options: InputOptions, memory: str, seed: int, known: dict) -> ShardSet:
    """The same for rows beside the training rows, whose description is `known`: as wide as those, or any id is allowed
    where `known` has no "columns".
    """
    width = known.get("columns")
    try:
        data = open_data([path], work, options, memory, seed, known)
    except BeyondColumns as error:
        way_out = f"read these with --columns {error.needed} or more"
        raise InputError(f"{error}, as in the training rows; {way_out}") from None
    check_columns(path, data.descriptions[0], known, "the training rows")
    if width is not None:
        if data.n_columns > width:
            way_out = f"read these with --columns {data.n_columns} or more"
            raise InputError(f"{path} has {data.n_columns:,} columns, the training rows have {width:,}; {way_out}")
        data.n_columns = width  # the last columns may just not occur in it
    return data


def _with_rows(data: ShardSet, inputs: list[Path]) -> ShardSet:
    if data.n_rows == 0:
        raise InputError(f"{inputs[0]} has no rows")
    return data
