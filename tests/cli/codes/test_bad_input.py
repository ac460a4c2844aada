"""What the verbs of codes say to bad input. They change nothing."""

import shutil

import numpy as np
import pytest
from scipy import sparse

from tests.cli.command_line import bad, contents

CODES = " --task autoencoder --hidden 8 --epochs 1"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            "predict model test.svm",
            "model is an autoencoder: it makes codes, and predicts nothing; try `sketchnet encode`",
        ),
        ("explain model test.svm", "there is no answer to explain; try `sketchnet encode`"),
        ("evaluate model test.svm", "try `sketchnet evaluate --retrieval`"),
        ("encode classes test.svm", "classes is no autoencoder: it predicts classes, and makes no codes"),
        ("similar classes test.svm --rows 1", "classes is no autoencoder"),
        ("evaluate classes train.svm --retrieval", "classes is no autoencoder"),
        ("evaluate model test.svm --retrieval --device tpu", "device 'tpu' is not possible"),
        ("evaluate model own.svm --retrieval", "no document is relevant to another"),
        ("evaluate model one.svm --retrieval", "at least 2 are needed"),
        ("evaluate model empty.svm --retrieval", "empty.svm has no rows"),
        ("evaluate model rows.npz --retrieval", "rows.npz has no labels to compare"),
        ("encode nothing test.svm", "nothing is no model"),
        ("encode model missing.svm", "there is no file missing.svm"),
        ("encode model far.svm", "far.svm:1:7: id '41' is too large; allowed are 1 to 40"),
        ("similar model far.svm --rows 0", "far.svm:1:7: id '41' is too large; allowed are 1 to 40"),
        ("similar model test.svm --query far.svm", "far.svm:1:7: id '41' is too large; allowed are 1 to 40"),
        ("evaluate model far.svm --retrieval --columns 90", "far.svm:1:7: id '41' is too large; allowed are 1 to 40"),
        ("encode model less.svm", "a count is -2; counts of words are 0 or more"),
        ("encode model test.svm --bits", "model was trained without --binary-codes"),
        ("encode model test.svm --output codes.txt", "--output codes.txt is not possible; it is a .npy file"),
        ("encode model test.svm --output no/codes.npy", "--output no/codes.npy is not possible"),
        ("similar model test.svm", "give one of them"),
        ("similar model test.svm --rows 1 --query test.svm", "give one of them"),
        ("similar model - --rows 1", "INPUT cannot come from standard input"),
        ("similar model test.svm --rows 1,x", "--rows 1,x is not possible"),
        ("similar model test.svm --rows 150", "test.svm has 150 rows; --rows 150 is beyond them"),
        ("similar model test.svm --rows 1 -n 0", "-n 0 is not possible"),
        ("similar model empty.svm --rows 0", "empty.svm has no rows to find"),
        ("similar model missing.npy --rows 0", "there is no file missing.npy"),
        ("similar model text.npy --rows 0", "text.npy cannot be read as a .npy array"),
        ("similar model kinds.npy --rows 0", "kinds.npy cannot be read as a .npy array"),
        ("similar model wide.npy --rows 0", "wide.npy is float32 (2, 5); codes of this model are float32 (rows, 4)"),
        ("train train.svm --out new --task clusters", "--task clusters is not possible; it is auto, regression or"),
        ("train train.svm --out new --regression" + CODES, "--regression and --task autoencoder are two tasks"),
        ("train train.svm --out new --fixed" + CODES, "--fixed is not for autoencoders"),
        ("train train.svm --out new --eta 0.5" + CODES, "--eta is not for autoencoders"),
        ("train train.svm --out new -k 20" + CODES, "--components needs a --scheme"),
        ("train train.svm --out new --codes 8", "--codes is for --task autoencoder"),
        ("train train.svm --out new --binary-codes", "--binary-codes is for --task autoencoder"),
        ("train train.svm --out new --codes 0" + CODES, "n_codes=0 is not possible"),
        ("train train.svm --out new --set dropout=0.5" + CODES, "an autoencoder has no setting dropout"),
        ("train train.svm --out new --scheme fourier" + CODES, "scheme='fourier' is not possible"),
        ("train train.svm --out new --scheme li --set visible=counts" + CODES, "not possible behind a projection"),
        ("train train.svm --out new --pretrain --set normalise=none", "pretrain=True is not possible with normalise"),
        ("train empty.svm --out new" + CODES, "empty.svm has no rows"),
        ("train train.svm --out model" + CODES, "model has another model"),
    ],
)
def test_bad_input(args, message, here):
    files = {
        "own.svm": "1 1:1\n2 1:1\n",
        "one.svm": "1 1:1\n",
        "far.svm": "1 3:1 41:1\n",
        "less.svm": "1 1:-2\n",
        "empty.svm": "",
        "text.npy": "numbers",
    }
    for name, text in files.items():
        (here / name).write_text(text)
    shutil.copy(here / "kinds.npz", here / "kinds.npy")
    np.save(here / "wide.npy", np.zeros((2, 5), np.float32))
    sparse.save_npz(here / "rows.npz", sparse.csr_array(np.ones((2, 40))))
    before = contents(here)
    bad(*args.split(), message=message, cwd=here)
    assert contents(here) == before
