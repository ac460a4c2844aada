"""Whole networks: which rows and settings they take, and that a plain PyTorch loop can train them."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from torch.nn import functional

from sketchnet import random
from sketchnet.data import CsrBatch
from sketchnet.errors import InputError
from sketchnet.nn import FixedProjection, LearnableProjection, NetworkConfig, SketchNetwork
from sketchnet.nn.network import hash_columns
from tests.nn.test_projection_layers import SPARSE, D, K, close, every_sparse_scheme, rows


def network(**options):
    options = {"n_components": 8, "hidden": (6,), "options": {}, **options}
    return SketchNetwork(NetworkConfig(**{"n_columns": D, "n_outputs": 2, **options}))


@pytest.mark.parametrize(
    "layer",
    [
        FixedProjection(50, 4),
        FixedProjection(50, 4, "gaussian"),
        LearnableProjection(50, 4),
        LearnableProjection(50, 4, "li"),
        network(n_columns=50),
        network(n_columns=50, scale_input="max_abs"),
        network(n_columns=50, learn=False),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_ids_beyond_the_columns_are_errors(layer):
    x = CsrBatch(np.array([0, 1, 2, 4]), np.array([3, 49, 7, 50]), np.ones(4, np.float32), 50)
    with pytest.raises(InputError, match="row 2 has column id 50; allowed are 0 to 49"):
        layer(x)
    with pytest.raises(InputError, match="row 1 has column id -2; allowed are 0 to 49"):
        layer(dataclasses.replace(x, indices=np.array([3, -2, 7, 4])))
    with pytest.raises(InputError, match="51 columns"):
        layer(dataclasses.replace(x, n_columns=51, indices=np.array([3, 4, 7, 4])))
    with pytest.raises(InputError, match="nan in row 0, column 3"):
        layer(dataclasses.replace(x, indices=np.array([3, 4, 7, 4]), values=np.array([np.nan, 1, 1, 1])))


def test_hashed_columns_take_any_id():
    net = network(n_columns=2**63, hashed_columns=40).eval()
    ids = np.array([2**63 - 1, 0, 2**31, 2**40 + 5])
    x = CsrBatch(np.array([0, 2, 2, 4]), ids, np.array([1, 2, 3, 4], np.float32), 2**63)
    hashed = hash_columns(x, 40, net._table_key)
    hashes = random.hash64(ids.astype(np.uint64), *net._table_key)
    assert np.array_equal(hashed.indices, random.bucket_of(hashes, np.uint64(40)))
    outputs = net(x)
    assert torch.isfinite(outputs).all()
    twin = network(n_columns=40).eval()
    twin.load_state_dict(net.state_dict())
    assert torch.equal(outputs, twin(hashed))
    outputs.sum().backward()
    assert set(net.projection.weight.grad._indices()[0].tolist()) == set(hashed.indices.tolist())
    with pytest.raises(InputError, match="column id -1 is negative"):
        net(dataclasses.replace(x, indices=np.array([0, -1, 2, 3])))
    with pytest.raises(InputError, match="too large"):
        net(dataclasses.replace(x, indices=np.array([0, 1, 2, 2**63], np.uint64)))


@pytest.mark.parametrize("normalise", ["batch", "none"])
@pytest.mark.parametrize("learn", [True, False])
def test_a_single_row_in_training(normalise, learn):
    """Batch norm takes its averages, which a row without a variance does not move."""
    net = network(normalise=normalise, learn=learn)
    net.train()
    net(rows())
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    outputs = net(rows(1, seed=4))
    outputs.sum().backward()
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, before[name])
    for parameter in net.parameters():
        gradient = parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad
        assert torch.isfinite(gradient).all()
    net.eval()
    close(outputs, net(rows(1, seed=4)))


@every_sparse_scheme
def test_in_a_plain_pytorch_loop(scheme):
    """torch.optim.SparseAdam for the weights of columns, any other optimiser for the rest."""
    x = rows(200)
    truth = np.random.default_rng(0).standard_normal(D)
    target = torch.from_numpy(np.sign(x.scipy() @ truth)).float()
    net = network(n_outputs=1, scheme=scheme, options=SPARSE[scheme])
    rest = [p for p in net.parameters() if p is not net.projection.weight]
    optimisers = torch.optim.SparseAdam([net.projection.weight], lr=0.02), torch.optim.Adam(rest, lr=0.02)
    losses = []
    for _ in range(30):
        net.train()
        for start in range(0, 200, 40):
            span = slice(start, start + 40)
            loss = functional.soft_margin_loss(net(x.rows(span))[:, 0], target[span])
            for optimiser in optimisers:
                optimiser.zero_grad()
            loss.backward()
            for optimiser in optimisers:
                optimiser.step()
            losses.append(float(loss.detach()))
    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:5])


def test_a_network_in_double_differs_by_rounding():
    net = network()
    net.train()
    net(rows())
    net.eval()
    before = copy.deepcopy(net.state_dict())
    twin = net.in_double()
    single, double = net(rows()), twin(rows(dtype=np.float64))
    assert single.dtype == torch.float32
    assert double.dtype == torch.float64
    close(single, double.float())
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, before[name])
        assert tensor.dtype == before[name].dtype


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LearnableProjection(D, K, "gaussian"), "'gaussian' cannot be learnt; only count_sketch and li can"),
        (
            lambda: LearnableProjection(D, K, "achlioptas"),
            "'achlioptas' cannot be learnt; only count_sketch and li can",
        ),
        (lambda: LearnableProjection(D, K, ["li"]), r"there is no scheme \['li'\]; there are gaussian"),
        (lambda: LearnableProjection(D, K, eta=1.5), "eta=1.5 is not possible"),
        (lambda: LearnableProjection(2**40, K), "ask for a hashed table"),
        (lambda: network(normalise="standard"), "is not for learnt projections"),
        (lambda: network(normalise="row"), "normalise='row' is not possible; allowed are batch"),
        (lambda: network(activation="tanh"), "activation='tanh' is not possible"),
        (lambda: network(dropout=1.0), "dropout=1.0 is not possible"),
        (lambda: network(hidden=(5, 0)), "hidden=0 is not possible; it must be an integer from 1"),
    ],
)
def test_impossible_settings(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_bad_values_are_told_by_the_column_that_people_know():
    network = SketchNetwork(NetworkConfig(10**6, 1, hashed_columns=64, n_components=4, hidden=(2,)))
    bad = CsrBatch(np.array([0, 1]), np.array([777_777]), np.array([np.nan]), 10**6)
    with pytest.raises(InputError, match="nan in row 0, column 777777"):
        network(bad)


def test_the_dense_part_is_moved_as_torch_moves_modules():
    network = SketchNetwork(NetworkConfig(10, 1, learn=False, normalise="standard", n_components=4))
    for how in (((), {"dtype": torch.float64}), (("cpu", torch.float32), {}), (("cpu",), {"non_blocking": True})):
        network.to(*how[0], **how[1])
    assert network.layers[-1].weight.dtype == network.shift.dtype == torch.float32
