"""Every table and figure at the smallest sizes, by the command that measures them all, and the page of it."""

import json

from reproduction.commands import main
from reproduction.experiments import LABELS, find_experiment
from reproduction.experiments.results import Results, why_none
from tests.cli.command_line import good


def test_all_labels_at_the_smallest_sizes(one_thread, tmp_path, monkeypatch):
    """One test, so that it is measured once; it needs no data set, and no network."""
    monkeypatch.delenv("SKETCHNET_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sketchnet.data.datasets.fetch.download", _unreachable)
    asked = ("all", "--scale", "smoke", "--device", "cpu", "--json")
    found = json.loads(good(*asked, cwd=tmp_path, main=main))
    assert (found["missing"], found["failed"]) == (0, 0)
    assert list(found["labels"]) == list(LABELS)
    results = Results(tmp_path / "reproduced/results.jsonl")
    for experiment in map(find_experiment, LABELS):
        assert not any(map(why_none, results.of(experiment, "smoke")))
        assert all(results.get("smoke", *place) for place in experiment.cells("smoke"))
        for entry in experiment.entries("smoke"):
            for record in results.runs("smoke", entry.cell) if entry.cell is not None else ():
                assert isinstance(record["found"][entry.quantity], float | int)
                # Networks that begin by another scheme are trained for a moment alone.
                assert 0 <= record["found"].get("error", 0) <= (100 if "init" in experiment.label else 65)
    good("report", "reproduced/results.jsonl", "--scale", "smoke", cwd=tmp_path, main=main)
    text = (tmp_path / "report.html").read_text()
    assert all(label in text for label in LABELS)
    assert "Nothing was measured" not in text


def _unreachable(remote, target, progress):
    raise AssertionError("the smallest sizes need no downloads")
