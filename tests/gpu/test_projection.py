"""Projections on a CUDA device: the same matrices as on the processor, the same products to rounding."""

import json

import numpy as np
import pytest
import torch
from scipy import sparse

from sketchnet import RandomProjection
from sketchnet.data import CsrBatch
from sketchnet.errors import InputError
from sketchnet.kernels import backend
from sketchnet.kernels.registry import gpu_missing
from sketchnet.projection import Gaussian, make_scheme
from sketchnet.projection.on_disk import project_to_file
from sketchnet.random import hash_key
from tests.projection.schemes import LAWS, every_law
from tests.projection.test_golden import GOLDEN, ROWS, SCHEMES

pytestmark = pytest.mark.skipif(gpu_missing() is not None, reason=f"no GPU kernels: {gpu_missing()}")

WIDE = 2**62 + 12_345
NORMAL = {"gaussian", "srht-sparse"}  # to rounding; the others have P exactly


def on_device():
    from sketchnet.projection import on_device

    return on_device


def project(operator, X, **how):
    return on_device().project_on_device(operator, X, **how)


def rows(n=300, d=WIDE, longest=60, dtype=np.float32, seed=0) -> CsrBatch:
    """Rows of very different lengths, some empty, ids unsorted and repeated; offsets that do not begin at zero."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest, n) * rng.integers(0, 2, n)
    lengths[n // 2] = 40 * longest
    ids = rng.integers(0, d, lengths.sum())
    ids[1::7] = ids[::7][: len(ids[1::7])]
    values = rng.standard_normal(lengths.sum()).astype(dtype)
    return CsrBatch(7 + np.concatenate([[0], np.cumsum(lengths)]), ids, values, d)


def identity(ids, d) -> CsrBatch:
    return CsrBatch(np.arange(len(ids) + 1), np.asarray(ids), np.ones(len(ids), np.float32), d)


def plain_product(X: CsrBatch, P: np.ndarray, rounded) -> np.ndarray:
    """X @ P by plain sums, given the rows of P that X's entries meet."""
    P, out = P.astype(rounded), np.zeros((X.n_rows, P.shape[1]), rounded)
    np.add.at(out, np.repeat(np.arange(X.n_rows), np.diff(X.indptr)), X.values.astype(rounded)[:, None] * P)
    return out


def assert_as_good(result, operator, X):
    """err(kernel) <= 2 err(plain float32) + atol, both against float64."""
    P = operator.block(X.indices, dtype=np.float64)
    truth = plain_product(X, P, np.float64)
    plain = np.abs(plain_product(X, P, np.float32) - truth).max()
    assert np.abs(result - truth).max() <= 2 * plain + 1e-6 * np.abs(X.values).max()


