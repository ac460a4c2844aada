"""The help of every verb shows how it is called, and that it takes what all verbs take."""

import json

import pytest

from tests.cli.command_line import good

VERBS = "ingest synth data project train predict encode similar evaluate explain report".split()
DRAWING = ("ingest", "synth", "project", "train")  # those whose results a seed decides


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_examples_and_what_all_verbs_take(verb, tmp_path):
    said = good(verb, "--help", cwd=tmp_path)
    assert f"sketchnet {verb} " in said.partition("Example")[2].partition("Options:")[0]
    assert "  --json " in said
    assert ("  --seed " in said) == (verb in DRAWING)


def test_no_verb_is_left_out(tmp_path):
    listed = good("--help", cwd=tmp_path).partition("Commands:")[2].splitlines()
    assert sorted(line.split()[0] for line in listed if line) == sorted(VERBS)


def test_data_takes_options_before_and_after_list(tmp_path):
    wanted = json.loads(good("data", "list", "--json", cwd=tmp_path))
    for args in (("--json",), ("--json", "list")):
        assert json.loads(good("data", *args, cwd=tmp_path)) == wanted


def test_the_list_of_verbs_cuts_no_sentence_short(tmp_path):
    for args in ((), ("data",)):
        assert "..." not in good(*args, "--help", cwd=tmp_path).partition("Commands:")[2]
