"""`sketchnet report`: a trained model as a page to read."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from sketchnet.cli.inputs import InputOptions, takes_input_options
from sketchnet.cli.lines import check_output
from sketchnet.cli.printing import print_note
from sketchnet.errors import InputError

_FEATURES, _FEATURE_ROWS = 30, 1000  # columns that are shown, and the rows that they are found in
_PAIRS = 400  # true and predicted numbers that are drawn
_MOST_QUERIES = 20_000  # rows: ranking takes time by their square
_POINTS = 300  # of a curve of retrieval
_WARM = 64  # rows predicted before the clock starts: kernels are compiled in the first call


@takes_input_options
def report(
    options: InputOptions,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a model.")],
    out: Annotated[Path, typer.Option(metavar="FILE.html", help="Page to write.")] = Path("report.html"),
    markdown: Annotated[Path | None, typer.Option(metavar="FILE.md", help="The same, as Markdown.")] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="INPUT", help="Labelled rows to measure it on, a file or a folder.")
    ] = None,
    memory: Annotated[str, typer.Option(help="For reading files, and for ranking rows.")] = "1GiB",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write a page of a model that needs nothing else: how training went, settings, and with --data what it is worth.

    Example: sketchnet report clicks-model --data clicks-test.svm.gz --out run.html
    """
    from sketchnet.report import write_page

    check_output("--out", out, ".html")
    if markdown is not None:
        check_output("--markdown", markdown, ".md")
    page, summary = _page(model, data, options, memory)
    write_page(page, out, markdown)
    print_note({"out": str(out), **summary} if as_json else f"{out}: a page of the model")


def _page(folder: Path, data: Path | None, options: InputOptions, memory: str):
    from sketchnet.cli.model_rows import answering, open_model
    from sketchnet.report.run import run_page
    from sketchnet.training.checkpoint import WEIGHTS, read_config

    model = open_model(folder)
    if data is None and options != InputOptions():
        raise InputError("options of rows are given, but no rows; give --data FILE")
    size = {
        "parameters": model.n_parameters,
        "bytes": (folder / WEIGHTS).stat().st_size,
    }
    on = None
    if data is not None:
        measure = _of_codes if model.task.kind == "autoencoder" else _of_predictions
        with answering(folder, data):
            on = measure(model, data, options, memory)
    name = folder.resolve().name
    page = run_page(name, read_config(folder), model.history, model.class_names if model.task.classes else [], size, on)
    summary = {"model": name, "task": model.task.kind, **size}
    if on is not None:
        summary |= {"rows": on.rows, "rows_per_second": on.rows / max(on.seconds, 1e-9)}
        summary |= {key: value for key, value in on.metrics.items() if not isinstance(value, list)}
    return page, summary


def _of_predictions(model, path: Path, options: InputOptions, memory: str):
    """What `evaluate` and `explain` say of the rows."""
    from sketchnet.cli.evaluate import targets_of
    from sketchnet.cli.explain import names_of, rows_span, summed
    from sketchnet.cli.model_rows import ModelRows, labelled_rows
    from sketchnet.evaluation.attribution import contributions, top_columns
    from sketchnet.evaluation.metrics import measure
    from sketchnet.report.on_rows import OnRows

    with labelled_rows(model, path, options, memory) as data:
        targets = targets_of(model, data, path)
        outputs, seconds = _timed(model, data, path)
        found = measure(model.task, outputs, targets)
        source = ModelRows(model, path, options)
        parts = summed(contributions(model, rows_span(source, 0, _FEATURE_ROWS, path)))
        columns, importance = top_columns(parts, _FEATURES)
        names = names_of(model, source, parts, columns, 0)
    pairs = []
    if model.task.kind == "regression":
        every = list(zip(*(model.task.decide(numbers).tolist() for numbers in (targets[:, None], outputs))))
        pairs = every[:: max(1, -(-len(every) // _PAIRS))]
    features = list(zip(names, importance.tolist()))
    return OnRows(path.name, len(outputs), seconds, found, features, parts.shape[0], pairs)


def _of_codes(model, path: Path, options: InputOptions, memory: str):
    """What `evaluate --retrieval` says of the rows, if they have labels and are not too many to rank."""
    import numpy as np
    from scipy import sparse

    from sketchnet.cli.model_rows import labelled_rows
    from sketchnet.evaluation.metrics import check_outputs
    from sketchnet.evaluation.retrieval import retrieval
    from sketchnet.report.on_rows import OnRows

    with labelled_rows(model, path, options, memory) as data:
        labels = data.labels
        codes, seconds = _timed(model, data, path)
    check_outputs(codes)
    unlabelled = labels is None or (sparse.issparse(labels) and labels.nnz == 0)
    if unlabelled or len(codes) > _MOST_QUERIES:
        return OnRows(path.name, len(codes), seconds)
    found = retrieval(codes, labels, memory=memory)
    figures = {"retrieval_area": found.area, "mean_average_precision": found.mean_average_precision}
    ranks = np.unique(np.geomspace(1, len(found.recall), _POINTS).round().astype(int)) - 1
    curve = list(zip(found.recall[ranks].tolist(), found.precision[ranks].tolist()))
    return OnRows(path.name, len(codes), seconds, figures, retrieval=curve, queries=found.n_queries)


def _timed(model, data, path: Path):
    """(outputs, seconds)."""
    from sketchnet.cli.progress import progress_bar

    model.outputs(data.rows(slice(0, min(_WARM, data.n_rows))))
    with progress_bar(f"predicting {path.name}") as progress:
        begun = time.perf_counter()
        outputs = model.outputs(data, progress)
    return outputs, time.perf_counter() - begun
