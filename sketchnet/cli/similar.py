"""`sketchnet similar`: the rows whose codes are nearest to those of others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sketchnet.cli.inputs import InputOptions, takes_input_options
from sketchnet.cli.printing import json_text
from sketchnet.errors import InputError, MissingFile


@takes_input_options
def similar(
    options: InputOptions,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that train --task autoencoder wrote.")],
    input: Annotated[
        Path, typer.Argument(metavar="INPUT", help="Rows to find: a file, a folder that ingest wrote, or codes .npy.")
    ],
    rows: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Queries: rows of INPUT, such as 3,17; the first is 0.")
    ] = None,
    query: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Queries: a file, a folder that ingest wrote, or - .")
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="How many to find for each, if there are so many.")] = 10,
    memory: Annotated[str, typer.Option(help="For ranking rows.")] = "1GiB",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Find the rows that are most like others, by the cosine of their codes.

    A line has, set apart by tabs: the query's number, the rank (from 1), the number of the row found, the similarity.
    Rows are numbered from 0. A query that is a row of INPUT does not find itself. INPUT may be what encode wrote
    (without --bits), so that it is encoded but once. Options that say how files are read hold for INPUT and --query.

    \b
    Examples:
      sketchnet similar news-model news.svm.gz --rows 3,17 -n 5
      sketchnet similar news-model codes.npy --query new.svm --json
    """
    import numpy as np

    from sketchnet.cli.lines import lines_to
    from sketchnet.cli.model_rows import answering, open_autoencoder
    from sketchnet.cli.progress import progress_bar
    from sketchnet.evaluation.retrieval import nearest

    if (rows is None) == (query is None):
        raise InputError("similar takes its queries from --rows or from --query FILE; give one of them")
    if str(input) == "-":
        raise InputError("INPUT cannot come from standard input; --query can")
    numbers = None if rows is None else _numbers(rows)
    files = [path for path in (input, query) if path is not None and path.suffix != ".npy"]
    options.check_used(*files)
    loaded = open_autoencoder(model)
    with answering(model, input):
        codes = _codes(loaded, input, options)
    if len(codes) == 0:
        raise InputError(f"{input} has no rows to find")
    if numbers is None:
        assert query is not None
        with answering(model, query):
            asked = _codes(loaded, query, options)
        numbers, own = range(len(asked)), False
    else:
        beyond = [number for number in numbers if number >= len(codes)]
        if beyond:
            raise InputError(f"{input} has {len(codes)} rows; --rows {beyond[0]} is beyond them")
        asked, own = codes[np.array(numbers)], True
    n = min(n + own, len(codes))
    with progress_bar(f"ranking {input.name}") as progress:
        found, similarities = nearest(codes, asked, n, memory=memory, progress=progress)
    with lines_to(None) as write:
        for number, others, cosines in zip(numbers, found.tolist(), similarities.tolist()):
            pairs = [(other, x) for other, x in zip(others, cosines) if not (own and other == number)]
            for rank, (other, x) in enumerate(pairs[: n - own], start=1):
                write(_line(number, rank, other, x, as_json))


def _line(query: int, rank: int, row: int, similarity: float, as_json: bool) -> str:
    if as_json:
        found = {"query": query, "rank": rank, "row": row, "similarity": float(f"{similarity:.7g}")}
        return json_text(found) + "\n"
    return f"{query}\t{rank}\t{row}\t{similarity:.7g}\n"


def _numbers(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"--rows {text} is not possible; write numbers of rows, such as 3,17")
    return [int(part) for part in parts]


def _codes(model, path: Path, options: InputOptions):
    """Codes of rows, or those that encode wrote."""
    import numpy as np

    from sketchnet.cli.model_rows import ModelRows
    from sketchnet.cli.outputs import outputs_of

    width = model.network.config.n_codes
    if path.suffix == ".npy":
        return _written(path, width)
    codes = outputs_of(model, ModelRows(model, path, options), f"encoding {path.name}", np.float32)
    return np.concatenate([np.empty((0, width), np.float32), *codes])


def _written(path: Path, width: int):
    from sketchnet.data.arrays import map_npy

    if not path.exists():
        raise MissingFile(f"there is no file {path}")
    codes = map_npy(path, 2)
    if codes.shape[1] != width or codes.dtype != "float32":
        raise InputError(f"{path} is {codes.dtype} {codes.shape}; codes of this model are float32 (rows, {width})")
    return codes
