"""Deep autoencoders: what they lose against plain formulas, their gradients, and rows that they cannot take."""

import json
import warnings

import numpy as np
import pytest
import torch
from scipy import sparse

from sketchnet import random
from sketchnet.data import CsrBatch
from sketchnet.data.csr import sparse_rows
from sketchnet.errors import InputError
from sketchnet.nn import Autoencoder, AutoencoderConfig
from sketchnet.nn.numbering import drop_entries
from sketchnet.projection import make_scheme

D = 12


def autoencoder(**settings):
    config = AutoencoderConfig(**{"n_columns": D, "hidden": (7, 5), "n_codes": 3, "seed": 4, **settings})
    network = Autoencoder(config).double().eval()
    with torch.no_grad():
        for layer in (*network.encoder, *network.decoder):
            layer.bias.normal_(generator=torch.Generator().manual_seed(1))
    return network


def documents(n=9, d=D):
    """Row 2 is empty."""
    counts = np.random.default_rng(0).poisson(0.7, (n, d)).astype(np.float64)
    counts[2] = 0
    return counts


def there_and_back(network, rows, unit, middle=lambda x: x):
    """In numpy: (codes, outputs)."""
    for layer in network.encoder[:-1]:
        rows = unit(rows @ layer.weight.detach().numpy().T + layer.bias.detach().numpy())
    codes = middle(rows @ network.encoder[-1].weight.detach().numpy().T + network.encoder[-1].bias.detach().numpy())
    rows = codes
    for layer in network.decoder[:-1]:
        rows = unit(rows @ layer.weight.detach().numpy().T + layer.bias.detach().numpy())
    return codes, rows @ network.decoder[-1].weight.detach().numpy().T + network.decoder[-1].bias.detach().numpy()


def logistic(x):
    return 1 / (1 + np.exp(-x))


UNITS = {"binary": logistic, "relu": lambda x: np.maximum(x, 0)}


@pytest.mark.parametrize("hidden", [(), (7, 5)])
@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("binary_codes", [False, True])
def test_documents_lose_the_mean_cross_entropy_of_their_words(hidden, units, binary_codes):
    network, counts = autoencoder(hidden=hidden, units=units, binary_codes=binary_codes), documents()
    network.set_length(counts.sum() / len(counts))
    even = counts * (counts.sum() / len(counts) / np.maximum(1, counts.sum(axis=1, keepdims=True)))
    codes, logits = there_and_back(network, even, UNITS[units], logistic if binary_codes else lambda x: x)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = [-sum(counts[i, j] * np.log(shares[i, j]) for j in range(D)) / max(1, counts[i].sum()) for i in range(9)]
    assert expected[2] == 0
    found = network.visible(sparse_rows(counts))
    np.testing.assert_array_equal(found.numpy(), counts)
    np.testing.assert_allclose(network.losses(found).detach().numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(network(sparse_rows(counts)).detach().numpy(), codes, rtol=1e-6)
    longer = network(sparse_rows(3 * counts)).detach().numpy()
    np.testing.assert_allclose(longer, codes, rtol=1e-6)


@pytest.mark.parametrize("units", UNITS)
def test_real_rows_lose_the_squared_distance_of_directions(units):
    """Rows are brought to one length, with the mean square 1; an empty one stays."""
    network = autoencoder(visible="real", units=units)
    x = np.random.default_rng(1).normal(2, 3, (50, D))
    x[7] = 0
    found, expected = network.visible(sparse_rows(x)), np.sqrt(D) * unit(x)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-5)
    for scale in (1e-300, 1e-3, 1e300):
        np.testing.assert_allclose(network.visible(sparse_rows(scale * x)).numpy(), expected, atol=1e-5)
    codes, back = there_and_back(network, found.numpy(), UNITS[units])
    np.testing.assert_allclose(network(sparse_rows(x)).detach().numpy(), codes, rtol=1e-9)
    distance = ((unit(back) - unit(found.numpy())) ** 2).sum(axis=1)
    np.testing.assert_allclose(network.losses(found).detach().numpy(), distance, rtol=1e-9)


def unit(rows):
    return rows / np.maximum(1e-300, np.linalg.norm(rows, axis=1, keepdims=True))


