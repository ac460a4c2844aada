"""Every table and figure at the smallest sizes, by the command that measures them all, and the page of it."""

import json

import pytest

from reproduction.commands import main
from reproduction.experiments import LABELS, find_experiment
from reproduction.experiments.results import Results, why_none
from tests.cli.command_line import good


@pytest.fixture(scope="module")
def run(one_thread, tmp_path_factory):
    """(folder, what was printed, results). It needs no data set, and no network."""
    folder = tmp_path_factory.mktemp("all")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SKETCHNET_DATA", raising=False)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setattr("sketchnet.data.datasets.fetch.download", _unreachable)
        said = good("all", "--scale", "smoke", "--device", "cpu", "--json", cwd=folder, main=main)
    return folder, json.loads(said), Results(folder / "reproduced/results.jsonl")


def _unreachable(remote, target, progress):
    raise AssertionError("the smallest sizes need no downloads")


def test_all_is_measured(run):
    _, found, results = run
    assert (found["missing"], found["failed"]) == (0, 0)
    assert list(found["labels"]) == list(LABELS)
    assert not any(why_none(record) for label in LABELS for record in results.of(find_experiment(label), "smoke"))


@pytest.mark.parametrize("label", LABELS)
def test_every_entry_has_its_number(run, label):
    experiment = find_experiment(label)
    for entry in experiment.entries("smoke"):
        for record in run[2].runs("smoke", entry.cell) if entry.cell is not None else ():
            assert isinstance(record["found"][entry.quantity], float | int)
            assert 0 <= record["found"].get("error", 0) <= (100 if "init" in label else 65)
    assert all(run[2].get("smoke", cell, seed) for cell, seed in experiment.cells("smoke"))


def test_the_page_shows_it(run):
    folder = run[0]
    good("report", "reproduced/results.jsonl", "--scale", "smoke", cwd=folder, main=main)
    text = (folder / "report.html").read_text()
    assert all(label in text for label in LABELS)
    assert "Nothing was measured" not in text
