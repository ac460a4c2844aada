"""Results are appended, read back, resumed; verdicts follow from them; a search never loses."""

import json
import sys
import types
from dataclasses import replace

import pytest

from reproduction.experiments import LABELS, find_experiment, recipes, runner
from reproduction.experiments.experiment import Cell, Claim, Entry, Experiment
from reproduction.experiments.results import Results
from reproduction.experiments.runner import RESULTS, missing_cells, reproduce
from reproduction.experiments.search import search_settings
from reproduction.experiments.verdict import CONFIRMED, DENIED, OPEN, count_verdicts, of_claim, of_entry
from sketchnet.errors import InputError, Interrupted, StorageError
from tests.other_writer import held_by_another


@pytest.fixture
def calls(monkeypatch):
    """A recipe that notes when it is called; its error is ten times x plus the seed."""
    made = []

    def toy(*, seed, device, x, rate=1.0):
        made.append((x, seed))
        if x == 9:
            raise InputError("the ninth data set is not there")
        if x == 8:
            raise AttributeError("'NoneType' object has no attribute 'n_rows'")
        if x == 7:
            raise Interrupted("stopped as asked")
        return {"error": 10.0 * x + seed, "valid_error": abs(rate - 0.1)}

    module = types.ModuleType("reproduction.experiments.recipes.toys")
    module.toy = toy
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(recipes.RECIPES, "toy", "toys")
    monkeypatch.setitem(recipes.SPACES, "toy", {"rate": (0.01, 1.0)})
    return made


def toy_experiment(*xs, seeds=1, published=None, claims=(), **more):
    def entries(scale):
        return [Entry("ours", x, Cell("toy", {"x": x}), published=published) for x in xs]

    return Experiment("tab:toy", "Toys", entries, "x", "error (%)", claims, dict.fromkeys(["smoke"], seeds), **more)


def test_only_what_is_missing_is_measured(tmp_path, calls):
    reproduce([toy_experiment(1, 2)], "smoke", tmp_path)
    assert calls == [(1, 0), (2, 0)]
    results = reproduce([toy_experiment(1, 2, 3, seeds=2)], "smoke", tmp_path)
    assert calls[2:] == [(3, 0), (1, 1), (2, 1), (3, 1)]  # first seeds first
    assert results.values(toy_experiment(1, 2, 3, seeds=2), "smoke")("ours", 3) == 30.5


def test_more_seeds_than_the_label_asks_for(tmp_path, calls):
    experiment = toy_experiment(1, 2)
    results = reproduce([experiment], "smoke", tmp_path, seeds=3)
    assert calls == [(x, seed) for seed in range(3) for x in (1, 2)]
    assert results.values(experiment, "smoke").runs["ours", 1] == [10, 11, 12]
    assert len(results.of(experiment, "smoke")) == len(results) == 6
    assert missing_cells([experiment], "smoke", results) == []


def test_labels_share_cells(tmp_path, calls):
    reproduce([toy_experiment(1), toy_experiment(1, 2)], "smoke", tmp_path)
    assert calls == [(1, 0), (2, 0)]


def test_a_line_that_was_cut_off_is_measured_again(tmp_path, calls):
    reproduce([toy_experiment(1, 2)], "smoke", tmp_path)
    file = tmp_path / RESULTS
    file.write_bytes(file.read_bytes()[:-20])
    results = reproduce([toy_experiment(1, 2)], "smoke", tmp_path)
    assert calls[2:] == [(2, 0)]
    assert len(results) == len(Results(file)) == 2
    assert [json.loads(line)["settings"] for line in file.read_text().splitlines()[::2]] == [{"x": 1}, {"x": 2}]