@every_law
@pytest.mark.parametrize("d", [2000, 2**33, WIDE])
@pytest.mark.parametrize("k", [1, 7, 300])
def test_entries(law, k, d):
    operator = LAWS[law](k, d).sample(d, 2**64 - 5)
    ids = np.concatenate([np.arange(50), [d // 3, d // 2 + 1, d - 1]])
    ours = project(operator, identity(ids, d)).cpu().numpy()
    theirs = operator.block(ids, backend="cpu" if k == 300 else "reference")  # whose plain loops take their time
    if law in NORMAL:
        assert np.abs(ours - theirs).max() <= 2e-6 * max(1, np.abs(theirs).max())
    else:
        # The sign form of SRHT has integers beyond one, whose product with the scale is rounded once or twice.
        assert np.allclose(ours, theirs, rtol=3e-7 if law == "srht-sign" else 0, atol=0)


def test_golden_vectors():
    golden = json.loads(GOLDEN.read_text())
    for name, options in SCHEMES.items():
        operator = make_scheme(name.split("-")[0], 12, **options).sample(2**40, seed=0xC0FFEE123456789)
        entries = project(operator, identity(ROWS, 2**40)).cpu().numpy() / operator.scale
        assert np.allclose(entries, golden[name], rtol=1e-6, atol=2e-5), name


def test_normals_to_rounding():
    """Half a million of them: rare ones too, with a tiny radius or a large one."""
    ids, k = np.arange(500), 1000
    operator = Gaussian(k).sample(10**6, 3)
    ours = project(operator, identity(ids, 10**6)).cpu().numpy() / operator.scale
    theirs = operator.block(ids, dtype=np.float64, backend="reference") / operator.scale
    assert np.abs(ours - theirs).max() <= 5e-6
    radius = np.hypot(theirs[:, ::2], theirs[:, 1::2])
    assert (np.abs(ours - theirs)[:, ::2] / radius).max() <= 2e-6
    assert radius.min() < 0.01
    assert radius.max() > 4.5


@every_law
@pytest.mark.parametrize("k", [33, 1000, 1030])
def test_products(law, k):
    d = 5000 if law == "li-5" else WIDE
    X, operator = rows(d=d, n=60), LAWS[law](k, d).sample(d, 1)
    result = project(operator, X)
    assert result.dtype == torch.float32
    assert result.is_cuda
    assert_as_good(result.cpu().numpy(), operator, X)
    assert not result[torch.from_numpy(np.diff(X.indptr) == 0)].any()
    short = project(operator, X, dtype=torch.bfloat16)
    assert short.dtype == torch.bfloat16
    assert torch.equal(short, result.bfloat16())


@every_law
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_as_on_the_processor(law, index):
    X = rows(d=100_000)
    X = CsrBatch(X.indptr, X.indices.astype(index), X.values, X.n_columns)
    operator = LAWS[law](128, 100_000).sample(100_000, 1)
    here, there = operator.apply(X), operator.apply(X, device="cuda")
    assert isinstance(there, np.ndarray)
    np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(there, project(operator, X).cpu().numpy())
    dense = sparse.random_array((20, 100_000), density=1e-3, rng=np.random.default_rng(0), dtype=np.float32)
    np.testing.assert_allclose(
        operator.apply(dense.toarray(), device="cuda"), operator.apply(dense), rtol=1e-4, atol=1e-4
    )


@every_law
def test_streams_the_same(law):
    X = rows(n=1000, d=2**40, dtype=np.float64)
    operator = LAWS[law](100, 2**40).sample(2**40, 1)
    whole = project(operator, X)
    assert len(on_device().device_slices(X, 100, 150_000)) > 5
    out = np.full((1000, 100), np.nan, np.float32)
    assert project(operator, X, out=out, memory=150_000) is out
    np.testing.assert_array_equal(out, whole.cpu().numpy())
    short = torch.full((1000, 100), torch.nan, dtype=torch.bfloat16)
    project(operator, X, out=short, memory=150_000)
    assert torch.equal(short, whole.bfloat16().cpu())
    pieces = torch.full_like(whole, torch.nan)
    assert torch.equal(project(operator, X, out=pieces, memory=150_000), whole)


def test_many_pieces_while_others_are_under_way():
    """Buffers are used again only when they are free: a race would show in one of many pieces."""
    X = rows(n=40_000, d=10**6, longest=20)
    operator = Gaussian(256).sample(10**6, 1)
    whole = project(operator, X).cpu().numpy()
    for _ in range(3):
        out = np.full((40_000, 256), np.nan, np.float32)
        project(operator, X, out=out, memory="2MB")
        np.testing.assert_array_equal(out, whole)


@pytest.mark.parametrize("law", ["count_sketch", "gaussian", "srht"])
def test_into_a_file(law, tmp_path):
    X = rows(n=500, d=2**40)
    operator = LAWS[law](64, 2**40).sample(2**40, 1)
    stop = 3

    def progress(done, total):
        if done == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        project_to_file(operator, X, tmp_path / "y.npy", memory=120_000, device="cuda", progress=progress)
    stop = -1
    result = project_to_file(operator, X, tmp_path / "y.npy", memory=120_000, device="cuda", progress=progress)
    np.testing.assert_array_equal(result, project(operator, X).cpu().numpy())


@every_law
def test_no_rows(law):
    operator = LAWS[law](10, 100).sample(100, 1)
    X = sparse.csr_array((0, 100), dtype=np.float32)
    assert project(operator, X).shape == (0, 10)
    assert operator.apply(X, device="cuda").shape == (0, 10)
    assert not operator.apply(sparse.csr_array((5, 100), dtype=np.float32), device="cuda").any()


def test_bad_input():
    operator = Gaussian(10).sample(100, 1)
    good = sparse.csr_array(np.eye(3, 100, dtype=np.float32))
    bad = good.copy()
    bad.data[1] = np.nan
    with pytest.raises(InputError, match="row 1, column 1"):
        operator.apply(bad, device="cuda")
    with pytest.raises(InputError, match="row 0 has column id 100; allowed are 0 to 99"):
        project(operator, CsrBatch(np.array([0, 1]), np.array([100]), np.ones(1, np.float32), 100))
    with pytest.raises(InputError, match="X has 99 columns"):
        project(operator, good[:, :99])
    with pytest.raises(InputError, match=r"out has shape \(3, 11\)"):
        project(operator, good, out=np.empty((3, 11), np.float32))
    with pytest.raises(InputError, match="float32 or bfloat16"):
        project(operator, good, dtype=torch.float64)
    with pytest.raises(InputError, match="use the cpu"):
        operator.apply(good.astype(np.float64), device="cuda")
    with pytest.raises(InputError, match="a row has 100 entries, too many for 1000 B on the GPU; at least 4 KiB are"):
        project(operator, sparse.csr_array(np.ones((2, 100))), memory=1000)
    with pytest.raises(InputError, match="CUDA devices"):
        operator.apply(good, device="cuda:99")


def test_auto_takes_the_gpu_for_much_work(monkeypatch):
    X = rows(n=1000, d=10**6)
    projection = RandomProjection("gaussian", 100).fit(X.scipy())
    here = projection.transform(X.scipy())  # little: on the processor
    np.testing.assert_array_equal(here, projection.operator_.apply(X))
    monkeypatch.setattr("sketchnet.projection.device_choice._WORTHWHILE", 1)
    there = projection.transform(X.scipy())
    np.testing.assert_array_equal(there, projection.operator_.apply(X, device="cuda"))
    assert not np.array_equal(here, there)
    assert projection.transform(X.scipy().astype(np.float64)).dtype == np.float64


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (1000, 37), (3000, 10_001)])
def test_moments(n, k, dtype):
    rows = (torch.randn((n, k), generator=torch.Generator().manual_seed(0)) + 100).to(dtype)
    mean, squares, largest = backend("gpu").moments(rows.cuda())
    exact = rows.double()
    assert torch.allclose(mean.cpu(), exact.mean(dim=0), rtol=1e-12)
    assert torch.allclose(squares.cpu(), exact.var(dim=0, correction=0) * n, rtol=1e-9)
    assert torch.equal(largest.cpu(), exact.abs().amax(dim=0))
    shift, scale, out = mean.float(), 1 / (1 + squares.float()), torch.empty((n, k), device="cuda")
    backend("gpu").normalise(rows.cuda(), shift, scale, out)
    assert torch.allclose(out, (rows.cuda().float() - shift) * scale, rtol=1e-6, atol=1e-6)
    assert all(not moment.any() for moment in backend("gpu").moments(rows[:0].cuda()))


def test_frequencies_of_both_widths():
    """Ids and frequencies up to 2**63; those below 2**32 may come in half the bits."""
    rng = np.random.default_rng(0)
    ids, key = torch.from_numpy(rng.integers(0, 2**32, 500)).cuda(), hash_key(3, 5)
    csr = torch.tensor([0, 200, 200, 500]).cuda(), ids, torch.randn(500).cuda()
    f = torch.from_numpy(rng.integers(0, 2**32, 40).astype(np.uint32).view(np.int32)).cuda()
    picks = torch.arange(41).cuda(), torch.ones(40).cuda()
    narrow, wide = torch.full((3, 45), torch.nan).cuda(), torch.full((3, 45), torch.nan).cuda()
    kernels, columns = backend("gpu"), slice(3, 43)
    kernels.hadamard_sparse(*csr, key, picks[0], f, picks[1], 0.5, narrow, columns)
    kernels.hadamard_sparse(*csr, key, picks[0], f.long() & 0xFFFFFFFF, picks[1], 0.5, wide, columns)
    assert torch.equal(narrow[:, columns], wide[:, columns])
    assert narrow[:, :3].isnan().all()
    assert narrow[:, 43:].isnan().all()