@pytest.mark.parametrize("settings", [{}, {"visible": "real", "scheme": "count_sketch", "n_components": 6}])
def test_the_encoder_sees_what_is_left_and_all_has_to_be_given_back(settings):
    network, counts = autoencoder(**settings, feature_dropout=0.5), documents(400)
    key = random.hash_key(3, random.STREAM_FEATURE_DROPOUT, 1)
    left = drop_entries(sparse_rows(counts), 0.5, key).scipy().toarray()
    assert ((left == 0) | (left == 2 * counts)).all()
    share = (left > 0).sum() / (counts > 0).sum()
    assert abs(share - 0.5) < 4 * 0.5 / np.sqrt((counts > 0).sum())
    whole, seen = (network.visible(sparse_rows(x)) for x in (counts, left))
    found = network.losses(whole, seen)
    back = network.decode(network(sparse_rows(left)))
    if settings:
        expected = (unit(back.detach().numpy()) - unit(whole.numpy())) ** 2
    else:
        expected = -counts * torch.log_softmax(back, dim=1).detach().numpy() / np.maximum(1, counts.sum(1))[:, None]
    np.testing.assert_allclose(found.detach().numpy(), expected.sum(axis=1), rtol=1e-9)
    assert not torch.equal(found, network.losses(whole))


def test_centred_codes_give_back_the_same():
    for settings in ({}, {"hidden": ()}, {"visible": "real", "units": "relu"}):
        network, rows = autoencoder(**settings), sparse_rows(documents())
        with torch.no_grad():
            codes, back = network(rows), network.decode(network(rows))
            network.centre_codes(codes.mean(dim=0))
            torch.testing.assert_close(network(rows), codes - codes.mean(dim=0))
            torch.testing.assert_close(network.decode(network(rows)), back)


@pytest.mark.parametrize("settings", [{}, {"units": "relu"}, {"visible": "real"}, {"binary_codes": True}])
def test_gradients_are_those_of_differences(settings):
    network = autoencoder(**settings)
    rows = network.visible(sparse_rows(documents(4)))
    parameters = list(network.parameters())

    def loss(*values):
        named = dict(zip([name for name, _ in network.named_parameters()], values))
        return torch.func.functional_call(_Losses(network), {f"network.{k}": v for k, v in named.items()}, (rows,))

    assert torch.autograd.gradcheck(loss, tuple(p.detach().requires_grad_() for p in parameters))


