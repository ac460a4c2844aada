"""Layers that read sparse rows: the same numbers and gradients as their dense twins, for the batch's columns alone."""

import dataclasses

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn
from torch.nn import functional

from sketchnet.data import CsrBatch
from sketchnet.errors import InputError
from sketchnet.nn import (
    Autoencoder,
    AutoencoderConfig,
    FixedProjection,
    LearnableProjection,
    NetworkConfig,
    SketchNetwork,
)
from tests.data.test_shards import batch

D, K = 60, 12
SPARSE = {"count_sketch": {}, "li": {"s": 4}}
every_sparse_scheme = pytest.mark.parametrize("scheme", SPARSE)


def learnable(scheme, d=D, k=K, **options):
    layer = LearnableProjection(d, k, scheme, seed=3, **SPARSE[scheme], **options)
    torch.nn.init.normal_(layer.bias, generator=torch.Generator().manual_seed(0))
    return layer


def rows(n=40, seed=0, d=D, dtype=np.float32):
    """Unsorted and repeated ids, some rows empty; a slice, so that offsets do not begin at zero."""
    x = batch(n + 3, seed, d, labels=None)
    return dataclasses.replace(x, values=x.values.astype(dtype)).rows(slice(3, n + 3))


def identity(d=D):
    return CsrBatch(np.arange(d + 1), np.arange(d), np.ones(d, np.float32), d)


def dense(x):
    return torch.from_numpy(x.scipy().toarray())


def where(layer):
    """Row and column in the dense matrix of each of the layer's weights."""
    starts, codes = layer.operator.pattern(np.arange(layer.operator.d))
    return np.repeat(np.arange(layer.operator.d), np.diff(starts)), np.where(codes < 0, ~codes, codes)


def dense_weight(layer):
    weight = torch.zeros(layer.operator.d, layer.operator.k, dtype=layer.weight.dtype)
    weight[where(layer)] = layer.weight.detach()
    return weight.requires_grad_()


def as_bags(x):
    """A batch as embedding_bag takes it."""
    tensors = x.torch()
    return tensors["indices"], tensors["indptr"][:-1], tensors["values"].clone().requires_grad_()


def weighted_loss(outputs):
    """A loss whose gradient differs from entry to entry."""
    factors = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(1)).to(outputs.dtype)
    return (factors * outputs + outputs**2).sum()


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("scheme", ["gaussian", "achlioptas", "li", "srht", "srht_sparse", "count_sketch"])
def test_a_fixed_projection_is_a_product_and_so_is_its_gradient(scheme):
    options = {"density": 0.2} if scheme == "srht_sparse" else {}
    layer, x = FixedProjection(D, K, scheme, seed=3, **options), rows()
    P = torch.from_numpy(layer.operator.block(slice(None)))
    close(layer(x), dense(x) @ P)
    values = torch.from_numpy(x.values.copy()).requires_grad_()
    outputs = layer(x, values)
    weighted_loss(outputs).backward()
    gradient = torch.autograd.grad(weighted_loss(outputs), outputs)[0]
    owners = np.repeat(np.arange(x.n_rows), np.diff(x.indptr))
    close(values.grad, (gradient @ P.T)[owners, x.indices])
    assert list(layer.parameters()) == []


@every_sparse_scheme
def test_a_learnable_projection_begins_as_the_scheme_draws_it(scheme):
    layer, x = LearnableProjection(D, K, scheme, seed=3, **SPARSE[scheme]), rows()
    P = layer.operator.block(slice(None))
    assert np.array_equal(layer(identity()).detach().numpy(), P)
    assert len(layer.weight) == np.count_nonzero(P)
    close(layer(x), dense(x) @ torch.from_numpy(P))
    close(layer(x), FixedProjection(D, K, scheme, seed=3, **SPARSE[scheme])(x))


@every_sparse_scheme
@pytest.mark.parametrize("n", [0, 1, 40])
def test_gradients_are_those_of_a_dense_layer(scheme, n):
    layer, x = learnable(scheme), rows(n)
    weight, bias = dense_weight(layer), layer.bias.detach().clone().requires_grad_()
    values = torch.from_numpy(x.values.copy()).requires_grad_()
    entries = torch.zeros(n, D).index_put((torch.from_numpy(np.repeat(np.arange(n), np.diff(x.indptr))),
                                           torch.from_numpy(x.indices)), values, accumulate=True)  # fmt: skip
    weighted_loss(entries @ weight + bias).backward()
    ours = torch.from_numpy(x.values.copy()).requires_grad_()
    outputs = layer(x, ours)
    close(outputs, entries.detach() @ weight + bias)
    weighted_loss(outputs).backward()
    close(layer.weight.grad.to_dense(), weight.grad[where(layer)])
    close(layer.bias.grad, bias.grad)
    close(ours.grad, values.grad)


