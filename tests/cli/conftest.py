"""A folder with files and their models, made once for all verbs. The folder codes/ has another."""

import shutil

import pytest

from tests.cli.command_line import good
from tests.cli.planted import FIELDS, TINY, plant
from tests.nn.conftest import one_thread

__all__ = ["one_thread"]


@pytest.fixture(scope="package")
def world(one_thread, tmp_path_factory):
    """Planted files, and a model for each."""
    folder = tmp_path_factory.mktemp("world")
    plant(folder)
    good("train", "rows.svm", "--out", "rows", *TINY, cwd=folder)
    good("train", "numbers.svm", "--regression", "--out", "numbers", *TINY, cwd=folder)
    good("train", "several.svm", "--out", "several", *TINY, cwd=folder)
    text = ("--text", *FIELDS, "--ngrams", "1-5", "--columns", "100000")
    good("train", "urls.tsv", *text, "--out", "urls", *TINY, cwd=folder)
    good("train", "table.csv", "--label", "answer", "--out", "table", *TINY, cwd=folder)
    return folder


@pytest.fixture
def here(world, tmp_path):
    """A copy to spoil, with paths as short."""
    shutil.copytree(world, tmp_path, dirs_exist_ok=True)
    return tmp_path