class _Losses(torch.nn.Module):
    """`losses` as a module's forward."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, rows):
        return self.network.losses(rows).mean()


def test_repeated_unsorted_ids_and_slices_and_columns_that_happen_to_be_empty():
    network = autoencoder()
    batch = CsrBatch(np.array([0, 2, 5, 6]), np.array([9, 9, 3, 0, 3, 1], np.int32), np.arange(6, dtype=np.int16), 10)
    expected = np.zeros((2, D))
    expected[0, [3, 0]], expected[1, 1] = (2 + 4, 3), 5
    np.testing.assert_array_equal(network.visible(batch.rows(slice(1, 3))).numpy(), expected)
    read_only = sparse_rows(documents())
    for array in read_only.arrays:
        array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(network.visible(read_only).numpy(), documents())


@pytest.mark.parametrize("scheme", ["count_sketch", "gaussian", "srht"])
def test_a_projection_in_front_is_the_operators(scheme):
    network = autoencoder(visible="real", n_columns=1000, scheme=scheme, n_components=16)
    x = sparse.random_array((30, 1000), density=0.02, format="csr", rng=np.random.default_rng(2))
    projected = make_scheme(scheme, 16).sample(1000, 4).apply(x)
    batch = CsrBatch(x.indptr, x.indices, x.data, 1000)
    np.testing.assert_allclose(network.visible(batch).numpy(), 4 * unit(projected), rtol=1e-9)
    assert network.encoder[0].in_features == network.decoder[-1].out_features == 16


def test_noise_only_in_training_and_only_for_binary_codes():
    rows = torch.from_numpy(documents())
    for binary, noise, differ in ((True, 4.0, True), (True, 0.0, False), (False, 4.0, False)):
        network = autoencoder(binary_codes=binary, noise=noise)
        plain = network.losses(rows)
        assert torch.equal(plain, network.losses(rows))
        network.train()
        torch.manual_seed(0)
        assert torch.equal(plain, network.losses(rows)) != differ
        assert torch.equal(network.encode(rows), network.eval().encode(rows))


def test_what_is_drawn_is_drawn_for_the_whole_batch():
    """Shares of a batch lose together what the batch loses; the noise of bits is added to their inputs."""
    rows = torch.from_numpy(documents())
    network = autoencoder(binary_codes=True, noise=4.0).train()
    found = []
    for mine in (slice(None), slice(0, 3), slice(3, len(rows))):
        torch.manual_seed(0)
        found.append(network.losses(rows, rows.flip(0), mine))
    torch.testing.assert_close(torch.cat(found[1:]), found[0])
    noise = torch.randn(len(rows), network.config.n_codes, dtype=rows.dtype)
    inputs = torch.special.logit(network.encode(rows))
    torch.testing.assert_close(torch.special.logit(network.encode(rows, noise)), inputs + noise)


def test_the_start_is_a_function_of_the_seed():
    torch.manual_seed(5)
    first = autoencoder()
    before = torch.get_rng_state()
    second, other = autoencoder(), autoencoder(seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters()))
    assert not torch.equal(first.encoder[0].weight, other.encoder[0].weight)


def test_double_is_a_copy():
    network = Autoencoder(AutoencoderConfig(D, hidden=(5,), n_codes=2))
    double = network.in_double()
    assert double.encoder[0].weight.dtype == torch.float64
    assert network.encoder[0].weight.dtype == torch.float32
    np.testing.assert_allclose(
        network(sparse_rows(documents())).detach().numpy(), double(sparse_rows(documents())).detach().numpy(), atol=1e-6
    )


def test_wide_rows_are_looked_at_a_few_at_a_time():
    with torch.device("meta"):
        network = Autoencoder(AutoencoderConfig(2**22, hidden=(2,), n_codes=1))
        assert network.at_once == 4
        assert Autoencoder(AutoencoderConfig(2**24, hidden=(2,), n_codes=1)).at_once == 1
        assert autoencoder_on_meta(n_columns=2**40).at_once == 1024


def autoencoder_on_meta(n_columns):
    return Autoencoder(AutoencoderConfig(n_columns, "real", "count_sketch", 50, hidden=(2,), n_codes=1))


def test_losses_of_real_rows():
    """By their definitions, of what is given back."""
    rows = torch.from_numpy(documents()).double() - 1
    for loss in ("direction", "mse"):
        network = autoencoder(visible="real", loss=loss)
        back = network.decode(network.encode(rows))
        if loss == "direction":
            one, other = (x / x.norm(dim=1, keepdim=True) for x in (rows, back))
            expected = (one - other).square().sum(dim=1)
        else:
            expected = (rows - back).square().sum(dim=1) / rows.shape[1]
        torch.testing.assert_close(network.losses(rows), expected)


def test_rows_that_cannot_be():
    network = autoencoder()
    counts = documents()
    counts[5, 3] = -2
    with pytest.raises(InputError, match="a count is -2; counts of words are 0 or more"):
        network(sparse_rows(counts))
    autoencoder(visible="real")(sparse_rows(counts))
    with pytest.raises(InputError, match="13 columns"):
        network(sparse_rows(documents(d=13)))
    with pytest.raises(InputError, match="row 0 has column id 12; allowed are 0 to 11"):
        network(CsrBatch(np.array([0, 1]), np.array([12]), np.ones(1), D))
    with pytest.raises(InputError, match="NaN or infinity"):
        network(CsrBatch(np.array([0, 1]), np.array([1]), np.array([np.inf]), D))
    with pytest.raises(InputError, match=r"a value is 1e\+300; networks compute in float32, to 3.4e\+38 at most"):
        network.float()(CsrBatch(np.array([0, 1]), np.array([1]), np.array([1e300]), D))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_columns": 0}, "n_columns=0 is not possible"),
        ({"n_codes": 0}, "n_codes=0 is not possible"),
        ({"hidden": 5}, "hidden=5 is not possible; it is a list of widths"),
        ({"hidden": (5, 0)}, "hidden=0 is not possible"),
        ({"visible": "binary"}, "visible='binary' is not possible; allowed are counts, real"),
        ({"units": "tanh"}, "units='tanh' is not possible; allowed are binary, relu"),
        ({"noise": -1.0}, "noise=-1.0 is not possible"),
        ({"loss": "mae", "visible": "real"}, "loss='mae' is not possible; allowed are direction, mse"),
        ({"loss": "mse"}, "loss='mse' is not possible with visible='counts'"),
        ({"binary_codes": "yes"}, "binary_codes='yes' is not possible"),
        ({"scheme": "hash", "visible": "real"}, "scheme='hash' is not possible"),
        ({"scheme": "gaussian"}, "visible='counts' is not possible behind a projection"),
        ({"options": 3}, "options=3 is not possible"),
        ({"n_columns": 2**24 + 1}, "16,777,217 columns are too many to give back; choose a scheme"),
    ],
)
def test_impossible_settings(settings, message):
    with pytest.raises(InputError, match=message):
        AutoencoderConfig(**{"n_columns": D, **settings})


def test_settings_survive_a_file():
    config = AutoencoderConfig(10**9, "real", "li", 100, {"s": 50}, [8, 4], 2, "relu", True, 1, 0.5, "mse", 2**63)
    assert AutoencoderConfig(**json.loads(json.dumps(config.to_dict()))) == config
