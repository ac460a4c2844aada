"""A folder with documents and autoencoders, made once for all verbs."""

import numpy as np
import pytest

from tests.cli.codes.documents import AUTO, TINY, plant
from tests.cli.command_line import good


@pytest.fixture(scope="package")
def world(one_thread, tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    plant(folder)
    good("train", "train.svm", "--out", "model", *TINY, cwd=folder)
    binary = "--binary-codes --no-pretrain --epochs 10 --set noise=0".split()
    good("train", "train.svm", "--out", "binary", *AUTO, *binary, cwd=folder)
    tiny = "--components 16 --hidden 8 --epochs 2 --set sparse_rate=0.01".split()
    good("train", "train.svm", "--out", "classes", *tiny, cwd=folder)
    return folder


@pytest.fixture(scope="package")
def kinds(world):
    return np.load(world / "kinds.npz")["kinds"]
