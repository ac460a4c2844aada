"""The whole board on made rows: what is run, what is run again, and what the page says."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reproduction
from reproduction.scoreboard import board as boards
from reproduction.scoreboard import plan
from reproduction.scoreboard import search as searches
from reproduction.scoreboard.arithmetic import Predictions
from reproduction.scoreboard.board import Board
from reproduction.scoreboard.measuring import measure_alone, read_predictions, run_fit, run_search, write_predictions
from reproduction.scoreboard.page import score_sets, write_page
from reproduction.scoreboard.parts import Part, write_part
from reproduction.scoreboard.records import Records
from reproduction.scoreboard.search import draw_settings
from sketchnet.errors import InputError, TrainingError
from tests.reproduction.rivals.separable import separable

RIVALS = ["liblinear", "logistic", "lightgbm"]


def load(name: str, quick: bool):
    if name == "a9a":
        raise InputError("it is not there")
    return tuple(Part(*separable(n, 2, seed, 4000)) for n, seed in ((150, 0), (80, 1)))


def measure_here(request: dict, limit: float) -> dict:
    """Without a process for each, which would be most of the time."""
    assert limit > 3600
    return {"search": run_search, "fit": run_fit}[request["what"]](request)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("board")
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boards, "measure_alone", measure_here)
        patch.setattr(searches, "draw_settings", lambda rival, seed: draw_settings(rival, seed, most=3))
        board = Board(Records(folder), quick=True, say=said.append, load=load)
        board.run(["a9a", "adult"], RIVALS, [0])
    assert said[0] == "a9a is left out: it is not there"
    assert [line.split(":")[0] for line in said[1:]] == [f"adult {key} seed 0" for key in ["default", *RIVALS]]
    return folder


def lines(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def test_everything_is_measured(folder):
    ours, *rivals = lines(folder)
    for run in (ours, *rivals):
        assert "failed" not in run
        assert run["error"] < 20
        assert 0 < run["log_loss"] < 1.5
        assert run["auc"] > 0.85
        assert run["peak_mib"] > 50
        for name in ("fit_seconds", "fit_cpu_seconds", "predict_seconds", "predict_cpu_seconds"):
            assert run[name] >= 0
        assert run["circumstances"]["packages"]["scikit-learn"]
    for run in rivals:
        assert run["budget"] == pytest.approx(10 * ours["fit_seconds"])
        assert 1 <= run["choice"]["trials"] <= 3
    assert rivals[0]["choice"]["calibration"]["slope"] > 0
    assert rivals[1]["choice"]["calibration"] is None


def test_nothing_is_run_twice_and_what_is_missing_is(folder, monkeypatch):
    asked = []

    def measure(request, limit):
        asked.append((request["what"], request["rival"], request["seed"]))
        write_predictions(Path(request["predictions"]), Predictions(*[np.zeros(2, int), np.eye(2), np.arange(2)]))
        return dict.fromkeys(("error", "log_loss", "fit_seconds", "peak_mib"), 1.0)

    def run(seeds, rivals=RIVALS, **how):
        asked.clear()
        Board(Records(copy), quick=True, say=lambda line: None, load=load, **how).run(["adult"], rivals, seeds)
        return list(asked)

    copy = folder / "copy"
    copy.mkdir()
    text = (folder / "results.jsonl").read_text()
    (copy / "results.jsonl").write_text(text)
    monkeypatch.setattr(boards, "measure_alone", measure)
    assert run([0]) == []
    # Another seed takes what the first one's search found.
    assert run([0, 1], ["logistic"]) == [("fit", "default", 1), ("fit", "logistic", 1)]
    # A line that was cut off is measured again, with its search.
    (copy / "results.jsonl").write_text(text[:-40])
    assert run([0]) == [("search", "lightgbm", 0), ("fit", "lightgbm", 0)]
    # Other source of the default: it alone is measured again.
    monkeypatch.setattr(boards, "code_of_default", lambda: "new")
    assert run([0]) == [("fit", "default", 0)]
    (copy / "results.jsonl").write_text(text.replace('"error"', '"failed": "no end", "x"'))
    monkeypatch.undo()
    monkeypatch.setattr(boards, "measure_alone", measure)
    assert run([0]) == []
    assert run([0], ["liblinear"], retry=True) == [("fit", "default", 0), ("fit", "liblinear", 0)]


def test_a_process_of_its_own(tmp_path):
    for name, rows in zip(("train", "test"), load("adult", True)):
        write_part(tmp_path, name, rows)
    request = {"what": "fit", "rival": "logistic", "folder": str(tmp_path), "seed": 0, "n_classes": 2, "budget": 1.0}
    request |= {"choice": {"settings": {"strength": 3.0}, "calibration": None}}
    request |= {"predictions": str(tmp_path / "found.npz")}
    found = measure_alone(request, 120)
    assert found["error"] == pytest.approx(read_predictions(tmp_path / "found.npz").figures()["error"])
    with pytest.raises(TrainingError, match="has no setting colour"):
        measure_alone(request | {"choice": {"settings": {"colour": 1}, "calibration": None}}, 120)


def test_rivals_that_are_not_installed_are_named(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(plan, "find_spec", lambda name: None)
    board = Board(Records(tmp_path), say=said.append, load=lambda name, quick: load("a9a", quick))
    board.run(["adult"], ["vw"], [0])
    assert said[0] == "VW is left out: the package vowpalwabbit is not installed"


def test_the_page_shows_what_was_measured(folder):
    page = write_page(Records(folder), quick=True)
    for run in lines(folder):
        assert f" {run['error']:.2f} | " in page
        assert f" {run['log_loss']:.4f} | " in page
    assert page.index("## Losses") < page.index("## Wins") < page.index("## Level") < page.index("## adult")
    assert "150 rows, 4,000 columns, 16 non-zeros a row, 2 classes; 80 test rows." in page
    assert "**Not measured:** NB-SVM, VW" in page
    assert "Nothing was measured yet" in write_page(Records(folder), quick=False)


def test_losses_and_wins_are_told_apart(tmp_path):
    """Four sets: one worse than a rival of two, one better than both, one level, one better than one alone."""
    rates = {"urls": (0.2, 0.1, 0.3), "tng": (0.1, 0.2, 0.3), "frappe": (0.2, 0.2, 0.2), "a9a": (0.2, 0.2, 0.3)}
    records = Records(tmp_path)
    rng = np.random.default_rng(0)
    common = {"seed": 0, "quick": False, "code": "c", "fit_seconds": 1.0, "fit_cpu_seconds": 1.0}
    common |= {"predict_seconds": 1.0, "predict_cpu_seconds": 1.0, "peak_mib": 9.0}
    common |= {"data": {"rows": 9, "columns": 9, "nnz": 9, "classes": 3, "labels": "one", "test_rows": 2000}}
    where = dict.fromkeys(("when", "machine", "sketchnet", "python", "numpy", "torch"), "x") | {"packages": {}}
    for name, of_set in rates.items():
        for rival, rate in zip(("default", "liblinear", "logistic"), of_set):
            wrong = rng.permutation(2000) < 2000 * rate
            wrong = wrong.astype(int)
            found = Predictions(wrong, np.where(np.eye(3)[wrong], 0.8, 0.1), np.zeros(2000, int))
            run = common | {"set": name, "rival": rival, "circumstances": where} | found.figures()
            write_predictions(records.predictions_path(**run), found)
            records.add(run)
    outcomes = {score.name: score.outcome("error") for score in score_sets(Records(tmp_path))}
    assert outcomes == {"urls": "worse", "tng": "better", "frappe": "level", "a9a": "level"}
    page = write_page(Records(tmp_path))
    losses, wins = page.split("## Losses")[1].split("## Wins")
    assert re.findall(r"\| (\w+) \| error % \| 20.00 \| (\w+)", losses) == [("urls", "LIBLINEAR")]
    assert "| worse than some rival | 1 of 4 | 1 of 4 | 0 of 0 |" in page
    assert re.findall(r"\| (\w+) \| error % \| 10.00 \| (\w+)", wins.split("## Level")[0]) == [("tng", "LIBLINEAR")]


def test_the_command_line_writes_the_page(folder, tmp_path):
    script = Path(reproduction.__file__).parents[1] / "benchmarks" / "scoreboard.py"
    command = [sys.executable, script, "--folder", folder, "--quick", "--page", tmp_path / "page.md"]
    subprocess.run(command, check=True)
    assert (tmp_path / "page.md").read_text() == write_page(Records(folder), quick=True)
