"""The help of every verb that takes a model shows how it is called."""

import pytest

from tests.cli.command_line import good


@pytest.mark.parametrize("verb", "train predict evaluate explain encode similar".split())
def test_help_has_examples(verb, tmp_path):
    assert f"sketchnet {verb} " in good(verb, "--help", cwd=tmp_path)


def test_the_list_of_verbs_cuts_no_sentence_short(tmp_path):
    for args in ((), ("data",)):
        assert "..." not in good(*args, "--help", cwd=tmp_path).partition("Commands:")[2]