def test_gradients_are_those_of_embedding_bag():
    x, layer = rows(), learnable("count_sketch")
    weight, bias = dense_weight(layer), layer.bias.detach()
    ids, offsets, values = as_bags(x)
    theirs = functional.embedding_bag(ids, weight, offsets, mode="sum", per_sample_weights=values) + bias
    ours = torch.from_numpy(x.values.copy()).requires_grad_()
    outputs = layer(x, ours)
    close(outputs, theirs)
    weighted_loss(theirs).backward()
    weighted_loss(outputs).backward()
    close(layer.weight.grad.to_dense(), weight.grad[where(layer)])
    close(ours.grad, values.grad)


@pytest.mark.parametrize("which", SPARSE)
def test_gradients_agree_with_finite_differences(which):
    x = rows(10, dtype=np.float64)
    layer = learnable(which).double()
    values = torch.from_numpy(x.values.copy()).requires_grad_()
    weighted_loss(layer(x, values)).backward()

    def loss(x=x):
        with torch.no_grad():
            return float(weighted_loss(layer(x)))

    step, flat = 1e-5, layer.weight.detach().reshape(-1)
    gradient = layer.weight.grad.to_dense().reshape(-1)
    for i in range(0, len(flat), 3):
        flat[i] += step
        above = loss()
        flat[i] -= 2 * step
        assert float(gradient[i]) == pytest.approx((above - loss()) / (2 * step), rel=1e-6, abs=1e-6)
        flat[i] += step
    for t in range(0, len(x.values), 3):
        moved = np.zeros(len(x.values))
        moved[t] = step
        above, below = (loss(dataclasses.replace(x, values=x.values + sign * moved)) for sign in (1, -1))
        assert float(values.grad[t]) == pytest.approx((above - below) / (2 * step), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("which", SPARSE)
def test_the_gradient_is_sparse_and_has_the_columns_of_the_batch_alone(which):
    d = 100_000
    layer = learnable(which, d)
    x = rows(5, d=d)
    weighted_loss(layer(x)).backward()
    gradient = layer.weight.grad
    assert gradient.is_sparse
    found = gradient._indices()[0].tolist()
    assert len(set(found)) == len(found)
    columns = where(layer)[0][found]
    present = set(x.indices.tolist())
    assert set(columns) == present if which != "li" else present & set(where(layer)[0])


@pytest.mark.parametrize("which", SPARSE)
def test_gradients_of_several_batches_add_up(which):
    """As torch adds them: in one graph, and over several backward passes."""
    layer = learnable(which)
    parts = [rows(6, seed) for seed in range(5)]
    gradients = []
    for part in parts:
        layer.zero_grad()
        weighted_loss(layer(part)).backward()
        gradients.append(layer.weight.grad.to_dense())
    layer.zero_grad()
    sum(weighted_loss(layer(part)) for part in parts[:3]).backward()
    for part in parts[3:]:
        weighted_loss(layer(part)).backward()
    close(layer.weight.grad.to_dense(), sum(gradients))
    # what says of itself that it is coalesced must be so: nobody would add up its repeated indices any more
    total = torch.autograd.grad(weighted_loss(layer(parts[0])) + weighted_loss(layer(parts[1])), layer.weight)[0]
    total = total.coalesce()
    assert total._nnz() == len(total.indices()[0].unique())
    close(total.to_dense(), gradients[0] + gradients[1])


@every_sparse_scheme
def test_weights_outside_the_pattern_stay_zero(scheme):
    layer = learnable(scheme)
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.01)
    for seed in range(20):
        optimiser.zero_grad()
        weighted_loss(layer(rows(seed=seed))).backward()
        optimiser.step()
    with torch.no_grad():
        weight = (layer(identity()) - layer.bias).numpy()
        exact = dense_weight(layer).numpy()
    start = layer.operator.block(slice(None))
    assert np.array_equal(exact != 0, start != 0)
    assert np.abs(weight - exact).max() < 1e-6
    assert (exact != start)[start != 0].mean() > 0.9


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float16])
def test_values_of_any_kind_and_unusual_ids(dtype):
    """Counts and flags, ids of other widths and from read-only files."""
    x = rows()
    values = np.abs(3 * x.values).astype(dtype)
    unusual = dataclasses.replace(
        x, values=values, indices=x.indices.astype(np.uint16), indptr=x.indptr.astype(np.uint32)
    )
    for array in unusual.arrays:
        array.flags.writeable = False
    plain = dataclasses.replace(x, values=values.astype(np.float32))
    for layer in (learnable("count_sketch"), learnable("li"), FixedProjection(D, K)):
        ours, theirs = layer(unusual), layer(plain)
        assert torch.equal(ours, theirs)
        if ours.requires_grad:
            weighted_loss(ours).backward()
            gradient, layer.weight.grad = layer.weight.grad.to_dense(), None
            weighted_loss(theirs).backward()
            assert torch.equal(gradient, layer.weight.grad.to_dense())


def repeated(coo):
    return torch.sparse_coo_tensor(coo.indices().repeat(1, 2), coo.values().repeat(2) / 2, coo.shape)