def test_what_is_not_there_is_noted_and_tried_again(tmp_path, calls):
    experiment = toy_experiment(1, 9)
    results = reproduce([experiment], "smoke", tmp_path)
    assert [record["found"].get("missing") for record in results.of(experiment, "smoke")] == [
        None,
        "the ninth data set is not there",
    ]
    assert list(results.values(experiment, "smoke").runs) == [("ours", 1)]
    assert [cell.settings for cell, _ in missing_cells([experiment], "smoke", results)] == [{"x": 9}]
    reproduce([experiment], "smoke", tmp_path)
    assert calls == [(1, 0), (9, 0), (9, 0)]


def test_an_error_of_ours_is_no_missing_data_set(tmp_path, calls):
    experiment = toy_experiment(1, 8)
    results = reproduce([experiment], "smoke", tmp_path)
    why = "AttributeError: 'NoneType' object has no attribute 'n_rows'"
    assert [record["found"].get("failed") for record in results.of(experiment, "smoke")] == [None, why]
    assert results.failures == [why]
    assert list(results.values(experiment, "smoke").runs) == [("ours", 1)]
    again = reproduce([experiment], "smoke", tmp_path)
    assert calls == [(1, 0), (8, 0), (8, 0)]
    assert again.failures == [why]


def test_the_later_reason_counts(tmp_path):
    """What is installed since then may not work."""
    results, cell = Results(tmp_path / RESULTS), Cell("toy", {"x": 1})
    for found in ({"missing": "Optuna"}, {"failed": "TypeError"}):
        results.add("smoke", cell, 0, found, {})
        for each in (results, Results(tmp_path / RESULTS)):
            assert each.get("smoke", cell, 0)["found"] == found


def test_who_stops_a_training_stops_the_run(tmp_path, calls):
    with pytest.raises(Interrupted):
        reproduce([toy_experiment(1, 7, 8)], "smoke", tmp_path)
    assert calls == [(1, 0), (7, 0)]
    assert len(Results(tmp_path / RESULTS)) == 1


def test_results_tell_their_circumstances(tmp_path, calls):
    experiment = toy_experiment(1)
    (record,) = reproduce([experiment], "smoke", tmp_path).of(experiment, "smoke")
    assert {"sketchnet", "python", "torch", "machine", "device", "when", "seconds"} <= record["circumstances"].keys()


def test_an_interruption_keeps_what_was_measured(tmp_path, calls, monkeypatch):
    def interrupted(done, total, note):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce([toy_experiment(1, 2)], "smoke", tmp_path, progress=interrupted)
    reproduce([toy_experiment(1, 2)], "smoke", tmp_path)
    assert calls == [(1, 0), (2, 0)]


def test_verdicts(tmp_path, calls):
    claims = (
        Claim("grows", lambda v: v("ours", 2) > v("ours", 1)),
        Claim("shrinks", lambda v: v("ours", 2) < v("ours", 1)),
        Claim("of a third", lambda v: v("ours", 3) > 0),
    )
    experiment = toy_experiment(1, 2, published=10.4, claims=claims)
    results = reproduce([experiment], "smoke", tmp_path)
    values = results.values(experiment, "smoke")
    assert [of_claim(claim, values) for claim in claims] == [CONFIRMED, DENIED, OPEN]
    assert [of_entry(experiment, entry, values) for entry in experiment.entries("smoke")] == ["as good", "worse"]
    upwards = toy_experiment(1, 2, published=10.6, larger_is_better=True)
    assert [of_entry(upwards, entry, values) for entry in upwards.entries("smoke")] == ["worse", "better"]
    incomparable = toy_experiment(1, published=10.6, slack=None)
    assert of_entry(incomparable, incomparable.entries("smoke")[0], values) == ""
    counts = count_verdicts(experiment, "smoke", results)
    ours = {"of ours confirmed": 0, "of ours denied": 0, "of ours not measured": 0}
    assert counts == {"as good": 1, "better": 0, "worse": 1, CONFIRMED: 1, DENIED: 1, OPEN: 1, **ours}
    experiment = toy_experiment(1, 2, published=10.4, claims=(*claims[1:], replace(claims[0], ours=True)))
    assert count_verdicts(experiment, "smoke", results) == {**counts, CONFIRMED: 0, "of ours confirmed": 1}


