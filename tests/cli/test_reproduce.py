"""`sketchnet reproduce`: measured, resumed, listed; bad usage."""

import json

import pytest

from sketchnet.experiments import LABELS
from tests.cli.command_line import bad, good


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


def test_several_processes_find_the_same(tmp_path):
    found = {}
    for jobs in ("1", "2"):
        good("reproduce", "fig:fs_mnist", "--scale", "smoke", "--jobs", jobs, "--out", jobs, cwd=tmp_path)
        records = map(json.loads, (tmp_path / jobs / "results.jsonl").read_text().splitlines())
        found[jobs] = {str(record["settings"]): record["found"]["columns"] for record in records}
    assert found["1"] == found["2"]
    assert len(found["1"]) == 3


def test_lists_labels(tmp_path):
    assert list(json.loads(good("reproduce", "--list", "--json", cwd=tmp_path))) == list(LABELS)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["tab:nothing"], "'tab:nothing' is no label of the dissertation's; those are fig:rpsynth_k"),
        ([], "no label is given"),
        (["all", "--scale", "huge"], "allowed are smoke, small, full"),
    ],
)
def test_bad_usage(asked, message, tmp_path):
    bad("reproduce", *asked, message=message, cwd=tmp_path)
    assert not list(tmp_path.iterdir())
