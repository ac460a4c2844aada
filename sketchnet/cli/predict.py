"""`sketchnet predict`: a model's answers for rows that come as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from sketchnet.cli.inputs import InputOptions, takes_input_options
from sketchnet.cli.printing import json_text, print_note
from sketchnet.errors import InputError
from sketchnet.escapes import escape_controls


@takes_input_options
def predict(
    options: InputOptions,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that train wrote.")],
    input: Annotated[Path, typer.Argument(metavar="INPUT", help="A file, a folder that ingest wrote, or - .")],
    output: Annotated[Path | None, typer.Option(help="File to write. [default: standard output]")] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities too, below a line of class names.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a row, with probabilities.")] = False,
) -> None:
    """Predict a class or a number for each row, one a line. Labels in the rows are not looked at.

    Rows are read as those that the model was trained on: with its base of ids, its hashes, its categories. From
    standard input come lines of svmlight or text, and each is answered as soon as it is there. Names of classes that
    would not stay on their line are shown as Python writes them, such as two\\nlines; --json has them as they are.

    \b
    Examples:
      sketchnet predict clicks-model new.svm.gz --proba --output new.tsv
      echo "example.com/login.php" | sketchnet predict urls-model -
    """
    from sketchnet.cli.lines import lines_to
    from sketchnet.cli.model_rows import ModelRows, answering, open_predictor
    from sketchnet.cli.outputs import outputs_of

    loaded = open_predictor(model, "try `sketchnet encode`")
    if proba and loaded.task.kind == "regression":
        raise InputError(f"--proba is for classes; {model} predicts numbers")
    options.check_used(input)
    rows, done = ModelRows(loaded, input, options), 0
    # A bar would run through answers that go to the same terminal.
    bar = None if output is None else f"predicting {input.name}"
    with answering(model, input), lines_to(output, input, model) as write:
        if proba and not as_json:
            write("\t".join(["label", *map(escape_controls, loaded.class_names)]) + "\n")
        for outputs in outputs_of(loaded, rows, bar):
            lines = _json_lines(loaded, outputs) if as_json else _lines(loaded, outputs, proba)
            write("".join(line + "\n" for line in lines))
            done += len(outputs)
    if output is not None:
        print_note({"output": str(output), "rows": done} if as_json else f"{output}: {done:,} predictions")


def _lines(model, outputs, proba: bool) -> Iterator[str]:
    """An answer a row."""
    if model.task.kind == "regression":
        yield from (f"{number:.9g}" for number in model.task.decide(outputs).tolist())
        return
    probabilities = model.task.probabilities(outputs).tolist() if proba else [()] * len(outputs)
    for label, row in zip(_labels(model.task, outputs, model.class_names), probabilities):
        label = ",".join(label) if isinstance(label, list) else label
        yield "\t".join([escape_controls(label), *(f"{p:.6g}" for p in row)])


def _json_lines(model, outputs) -> Iterator[str]:
    from sketchnet.cli.model_rows import json_classes

    if model.task.kind == "regression":
        yield from (json_text({"label": number}) for number in model.task.decide(outputs).tolist())
        return
    probabilities = model.task.probabilities(outputs).tolist()
    for label, row in zip(_labels(model.task, outputs, json_classes(model)), probabilities):
        answer = {"label": label, "probabilities": dict(zip(model.class_names, row))}
        yield json_text(answer)


def _labels(task, outputs, classes: list) -> list:
    """The class of each row, or a list of them where a row may have several."""
    if task.kind == "multilabel":
        return [[classes[i] for i in row.nonzero()[0]] for row in outputs > 0]
    return [classes[number] for number in task.numbers(outputs)]