def test_a_search_chooses_by_validation_and_keeps_the_given_settings_if_they_are_best(calls):
    settings, noted = search_settings(Cell("toy", {"x": 1}), 0, "cpu", 12)
    assert abs(settings["rate"] - 0.1) < 0.9
    assert noted["trials"] == 12
    assert noted["valid_error"] == abs(settings["rate"] - 0.1)
    settings, noted = search_settings(Cell("toy", {"x": 1, "rate": 0.1}), 0, "cpu", 3)
    assert settings == {"x": 1, "rate": 0.1}
    assert noted["searched"] == {}


def test_a_cell_measured_without_search_is_measured_again_with_it(tmp_path, calls):
    experiment = toy_experiment(1)
    reproduce([experiment], "smoke", tmp_path)
    results = reproduce([experiment], "smoke", tmp_path, search=3)
    assert len(calls) == 1 + 3 + 1
    assert not missing_cells([experiment], "smoke", results, 3)
    assert not missing_cells([experiment], "smoke", results)


def test_a_failure_does_not_hide_a_number(tmp_path, calls):
    results = reproduce([toy_experiment(1)], "smoke", tmp_path)
    for kind in ("missing", "failed"):
        results.add("smoke", Cell("toy", {"x": 1}), 0, {kind: "Optuna"}, {})
    for found in (results, Results(tmp_path / RESULTS)):
        assert found.values(toy_experiment(1), "smoke")("ours", 1) == 10


def test_every_recipe_that_can_be_searched_tells_its_validation_error():
    cells = [cell for label in LABELS for cell, _ in find_experiment(label).cells("smoke")]
    for recipe in recipes.SPACES:
        cell = next(cell for cell in cells if cell.recipe == recipe)
        settings, noted = search_settings(cell, 0, "cpu", 2)
        assert noted["trials"] == 2
        assert set(settings) - set(cell.settings) <= set(recipes.SPACES[recipe])


def test_two_processes_cannot_write_one_file(tmp_path, calls):
    with held_by_another(tmp_path / RESULTS), pytest.raises(StorageError, match="another process"):
        reproduce([toy_experiment(1)], "smoke", tmp_path)


def test_a_file_that_has_no_results_is_left_alone(tmp_path, calls):
    for text in ("my own\nresults\n", "mine\n", '{"scale": 3}\n'):
        (tmp_path / RESULTS).write_text(text)
        with pytest.raises(InputError, match=f"{RESULTS} has no results, but other lines"):
            reproduce([toy_experiment(1)], "smoke", tmp_path)
        assert (tmp_path / RESULTS).read_text() == text


def test_lines_that_were_cut_off_are_no_ones_else(tmp_path, calls):
    (tmp_path / RESULTS).write_text('{"sca\n{"scale": "smoke", "rec')
    reproduce([toy_experiment(1)], "smoke", tmp_path)
    assert len(calls) == len(Results(tmp_path / RESULTS)) == 1


def test_time_is_measured_alone(tmp_path, calls, monkeypatch):
    monkeypatch.setattr(runner, "ALONE", {"toy"})
    monkeypatch.setattr(runner, "ProcessPoolExecutor", None)  # would fail if it were used
    reproduce([toy_experiment(1, 2, 3)], "smoke", tmp_path, jobs=4)
    assert len(calls) == 3


def test_limited_time_is_not_shared(tmp_path, calls, monkeypatch):
    monkeypatch.setattr(runner, "ProcessPoolExecutor", None)

    def entries(scale):
        return [Entry("ours", x, Cell("toy", {"x": x, "seconds": 5.0})) for x in (1, 2)]

    results = reproduce([Experiment("tab:toy", "Toys", entries, "x", "error (%)")], "smoke", tmp_path, jobs=4)
    assert len(results) == 2
