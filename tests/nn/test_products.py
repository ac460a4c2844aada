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
    biases = torch.randn(N), torch.randn(N, 2)[:, 1], torch.randn(1).expand(N)
    for a in layouts(M, K):
        for b in layouts(K, N):
            close(affine(a, b), a.double() @ b.double())
            for bias in biases:
                close(affine(a, b, bias), a.double() @ b.double() + bias.double())
    assert by_onednn == 144 * [(M, K, N)]


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_a_product_is_added_in_place(beta, by_onednn):
    for out in (torch.randn(M, N), torch.randn(N, M).t()):
        a, b = torch.randn(M, K), torch.randn(K, N)
        exact = beta * out.double() - 0.3 * (a.double() @ b.double())
        if beta == 0:
            out.fill_(torch.nan)
        assert add_product(out, a, b, beta, -0.3) is out
        close(out, exact)
    assert len(by_onednn) == 2


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


def test_gradients_of_plain_products_are_torchs(by_onednn):
    x, matrix, bias = torch.randn(M, K, requires_grad=True), torch.randn(K, N), torch.zeros(N, requires_grad=True)
    affine(x, matrix).sum().backward()
    close(x.grad, matrix.double().sum(1).expand(M, K))
    affine(x.detach(), matrix, bias).sum().backward()
    close(bias.grad, torch.full((N,), float(M)).double())
    assert not by_onednn


def test_gradients_of_gradients(by_onednn):
    x, layer = torch.randn(M, K, requires_grad=True), Linear(K, N)
    (first,) = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x)
    weight = layer.weight.double()
    inner = 2 * (x.double() @ weight.t() + layer.bias.double()) @ weight
    close(first.detach(), inner.detach())
    torch.testing.assert_close(second.double(), (4 * inner @ weight.t() @ weight).detach(), rtol=1e-4, atol=1e-2)
    assert by_onednn[0] == (M, K, N)


def test_under_functional_transforms():
    x, layer = torch.randn(M, K), Linear(K, N)
    found = torch.func.grad(lambda weight: nn.functional.mse_loss(_with(layer, weight)(x), torch.zeros(M, N)))(
        layer.weight.detach()
    )
    nn.functional.mse_loss(layer(x), torch.zeros(M, N)).backward()
    torch.testing.assert_close(found, layer.weight.grad)


def _with(layer, weight):
    return lambda x: torch.func.functional_call(layer, {"weight": weight, "bias": layer.bias.detach()}, x)


def test_without_gradients_only_numbers_of_rows_that_come_again(by_onednn):
    """Else a process that answers requests of all sizes would keep code for each."""
    layer = Linear(K, N)
    with torch.no_grad():
        for rows in (127, 128, 129):
            close(layer(torch.zeros(rows, K)), layer.bias.double().expand(rows, N))
    assert by_onednn == [(128, K, N)]


@pytest.mark.parametrize(
    ("capability", "maker", "holds_back"),
    [("AVX512", "AuthenticAMD", True), ("AVX2", "AuthenticAMD", False), ("AVX512", "GenuineIntel", False)],
)
def test_which_processors(capability, maker, holds_back, monkeypatch, tmp_path):
    monkeypatch.undo()  # of the fixture above
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: capability)
    monkeypatch.setattr("torch.backends.mkl.is_available", lambda: True)
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nvendor_id\t: {maker}\ncpu family\t: 26\n")
    monkeypatch.setattr(products, "Path", lambda path: tmp_path / path.rpartition("/")[2])
    assert products._mkl_holds_back.__wrapped__() == holds_back
    (tmp_path / "cpuinfo").unlink()
    monkeypatch.setattr("platform.processor", lambda: f"AMD64 Family 26 Model 2 Stepping 1, {maker}")
    assert products._mkl_holds_back.__wrapped__() == holds_back


@pytest.mark.filterwarnings("ignore")  # of sparse tensors, and of flags that oneDNN has beside this one
def test_autocast_and_other_rows(by_onednn):
    layer, x = Linear(K, N), torch.randn(M, K)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
    with torch.no_grad():
        close(affine(x.to_sparse_csr(), layer.weight.t()), x.double() @ layer.weight.double().t())
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        layer(torch.randn(M, K + 1))
    with torch.backends.mkldnn.flags(enabled=False):
        layer(x)
    assert not by_onednn


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