KINDS = {
    "csc": sparse.csc_array,
    "array": np.asarray,
    "list": np.ndarray.tolist,
    "dense": torch.from_numpy,
    "csr": lambda array: torch.from_numpy(array).to_sparse_csr(),
    "coo": lambda array: torch.from_numpy(array).to_sparse_coo(),
    "coo, repeated": lambda array: repeated(torch.from_numpy(array).to_sparse_coo()),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", ["fixed", "learnable", "network", "hashed", "autoencoder"])
def test_rows_of_any_kind(which, kind):
    small = {"n_components": 4, "hidden": (4,)}
    layer = {
        "fixed": lambda: FixedProjection(D, K),
        "learnable": lambda: learnable("li"),
        "network": lambda: SketchNetwork(NetworkConfig(D, 3, **small)).eval(),
        "hashed": lambda: SketchNetwork(NetworkConfig(D, 3, hashed_columns=32, **small)).eval(),
        "autoencoder": lambda: Autoencoder(AutoencoderConfig(D, "real", **small)),
    }[which]()
    close(layer(KINDS[kind](rows().scipy().toarray())).float(), layer(rows()))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "X is of type NoneType and no matrix; allowed are NumPy arrays, lists"),
        ([[1.0], [1.0, 2.0]], "X is of type list and no matrix"),
        (torch.zeros(D), "X has 1 dimensions"),
        (torch.zeros(3, D + 1), "X has 61 columns"),
        (torch.zeros(3, D, dtype=torch.complex64), "dtype complex64"),
        (torch.zeros(3, D, requires_grad=True), "wants a gradient, and projections have none for it"),
        (torch.zeros(2, 3, D).to_sparse(), "sparse tensor of shape .2, 3, 60.; it must have two dimensions"),
        (torch.ones(3, D).to_sparse(1), "sparse tensor of shape .3, 60.; it must have two dimensions"),
        (torch.full((1, D), torch.nan), "NaN or infinity: nan in row 0, column 0"),
    ],
)
def test_what_is_no_matrix(given, message):
    for layer in (FixedProjection(D, K), learnable("li")):
        with pytest.raises(InputError, match=message):
            layer(given)


def test_tensors_may_be_half_as_wide_or_not_want_their_gradient_now():
    x = torch.from_numpy(rows().scipy().toarray())
    half, layer = x.bfloat16(), FixedProjection(D, K)
    close(layer(half), layer(half.float()))
    with torch.no_grad():
        close(layer(x.clone().requires_grad_()), layer(x))


@pytest.mark.parametrize("which", ["gaussian", "count_sketch", "learnable count_sketch", "learnable li"])
def test_outputs_are_of_the_layer_s_type_and_not_of_the_rows(which):
    """scipy's own type is float64, and what comes behind a layer has float32."""
    kind, _, scheme = which.rpartition(" ")
    layer = learnable(scheme) if kind else FixedProjection(D, K, scheme)
    single, double, whole = rows(), rows(dtype=np.float64), CsrBatch(*identity().arrays[:2], np.arange(D), D)
    assert torch.nn.Linear(K, 2)(layer(double.scipy())).dtype == torch.float32
    close(layer(double), layer(single))
    assert layer(whole).dtype == layer(np.eye(D, dtype=bool)).dtype == torch.float32
    values = torch.from_numpy(double.values.copy()).requires_grad_()
    layer(double.scipy(), values).sum().backward()
    assert values.grad.dtype == torch.float64
    layer.double()
    assert layer(single).dtype == layer(double).dtype == torch.float64
    close(layer(double).float(), layer.float()(single))


@every_sparse_scheme
def test_gradients_of_a_layer_in_double_are_not_rounded(scheme):
    layer, x = learnable(scheme).double(), rows(dtype=np.float64)
    (layer(x) / 3).sum().backward()
    assert layer.bias.grad.dtype == layer.weight.grad.dtype == torch.float64
    assert torch.allclose(layer.bias.grad, torch.tensor(x.n_rows / 3, dtype=torch.float64), rtol=1e-12)


@pytest.mark.parametrize("layer", [LearnableProjection, FixedProjection])
def test_layers_stand_in_models_that_torch_compiles(layer):
    net = nn.Sequential(layer(60, 8), nn.Linear(8, 1))
    X = sparse.random_array((20, 60), density=0.2, format="csr", dtype=np.float32, rng=np.random.default_rng(0))
    compiled = torch.compile(net, backend="eager")
    assert torch.equal(compiled(X), net(X))
    compiled(X).sum().backward()
    assert all(p.grad is not None for p in net.parameters())


@pytest.mark.parametrize("kind", ["half", "bfloat16"])
def test_tables_of_half_the_width_are_refused(kind):
    with pytest.raises(InputError, match=r"weights of columns are of torch.*16; allowed are float32 and float64"):
        getattr(LearnableProjection(60, 8), kind)()(np.ones((2, 60), np.float32))
