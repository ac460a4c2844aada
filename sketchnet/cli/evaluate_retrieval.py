"""`sketchnet evaluate --retrieval`: how well the codes of an autoencoder find rows with the same labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sketchnet.cli.inputs import InputOptions
from sketchnet.cli.model_rows import answering, labelled_rows, open_autoencoder
from sketchnet.cli.printing import print_json, print_table
from sketchnet.cli.progress import progress_bar
from sketchnet.errors import InputError
from sketchnet.evaluation.metrics import check_outputs
from sketchnet.evaluation.retrieval import RetrievalResult, retrieval

_RECALLS = (0.01, 0.1, 0.2, 0.5, 0.8, 1.0)  # at which precision is printed


def evaluate_retrieval(
    folder: Path, input: Path, options: InputOptions, device: str, memory: str, as_json: bool
) -> None:
    model = open_autoencoder(folder)
    with labelled_rows(model, input, options, memory) as data:
        labels = data.labels
        if labels is None:
            raise InputError(f"{input} has no labels to compare; say where they are (--label, --label-column)")
        with progress_bar(f"encoding {input.name}") as progress:
            codes = model.outputs(data, progress)
    with answering(folder, input):
        check_outputs(codes)
    with progress_bar(f"ranking {input.name}") as progress:
        found = retrieval(codes, labels, device=device, memory=memory, progress=progress)
    figures = {"area": found.area, "mean_average_precision": found.mean_average_precision}
    counts = {"rows": len(codes), "queries": found.n_queries, "left_out": found.n_left_out}
    precisions = {f"{recall:g}": _precision_at(found, recall) for recall in _RECALLS}
    if as_json:
        print_json({**counts, **figures, "precision_at_recall": precisions})
        return
    lines = [[name.replace("_", " "), f"{n:,}"] for name, n in counts.items()]
    lines += [[name.replace("_", " "), f"{x:.5g}"] for name, x in figures.items()]
    lines += [[f"precision at {100 * float(recall):g} % recall", f"{x:.5g}"] for recall, x in precisions.items()]
    print_table(lines)


def _precision_at(found: RetrievalResult, recall: float) -> float:
    """At the first rank that reaches the recall."""
    rank = int(np.searchsorted(found.recall, recall * (1 - 1e-9)))  # sums of shares may end a little below 1
    return float(found.precision[min(rank, len(found.precision) - 1)])
