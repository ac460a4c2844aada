"""`sketchnet evaluate`: what a model's predictions are worth on labelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sketchnet.cli.inputs import InputOptions, takes_input_options
from sketchnet.cli.printing import print_json, print_line, print_table
from sketchnet.errors import InputError

_MOST_CLASSES = 20  # of a confusion matrix that a person reads


@takes_input_options
def evaluate(
    options: InputOptions,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that train wrote.")],
    input: Annotated[Path, typer.Argument(metavar="INPUT", help="A file, or a folder that ingest wrote.")],
    by_retrieval: Annotated[
        bool, typer.Option("--retrieval", help="Of an autoencoder: how well its codes find rows with the same labels.")
    ] = False,
    device: Annotated[str, typer.Option(help="Retrieval: where rows are ranked, on auto, cpu or cuda.")] = "auto",
    memory: Annotated[str, typer.Option(help="For reading files, and for ranking rows.")] = "1GiB",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure a model on rows with labels. Curves of the same are in the page that `sketchnet report --data` writes.

    With --retrieval, each row in turn is a query and ranks the others by the cosines of their codes. Rows with one
    label are relevant to each other if it is the same one; those with several, by the share of labels in common.

    \b
    Examples:
      sketchnet evaluate clicks-model clicks-test.svm.gz
      sketchnet evaluate urls-model urls.tsv --text-column 4 --label-column 2 --where 1=test
      sketchnet evaluate news-model news-test.svm --retrieval
    """
    from sketchnet.cli.evaluate_retrieval import evaluate_retrieval
    from sketchnet.cli.model_rows import answering, json_classes, labelled_rows, open_predictor
    from sketchnet.cli.progress import progress_bar
    from sketchnet.evaluation.metrics import measure

    if by_retrieval:
        evaluate_retrieval(model, input, options, device, memory, as_json)
        return
    loaded = open_predictor(model, "try `sketchnet evaluate --retrieval`")
    with labelled_rows(loaded, input, options, memory) as data:
        targets = targets_of(loaded, data, input)
        with progress_bar(f"predicting {input.name}") as progress:
            outputs = loaded.outputs(data, progress)
    with answering(model, input):
        found = measure(loaded.task, outputs, targets)
    if as_json:
        print_json({"rows": len(outputs), "classes": json_classes(loaded), **found})
        return
    figures = {name: value for name, value in found.items() if not isinstance(value, list)}
    print_table([["rows", f"{len(outputs):,}"], *([name.replace("_", " "), f"{x:.5g}"] for name, x in figures.items())])
    if "confusion" in found and len(loaded.class_names) <= _MOST_CLASSES:
        print_line()
        print_line("rows are true classes, columns predicted ones")
        lines = [[name, *map(str, row)] for name, row in zip(loaded.class_names, found["confusion"])]
        print_table([["", *loaded.class_names], *lines])


def targets_of(model, data, path: Path):
    """The labels as the model's task encodes them; those that it does not know are bad input."""
    from scipy import sparse

    from sketchnet.cli.model_rows import names_of_classes

    if data.n_rows == 0:
        raise InputError(f"{path} has no rows to measure the model on")
    for part in data.parts:
        if part.label_indptr is not None and not ((part.labels >= 0) & (part.labels % 1 == 0)).all():
            raise InputError(f"{path} has a label that is no whole number from 0 on, among several a row")
    task, labels = model.task, data.labels
    if labels is None:
        raise InputError(f"{path} has no labels to compare with; say where they are (--label, --label-column)")
    if sparse.issparse(labels) != (task.kind == "multilabel"):
        kinds = {True: "several labels a row", False: "one label a row"}
        given, wanted = kinds[sparse.issparse(labels)], kinds[task.kind == "multilabel"]
        raise InputError(f"{path} has {given}, the model was trained on {wanted}")
    ours, theirs = names_of_classes(model.data), names_of_classes(data.descriptions[0])
    known = model.data.get("classes") or []
    new = [name for name in theirs if name not in known]
    if new:
        raise InputError(f"{path} has the class {new[0]!r}; the model knows {', '.join(known[:10]) or 'numbers'}")
    if theirs != ours:
        raise InputError(f"{path} numbers its classes otherwise than the model; ingest it --like the training rows")
    try:
        return task.encode(labels)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
