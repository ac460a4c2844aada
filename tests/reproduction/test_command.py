"""`sketchnet reproduce`: measured, resumed, listed; bad usage."""

import json

import pytest

from reproduction.experiments import LABELS, runner
from tests.cli.command_line import bad, good, sketchnet


def test_measures_and_goes_on(tmp_path):
    asked = ("reproduce", "tab:datasets_nnz", "--scale", "smoke", "--out", "out")
    found = json.loads(good(*asked, "--json", cwd=tmp_path))
    assert found["missing"] == 0
    assert found["labels"]["tab:datasets_nnz"]["confirmed"] > 0
    lines = (tmp_path / "out/results.jsonl").read_bytes()
    again = good(*asked, cwd=tmp_path)
    assert "confirmed" in again
    assert "sketchnet report out/results.jsonl" in again
    assert (tmp_path / "out/results.jsonl").read_bytes() == lines


def test_what_fails_is_told_apart_from_what_is_missing(tmp_path, monkeypatch):
    asked = ("reproduce", "tab:datasets_nnz", "--scale", "smoke", "--out", "out")

    def broken(**settings):
        raise KeyError("rows")

    with monkeypatch.context() as patch:
        patch.setattr(runner, "find_recipe", lambda name: broken)
        done = sketchnet(*asked, "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (done.returncode, found["missing"]) == (1, 0)
    assert found["failed"] > 0
    assert done.stderr == f"sketchnet: {found['failed']} measurements failed; the first: KeyError: 'rows'\n"
    found = json.loads(good(*asked, "--json", cwd=tmp_path))  # tried again
    assert (found["missing"], found["failed"]) == (0, 0)


def test_several_processes_find_the_same(tmp_path):
    found = {}
    for jobs in ("1", "2"):
        good("reproduce", "fig:fs_mnist", "--scale", "smoke", "--jobs", jobs, "--out", jobs, cwd=tmp_path)
        records = map(json.loads, (tmp_path / jobs / "results.jsonl").read_text().splitlines())
        found[jobs] = {str(record["settings"]): record["found"]["columns"] for record in records}
    assert found["1"] == found["2"]
    assert len(found["1"]) == 3


def test_seeds_are_numbered_from_the_first(tmp_path):
    asked = ("reproduce", "tab:datasets_nnz", "--scale", "smoke", "--out", "out", "--json")
    for first in ("0", "7"):  # the second run adds to the first
        assert json.loads(good(*asked, "--seeds", "2", "--seed", first, cwd=tmp_path))["missing"] == 0
    records = map(json.loads, (tmp_path / "out/results.jsonl").read_text().splitlines())
    assert {record["seed"] for record in records} == {0, 1, 7, 8}


def test_lists_labels(tmp_path):
    assert list(json.loads(good("reproduce", "--list", "--json", cwd=tmp_path))) == list(LABELS)


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
    bad("reproduce", *asked, message=message, cwd=tmp_path)
    assert not list(tmp_path.iterdir())
