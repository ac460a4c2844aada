"""`sketchnet explain`: which columns a model's answers come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sketchnet.cli.inputs import InputOptions, takes_input_options
from sketchnet.cli.printing import print_json, print_line
from sketchnet.errors import InputError

_NAMED_BY = 3  # rows in which the n-grams of a hashed column are looked for


@takes_input_options
def explain(
    options: InputOptions,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that train wrote.")],
    input: Annotated[Path, typer.Argument(metavar="INPUT", help="A file, or a folder that ingest wrote.")],
    row: Annotated[int | None, typer.Option(min=0, help="Explain this row alone; the first is 0.")] = None,
    rows: Annotated[int, typer.Option(min=1, help="How many rows to look at, from the first on.")] = 1000,
    top: Annotated[int, typer.Option(min=1, help="How many columns to show.")] = 20,
    output: Annotated[
        str | None, typer.Option(metavar="CLASS", help="What speaks for this class. [default: the predicted one]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show the columns that weigh most in a model's answers, or in its answer for one row.

    A contribution is the gradient of the output with respect to a value, times the value; it is positive where the
    column speaks for the class. Over several rows, columns are ordered by their mean absolute contribution.

    \b
    Examples:
      sketchnet explain clicks-model clicks-test.svm.gz --top 50
      sketchnet explain urls-model suspects.txt --row 3 --output malicious
    """
    from sketchnet.cli.model_rows import ModelRows, answering, open_predictor
    from sketchnet.evaluation.attribution import contributions, top_columns
    from sketchnet.evaluation.metrics import check_outputs

    loaded = open_predictor(model, "there is no answer to explain; try `sketchnet encode`")
    chosen = _class_of(loaded, output)
    if str(input) == "-":
        raise InputError("explain reads its rows twice, so they cannot come from standard input; give a file")
    options.check_used(input)
    source = ModelRows(loaded, input, options)
    first, n = (0, rows) if row is None else (row, 1)
    batch = rows_span(source, first, n, input)
    with answering(model, input):
        check_outputs(loaded.outputs(batch), first)
    found = summed(contributions(loaded, batch, chosen))
    columns, importance = top_columns(found, top)
    names = names_of(loaded, source, found, columns, first)
    if row is None:
        _show_rows(found.shape[0], columns, names, importance, output, as_json)
    else:
        _show_row(loaded, row, batch, columns, names, found, output, as_json)


def _class_of(model, name: str | None):
    """The class of that name."""
    if name is None:
        return None
    names = model.class_names
    if name not in names:
        known = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise InputError(f"--output {name} is not possible; classes are {known or 'not what this model predicts'}")
    return model.classes[names.index(name)]


def rows_span(source, first: int, n: int, path: Path):
    """Rows first to first + n of a source, or as many of them as there are."""
    from sketchnet.data.gather import concatenate

    pieces, done = [], 0
    for batch in source:
        span = slice(max(0, first - done), min(batch.n_rows, first + n - done))
        if span.start < span.stop:
            pieces.append(batch.rows(span))
        done += batch.n_rows
        if done >= first + n:
            break
    if not pieces:
        asked = f"; --row {first} is beyond them" if first else ""
        raise InputError(f"{path} has {done or 'no'} rows{asked}")
    return concatenate(pieces, max(piece.n_columns for piece in pieces))


def names_of(model, source, found, columns, first: int) -> list[str]:
    """Names of the columns; of hashed n-grams, as they stand in some of the rows that have the column."""
    import numpy as np

    from sketchnet.data.column_names import column_names

    strings = []
    if model.data.get("hasher") and source.source is not None:
        entries = found.tocoo()
        wanted = set()
        for column in columns:
            wanted |= set((first + entries.row[np.flatnonzero(entries.col == column)[:_NAMED_BY]]).tolist())
        for number, string in enumerate(source.source.strings()):
            if number in wanted:
                strings.append(string)
            if len(strings) == len(wanted):
                break
    return column_names(columns, model.data, source.base, strings)


def _show_rows(n: int, columns, names, importance, output: str | None, as_json: bool) -> None:
    shown = zip(columns.tolist(), names, importance.tolist())
    if as_json:
        listed = [{"column": column, "name": name, "importance": x} for column, name, x in shown]
        print_json({"rows": n, "output": output, "columns": listed})
        return
    print_line(f"mean absolute contribution to {output or 'the predicted output'} in {n:,} rows")
    for _, name, x in shown:
        print_line(f"{x:12.5g}  {name}")


def _show_row(model, row: int, batch, columns, names, found, output: str | None, as_json: bool) -> None:
    import numpy as np

    from sketchnet.cli.model_rows import json_classes

    outputs = model.outputs(batch)
    both = (summed(batch.scipy()), found)
    value_of, part_of = (dict(zip(matrix.indices.tolist(), matrix.data.tolist())) for matrix in both)
    shown = [(column, name, value_of[column], part_of[column]) for column, name in zip(columns.tolist(), names)]
    if model.task.kind == "regression":
        label, answer = float(model.task.decide(outputs)[0]), f"{model.task.decide(outputs)[0]:.9g}"
    else:
        probabilities = model.task.probabilities(outputs)[0]
        best = int(np.argmax(probabilities)) if model.task.kind == "multilabel" else int(model.task.numbers(outputs)[0])
        label = json_classes(model)[best]
        answer = f"{label} with probability {probabilities[best]:.4g}"
    if as_json:
        listed = [{"column": c, "name": name, "value": x, "contribution": part} for c, name, x, part in shown]
        print_json({"row": row, "label": label, "output": output, "columns": listed})
        return
    print_line(f"row {row}: {answer}; contributions to {output or 'that'}, and values")
    for _, name, x, part in shown:
        print_line(f"{part:+12.5g}  {x:12.5g}  {name}")


def summed(rows):
    """A copy in which each row names a column once."""
    rows = rows.copy()
    rows.sum_duplicates()
    return rows
