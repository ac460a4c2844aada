"""Products by oneDNN, on whatever processor the tests run: beside float64 and beside torch's layer."""

import pytest
import torch
from torch import nn

from sketchnet.nn import products
from sketchnet.nn.products import Linear, add_product, affine

pytestmark = pytest.mark.skipif(
    not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")),
    reason="torch has no oneDNN",
)

M, K, N = 130, 201, 187


@pytest.fixture(autouse=True)
def by_onednn(monkeypatch) -> list:
    """Products of any maker's processor go to oneDNN; the list says which did."""
    asked, real = [], products._by_onednn
    monkeypatch.setattr(products, "_mkl_holds_back", lambda: True)
    monkeypatch.setattr(
        products, "_by_onednn", lambda a, b, *bias: asked.append((*a.shape, b.shape[1])) or real(a, b, *bias)
    )
    return asked


def layouts(m: int, n: int):
    torch.manual_seed(m + n)
    yield torch.randn(m, n)
    yield torch.randn(n, m).t()
    yield torch.randn(m + 3, n + 5)[3:, 5:]
    yield torch.randn(2 * m, n)[::2]
    yield torch.randn(1, n).expand(m, n)
    yield torch.randn(m, 1).expand(m, n)


def close(ours: torch.Tensor, exact: torch.Tensor) -> None:
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours.double(), exact, rtol=1e-5, atol=1e-5 * K)


def test_a_product_is_the_same_in_any_layout(by_onednn):
    bias = torch.randn(N)
    for a in layouts(M, K):
        for b in layouts(K, N):
            close(affine(a, b), a.double() @ b.double())
            close(affine(a, b, bias), a.double() @ b.double() + bias.double())
    assert by_onednn == 72 * [(M, K, N)]


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_a_product_is_added_in_place(beta, by_onednn):
    a, b, out = torch.randn(M, K), torch.randn(K, N), torch.randn(M, N)
    exact = beta * out.double() - 0.3 * (a.double() @ b.double())
    assert add_product(out, a, b, beta, -0.3) is out
    close(out, exact)
    assert by_onednn


@pytest.mark.parametrize("sizes", [(M, K, N), (M, N, K), (16, 700, 800), (4096, 40, 48)])
@pytest.mark.parametrize("expanded", [False, True])
def test_a_layer_learns_as_torchs(sizes, expanded, by_onednn):
    rows, inputs, outputs = sizes
    torch.manual_seed(0)
    ours, plain = Linear(inputs, outputs), nn.Linear(inputs, outputs).double()
    plain.load_state_dict(ours.state_dict())
    x = torch.randn(rows, inputs, requires_grad=True)
    twin = x.detach().double().requires_grad_()
    result, exact = ours(x), plain(twin)
    close(result, exact)
    gradient = torch.ones(()).expand(rows, outputs) if expanded else torch.randn(rows, outputs)
    result.backward(gradient)
    exact.backward(gradient.double())
    close(x.grad, twin.grad)
    close(ours.weight.grad, plain.weight.grad)
    close(ours.bias.grad, plain.bias.grad)
    assert ours.weight.grad.is_contiguous()
    assert len(by_onednn) == 3


def test_what_needs_no_gradient_has_none(by_onednn):
    layer = Linear(K, N).requires_grad_(False)
    x = torch.randn(M, K, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is None
    assert layer.bias.grad is None
    assert by_onednn == [(M, K, N), (M, N, K)]


@pytest.mark.parametrize(
    ("x", "layer"),
    [
        (torch.randn(M, K, dtype=torch.float64), Linear(K, N).double()),
        (torch.randn(1, 3000), Linear(3000, 3000)),
        (torch.randn(M, 9), Linear(9, N)),
        (torch.randn(4, M, K), Linear(K, N)),
        (torch.randn(M, K), Linear(K, N, bias=False)),
    ],
    ids=["float64", "one row", "small", "batches of matrices", "no bias"],
)
def test_all_else_is_left_to_torch(x, layer, by_onednn):
    assert torch.equal(layer(x), nn.functional.linear(x, layer.weight, layer.bias))
    assert not by_onednn
