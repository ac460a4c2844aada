"""`sketchnet project`: a file or a data set on disk to its random projection, in bounded memory."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from sketchnet.cli.inputs import InputOptions, takes_input_options
from sketchnet.cli.lines import check_output
from sketchnet.cli.printing import print_note
from sketchnet.errors import BadRows, InputError

_ROWS = ("indptr", "indices", "values")  # the arrays of a shard that its projection depends on


@takes_input_options
def project(
    options: InputOptions,
    input: Annotated[Path, typer.Argument(metavar="INPUT", help="A file, or a folder that `sketchnet ingest` wrote.")],
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help=".npy file to write.")],
    scheme: Annotated[
        str, typer.Option(help="count_sketch, li, srht, srht_sparse, achlioptas or gaussian.")
    ] = "count_sketch",
    components: Annotated[int, typer.Option("--components", "-k", help="Columns of the result.")] = 1000,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Another parameter of the scheme, such as s=100.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same projection everywhere.")] = 0,
    memory: Annotated[str, typer.Option(help="What may be used beyond mapped files.")] = "512MiB",
    dtype: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda; auto takes a GPU where that pays.")] = "auto",
    overwrite: Annotated[
        bool, typer.Option(help="Replace OUTPUT, and another job's unfinished run; this job's goes on.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Project sparse rows to few columns. Run it again after an interruption: it goes on where it stopped.

    A scipy .npz file is read in place; other files become a data set beside OUTPUT first, which goes in the end.

    \b
    Examples:
      sketchnet project clicks.npz clicks-1000.npy --scheme gaussian -k 1000 --memory 2GiB
      sketchnet project day0.svm.gz day0.npy --columns 3231961
    """
    # Here and not above, so that `sketchnet --help` is instant.
    from sketchnet.cli.progress import progress_bar
    from sketchnet.projection import SRHT, make_scheme
    from sketchnet.projection.device_choice import gpu_for
    from sketchnet.projection.on_disk import check_free, project_to_file
    from sketchnet.storage import workspace

    if dtype not in ("float32", "float64"):
        raise InputError(f"--dtype {dtype} is not possible; it is float32 or float64")
    check_output("OUTPUT", output, ".npy")
    law = dict(_parse_option(text) for text in option or [])
    # What is wrong with these should not wait until all rows are read.
    make_scheme(scheme, components, **({"density": 1.0} if scheme == "srht_sparse" else {}) | law).sample(1, seed)
    gpu_for(device, [], components, dtype)
    start = time.perf_counter()
    with workspace(output) as work:
        check_free(output, overwrite)
        with _rows(input, work, options, memory, overwrite) as (X, checksums):
            if scheme == "srht_sparse":
                law.setdefault("density", SRHT.thesis_density(X.n_rows, X.n_columns))
            operator = make_scheme(scheme, components, **law).sample(X.n_columns, seed)
            job = {"dtype": dtype, "memory": memory, "source": checksums, "overwrite": overwrite, "device": device}
            try:
                with progress_bar(f"projecting {input.name}") as progress:
                    result = project_to_file(operator, X, output, **job, progress=progress)
            except BadRows as error:
                raise InputError(f"{input}: {error}") from None
        seconds = time.perf_counter() - start
        # Told while the workspace still says what was done: cut off before, the next run tells it.
        n, k = result.shape
        facts = {"output": str(output), "rows": n, "columns": k, "seconds": seconds, **operator.config()}
        text = f"{n:,} x {X.n_columns:,} -> {n:,} x {k:,} by {scheme}, seed {seed}, in {seconds:.1f} s"
        print_note(facts if as_json else f"{output}: {text}")


@contextmanager
def _rows(input: Path, work: Path, options: InputOptions, memory: str, overwrite: bool) -> Iterator[tuple]:
    """(rows, what tells them from others). Strings and tables are hashed as `ingest` does by default, whatever the seed
    of the projection.
    """
    from sketchnet.cli.training_data import check_features, open_data
    from sketchnet.cli.work_folder import rows_folder
    from sketchnet.data.npz import open_npz
    from sketchnet.data.shard_set import open_shards

    if input.is_dir():
        options.check_used(input)
        X, checksums = open_shards(input), _checksums(input)
        check_features(X, [input])
        yield X, checksums
    elif options.kind([input], {}) == "npz":
        X, checksums = open_npz(input, work)
        if options.columns is not None and options.columns < X.n_columns:
            raise InputError(f"{input} has {X.n_columns:,} columns, more than --columns {options.columns}")
        X = replace(X, n_columns=options.columns or X.n_columns)
        check_features(X, [input])
        yield X, checksums
    else:
        reading = True  # an error of the projection leaves the rows to another try
        with rows_folder(work, False, lambda error: reading and isinstance(error, InputError)) as rows:
            X = open_data([input], rows, options, memory, 0, {}, overwrite)
            check_features(X, [input])
            reading = False
            yield X, _checksums(rows)


def _checksums(folder: Path) -> list[int]:
    from sketchnet.data.shards import read_manifest, shard_folders

    shards = [read_manifest(path)["files"] for path in shard_folders(folder)]
    return [zlib.crc32(repr([files[name]["crc32"] for files in shards]).encode()) for name in _ROWS]


def _parse_option(text: str) -> tuple[str, str | float]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise InputError(f"--option {text} is not possible; write NAME=VALUE, such as s=100")
    try:
        number = float(value)
    except ValueError:
        return name, value
    return name, int(number) if number.is_integer() else number
