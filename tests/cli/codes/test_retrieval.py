"""From rows to codes, and to the documents that these find: `sketchnet evaluate --retrieval`."""

import json

import numpy as np
import pytest
from scipy import sparse

from sketchnet.data import open_shards
from sketchnet.evaluation.retrieval import retrieval
from tests.cli.codes.documents import PLAIN, RETRIEVAL, N, numbers
from tests.cli.command_line import bad, good

WORDS = "--text --text-column 2 --analyzer word --ngrams 1 --columns 64".split()


def test_codes_find_documents_of_the_same_kind(here, kinds):
    """Random codes would find documents of each kind as often as they occur, a third of the time."""
    assert good("encode", "model", "test.svm", "--output", "codes.npy", cwd=here) == f"codes.npy: {N} x 4, float32\n"
    codes = np.load(here / "codes.npy")
    found = json.loads(good("evaluate", "model", "test.svm", *RETRIEVAL, cwd=here))
    expected, chance = retrieval(codes, kinds), retrieval(np.random.default_rng(0).normal(size=(N, 4)), kinds)
    assert chance.area < 0.45
    assert found["area"] > 0.8
    assert found["area"] == pytest.approx(expected.area, abs=1e-6)
    assert found["mean_average_precision"] == pytest.approx(expected.mean_average_precision, abs=1e-6)
    assert (found["rows"], found["queries"], found["left_out"]) == (N, N, 0)
    for recall, precision in found["precision_at_recall"].items():
        rank = next(rank for rank, reached in enumerate(expected.recall) if reached >= float(recall) - 1e-6)
        assert precision == pytest.approx(expected.precision[rank], abs=1e-5)
    neighbours = numbers(good("similar", "model", "test.svm", "--query", "test.svm", "-n", "2", cwd=here))
    second = neighbours[neighbours[:, 1] == 2]  # the first is the query itself
    assert np.mean(kinds[second[:, 0].astype(int)] == kinds[second[:, 2].astype(int)]) > 0.8


def test_the_curve_is_printed(here):
    shown = good("evaluate", "model", "test.svm", *RETRIEVAL[:-1], cwd=here)
    found = json.loads(good("evaluate", "model", "test.svm", *RETRIEVAL, cwd=here))
    lines = [line.split() for line in shown.splitlines()]
    assert ["area", f"{found['area']:.5g}"] in lines
    assert ["left", "out", "0"] in lines
    assert f"precision at 10 % recall {found['precision_at_recall']['0.1']:.5g}".split() in lines


def test_rows_of_no_kind_are_left_out(here):
    with open(here / "test.svm", "a") as file:
        file.write("99 1:1\n")
    found = json.loads(good("evaluate", "model", "test.svm", *RETRIEVAL, cwd=here))
    assert (found["rows"], found["queries"], found["left_out"]) == (N + 1, N, 1)


def test_several_labels_count_by_the_share_in_common(here):
    good("encode", "model", "sets.svm", "--output", "codes.npy", cwd=here)
    good("ingest", "sets.svm", "sets", cwd=here)
    labels = open_shards(here / "sets").labels
    assert sparse.issparse(labels)
    expected = retrieval(np.load(here / "codes.npy"), labels)
    for path in ("sets.svm", "sets"):
        found = json.loads(good("evaluate", "model", path, *RETRIEVAL, cwd=here))
        assert found["area"] == pytest.approx(expected.area, abs=1e-6)


def test_words_and_tables(here):
    """The labels of tables and of text are for retrieval alone, and need not be known to the model."""
    good("train", "words.tsv", "--out", "words", *WORDS, *PLAIN, cwd=here)
    fields = ["--text-column", "2", "--label-column", "1"]
    found = json.loads(good("evaluate", "words", "words.tsv", *fields, *RETRIEVAL, cwd=here))
    assert found["area"] > 0.8
    good("train", "table.csv", "--label", "kind", "--out", "table", *PLAIN, cwd=here)
    good("train", "bare.csv", "--out", "bare", *PLAIN, cwd=here)
    weights = [(here / name / "weights.safetensors").read_bytes() for name in ("table", "bare")]
    assert weights[0] == weights[1]
    areas = [
        json.loads(good("evaluate", name, "table.csv", *label, *RETRIEVAL, cwd=here))["area"]
        for name, label in (("table", []), ("bare", ["--label", "kind"]))
    ]
    assert areas[0] == areas[1] > 0.8
    bad("evaluate", "bare", "bare.csv", "--retrieval", message="bare.csv has no labels to compare", cwd=here)
    assert good("encode", "table", "table.csv", cwd=here) == good("encode", "bare", "bare.csv", cwd=here)
