"""`sketchnet explain`: columns that were planted are named."""

import json

import numpy as np
import pytest

from tests.cli.command_line import good
from tests.cli.planted import N


def test_explain_names_what_was_planted(world):
    for args, name in (
        (["rows", "rows.svm"], "1"),
        (["several", "several.svm"], "1"),
        (["numbers", "numbers.svm"], "1"),
        (["table", "table.csv"], "colour="),
    ):
        found = json.loads(good("explain", *args, "--json", "--top", "3", cwd=world))
        assert found["rows"] == N
        assert len(found["columns"]) == 3
        assert found["columns"][0]["name"].startswith(name)
        sizes = [column["importance"] for column in found["columns"]]
        assert sizes == sorted(sizes, reverse=True)
    assert "colour=red" in good("explain", "table", "table.csv", cwd=world)
    assert "in 7 rows" in good("explain", "rows", "rows.svm", "--rows", "7", cwd=world)


def test_explain_text_by_its_ngrams(world):
    names = [c["name"] for c in json.loads(good("explain", "urls", "urls.txt", "--json", cwd=world))["columns"]]
    assert all(name.startswith("'") for name in names)
    urls = (world / "urls.txt").read_text().splitlines()
    ends = [[url for url in urls if url.endswith(end)] for end in ("login", "home")]
    counts = [[np.mean([url.count(name[1:-1]) for url in end]) for end in ends] for name in names]
    # Columns that all rows share weigh as well, as an offset does, but many are those that tell the classes apart.
    assert sum(abs(login - home) > 0.2 for login, home in counts) >= 8
    assert "'login'" in names
    tsv = json.loads(good("explain", "urls", "urls.tsv", "--text-column", "2", "--json", cwd=world))["columns"]
    assert [c["name"] for c in tsv] == names


def test_explain_one_row(world):
    labels = [line.split()[0] for line in (world / "rows.svm").read_text().splitlines()]
    row = labels.index("1")
    found = json.loads(good("explain", "rows", "rows.svm", "--row", row, "--output", "1", "--json", cwd=world))
    assert found["row"] == row
    assert found["label"] == 1
    assert len(found["columns"]) == 7
    first = found["columns"][0]
    assert (first["column"], first["name"], first["value"]) == (0, "1", 1)
    assert first["contribution"] > 0
    other = json.loads(good("explain", "rows", "rows.svm", "--row", row, "--output", "-1", "--json", cwd=world))
    assert other["columns"][0]["contribution"] == pytest.approx(-first["contribution"])
    assert good("explain", "rows", "rows.svm", "--row", row, cwd=world).startswith(f"row {row}: 1 with probability ")
    text = (world / "urls.txt").read_text().splitlines()
    row = next(i for i, line in enumerate(text) if line.endswith("login"))
    shown = json.loads(good("explain", "urls", "urls.txt", "--row", row, "--output", "bad", "--json", cwd=world))
    assert all(column["name"].strip("'").split("' or '")[0] in text[row] for column in shown["columns"])


def test_explain_a_data_set_on_disk(here):
    good("ingest", "rows.svm", "shards", cwd=here)
    expected = json.loads(good("explain", "rows", "rows.svm", "--json", cwd=here))["columns"]
    found = json.loads(good("explain", "rows", "shards", "--json", cwd=here))["columns"]
    assert [(c["column"], c["name"]) for c in found] == [(c["column"], c["name"]) for c in expected]


def test_strings_below_a_header_behind_a_mark(world):
    """N-grams are named as without them; a label is not looked at, so it may be missing."""
    plain = "bad\tlogin.example/login\ngood\tmail.example/home\n"
    (world / "plain.tsv").write_text(plain)
    (world / "odd.tsv").write_text("\ufefflabel\turl\n" + plain.replace("good", ""))
    options = ("--text-column", "2", "--row", "1")
    found = good("explain", "urls", "odd.tsv", *options, "--header", "--label-column", "1", cwd=world)
    assert found.replace("odd.tsv", "plain.tsv") == good("explain", "urls", "plain.tsv", *options, cwd=world)
    assert "'" in found
