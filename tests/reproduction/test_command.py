"""`python -m reproduction` as a person meets it: measured, resumed, listed, shown; bad usage."""

import json
import subprocess
import sys
from functools import partial

import pytest

from reproduction import experiments
from reproduction.commands import main
from reproduction.experiments import LABELS, runner
from tests.cli import command_line
from tests.cli.command_line import contents
from tests.reproduction.report.made_up import EXPERIMENTS, write_results
from tests.reproduction.report.test_page import differences, expected

reproduction, good, bad = (
    partial(run, main=main) for run in (command_line.sketchnet, command_line.good, command_line.bad)
)


def test_measures_and_goes_on(tmp_path):
    asked = ("tab:datasets_nnz", "--scale", "smoke", "--out", "out")
    found = json.loads(good(*asked, "--json", cwd=tmp_path))
    assert found["missing"] == 0
    assert found["labels"]["tab:datasets_nnz"]["confirmed"] > 0
    lines = (tmp_path / "out/results.jsonl").read_bytes()
    again = good(*asked, cwd=tmp_path)
    assert "confirmed" in again
    assert "python -m reproduction report out/results.jsonl" in again
    assert (tmp_path / "out/results.jsonl").read_bytes() == lines


def test_a_place_that_no_folder_can_take(tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    message = "link is a link that leads nowhere; it must be a folder, or a name that is free"
    bad("tab:datasets_nnz", "--scale", "smoke", "--out", "link", message=message, cwd=tmp_path)


def test_a_reader_that_leaves_does_not_stop_what_is_measured(tmp_path):
    """As `| head -1` does."""
    asked = f"{sys.executable} -m reproduction tab:rp_layer_complexity --scale smoke --out {tmp_path / 'out'} | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", asked], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["results.jsonl"]


def test_what_fails_is_told_apart_from_what_is_missing(tmp_path, monkeypatch):
    asked = ("tab:datasets_nnz", "--scale", "smoke", "--out", "out")

    def broken(**settings):
        raise KeyError("rows")

    with monkeypatch.context() as patch:
        patch.setattr(runner, "find_recipe", lambda name: broken)
        done = reproduction(*asked, "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (done.returncode, found["missing"]) == (1, 0)
    assert found["failed"] > 0
    assert (
        done.stderr == f"python -m reproduction: {found['failed']} measurements failed; the first: KeyError: 'rows'\n"
    )
    found = json.loads(good(*asked, "--json", cwd=tmp_path))  # tried again
    assert (found["missing"], found["failed"]) == (0, 0)


def test_several_processes_find_the_same(tmp_path):
    found = {}
    for jobs in ("1", "2"):
        good("fig:fs_mnist", "--scale", "smoke", "--jobs", jobs, "--out", jobs, cwd=tmp_path)
        records = map(json.loads, (tmp_path / jobs / "results.jsonl").read_text().splitlines())
        found[jobs] = {str(record["settings"]): record["found"]["columns"] for record in records}
    assert found["1"] == found["2"]
    assert len(found["1"]) == 3


def test_seeds_are_numbered_from_the_first(tmp_path):
    asked = ("tab:datasets_nnz", "--scale", "smoke", "--out", "out", "--json")
    for first in ("0", "7"):  # the second run adds to the first
        assert json.loads(good(*asked, "--seeds", "2", "--seed", first, cwd=tmp_path))["missing"] == 0
    records = map(json.loads, (tmp_path / "out/results.jsonl").read_text().splitlines())
    assert {record["seed"] for record in records} == {0, 1, 7, 8}


def test_lists_labels(tmp_path):
    assert list(json.loads(good("--list", "--json", cwd=tmp_path))) == list(LABELS)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["tab:nothing"], "'tab:nothing' is no label of the dissertation's; those are fig:rpsynth_k"),
        ([], "no label is given"),
        (["tab:datasets_nnz", "--device", "tpu"], "device 'tpu' is not possible; it is auto, cpu or cuda"),
        (["all", "--scale", "huge"], "allowed are smoke, small, full"),
    ],
)
def test_bad_usage(asked, message, tmp_path):
    bad("measure", *asked, message=message, cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_bad_usage(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    asked = ("tab:datasets_nnz", "--scale", "smoke", "--search", "3", "--out", "new")
    bad(*asked, message="needs the package optuna: pip install 'sketchnet[", cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def test_wrong_options_are_told_with_the_way_to_the_help(tmp_path):
    bad("all", "--scall", "full", message="there is no option --scall; did you mean --scale?", cwd=tmp_path)
    bad("report", "x", "--scall", message="try python -m reproduction report --help", cwd=tmp_path)


@pytest.mark.parametrize("verb", ["measure", "report"])
def test_help_has_an_example(verb, tmp_path):
    assert "python -m reproduction " in good(verb, "--help", cwd=tmp_path).partition("Example:")[2]


def test_it_runs_as_a_module(tmp_path):
    command = [sys.executable, "-m", "reproduction", "tab:rp_layer_complexity", "--scale", "smoke", "--jobs", "2"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert json.loads(done.stdout)["missing"] == 0
    assert (tmp_path / "reproduced/results.jsonl").exists()


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A folder with results of labels that are made up."""
    by_label = {experiment.label: experiment for experiment in EXPERIMENTS}
    monkeypatch.setattr(experiments, "LABELS", tuple(by_label))
    monkeypatch.setattr(experiments, "find_experiment", by_label.__getitem__)
    write_results(tmp_path / "results.jsonl")
    return tmp_path


def test_the_page_of_results(results):
    said = good("report", "results.jsonl", "--out", "page.html", "--markdown", "page.md", cwd=results)
    assert said.startswith("page.html: published values: ")
    assert said.endswith("claims of ours: 0 confirmed, 1 denied, 0 not measured\n")
    text = (results / "page.html").read_text()
    assert differences(text, expected(results / "results.jsonl", EXPERIMENTS)) == []
    assert (results / "page.md").read_text().startswith("# Random projections")
    found = json.loads(good("report", "results.jsonl", "--scale", "small", "--json", cwd=results))
    assert (results / found["out"]).read_text() == text
    assert found["claims"] == {"confirmed": 2, "denied": 1, "not measured": 1}


def test_bad_results(results):
    (results / "rows.svm").write_text("1 1:1\n-1 2:1\n")
    before = contents(results)
    bad("report", "results.jsonl", "--scale", "huge", message="huge", cwd=results)
    bad("report", "results.jsonl", "--scale", "full", message="no results at scale full; it has small", cwd=results)
    bad("report", "results.jsonl", "--out", "page.pdf", message="--out page.pdf is not possible", cwd=results)
    bad("report", "results.jsonl", "--out", "no/page.html", message="--out no/page.html", cwd=results)
    bad("report", "results.jsonl", "--markdown", "x.txt", message="--markdown x.txt", cwd=results)
    bad("report", "nowhere", message="nowhere is not a file; give the results.jsonl", cwd=results)
    bad("report", ".", message=". is not a file; give", cwd=results)
    bad("report", "rows.svm", message="rows.svm has no results, but other lines", cwd=results)
    assert contents(results) == before
