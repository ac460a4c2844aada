"""`train --task regression` and what follows, for labels near both ends of float64."""

import json

import numpy as np
import pytest

from tests.cli.command_line import good
from tests.cli.planted import TINY


@pytest.mark.parametrize("unit", ["e300", "e-290"])
def test_every_verb(unit, world, tmp_path):
    lines = (world / "numbers.svm").read_text().splitlines()
    labels = [line.split(" ", 1)[0] + unit for line in lines]
    (tmp_path / "far.svm").write_text("".join(f"{y} {x.split(' ', 1)[1]}\n" for y, x in zip(labels, lines)))
    good("train", "far.svm", "--task", "regression", "--out", "far", *TINY, cwd=tmp_path)
    labels = np.array(labels, float) / float("1" + unit)
    for form in ((), ("--json",)):
        found = good("predict", "far", "far.svm", *form, cwd=tmp_path).splitlines()
        numbers = np.array([json.loads(line)["label"] if form else float(line) for line in found]) / float("1" + unit)
        assert np.abs(numbers - labels).max() < 5
    figures = json.loads(good("evaluate", "far", "far.svm", "--json", cwd=tmp_path))
    assert 0 < figures["rmse"] / float("1" + unit) < 5
    assert figures["r2"] > 0.9
    top = json.loads(good("explain", "far", "far.svm", "--json", cwd=tmp_path))["columns"][0]
    assert top["column"] == 0
    assert 0.1 < top["importance"] / float("1" + unit) < 100
    good("report", "far", "--data", "far.svm", "--out", "report.html", cwd=tmp_path)
