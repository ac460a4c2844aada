"""Two processes that torchrun starts, over gloo, end with the network of one process with the whole batch."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from sketchnet.data import Synthetic, write_svmlight
from sketchnet.nn.dropout import Dropout
from sketchnet.nn.norm import BatchNorm
from sketchnet.nn.share import Share
from sketchnet.training.processes import Processes

RATES = "--set sparse_rate=0.01"
SETTINGS = {  # the last batch of 451 rows has a single one, so that a process has none of it
    "learnt": f"--components 32 --hidden 16,8 --epochs 3 --set dropout=0.5 {RATES}",
    "li, sgd": "--scheme li --components 32 --hidden 16 --epochs 2 --set optimiser=sgd --set rate=0.05",
    "codes": "--task autoencoder --scheme srht --components 32 --hidden 16 --codes 4 --epochs 3 --binary-codes",
}


def run(command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env={**os.environ, **(env or {})})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", SETTINGS)
def test_torchrun_trains_the_same_network(name, tmp_path):
    """To rounding: sums over shares are made in another order. Adam makes as much of a gradient that is nothing but
    rounding, such as that of a bias before batch norm, as of any other.
    """
    data = Synthetic(n=501, d=2000, density=1e-2).rows(slice(0, 501))
    write_svmlight(tmp_path / "rows.svm", data)
    given = ["train", str(tmp_path / "rows.svm"), *SETTINGS[name].split(), "--batch-size", "50"]
    given += ["--device", "cpu", "--columns", "2000"]
    threads = {"OMP_NUM_THREADS": "1", "SKETCHNET_THREADS": "1"}
    alone, together = tmp_path / "alone", tmp_path / "together"
    run([sys.executable, "-m", "sketchnet", *given, "--out", str(alone)], threads)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    said = run([*torchrun, "sketchnet", *given, "--out", str(together)], threads)
    assert said.count("\nepoch 1:") == 1  # the first process alone speaks
    assert sorted(path.name for path in together.iterdir()) == sorted(path.name for path in alone.iterdir())
    one, two = (load_file(folder / "weights.safetensors") for folder in (alone, together))
    assert one.keys() == two.keys()
    for key, tensor in one.items():
        np.testing.assert_allclose(two[key], tensor, rtol=2e-3, atol=2e-5 if "sgd" in name else 2e-4, err_msg=key)


def test_shares_are_the_whole():
    for n in (0, 1, 7, 64):
        for count in (1, 2, 3, 5):
            shares = [Processes(rank, count).share(n) for rank in range(count)]
            assert [row for share in shares for row in range(n)[share]] == list(range(n))


def test_layers_of_shares_are_those_of_the_whole():
    """Sums over both shares are made here by computing them beforehand."""
    rows = torch.randn(11, 5, dtype=torch.float64)
    whole, parts = (BatchNorm(5, dtype=torch.float64) for _ in range(2))
    expected, n, mean = whole(rows), len(rows), rows.mean(dim=0)
    sums = iter([rows.sum(dim=0), (rows - mean).square().sum(dim=0)] * 2)
    found = []
    for part in (slice(0, 5), slice(5, 11)):
        parts.share = Share(part.start, n, lambda tensor: next(sums))
        found.append(parts(rows[part]))
    torch.testing.assert_close(torch.cat(found), expected)
    drop, masks = Dropout(0.5), []
    for share in (None, Share(0, 11, None), Share(5, 11, None)):
        torch.manual_seed(3)
        drop.share = share
        masks.append(drop(torch.ones(11 if share is None else 6 if share.first else 5, 4)))
    assert torch.equal(torch.cat(masks[1:]), masks[0])
