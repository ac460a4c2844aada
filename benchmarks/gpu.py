"""How fast is a GPU, beside what its memory allows and beside plain PyTorch?

    python benchmarks/gpu.py [--quick] [--json]

Times are the fastest of three runs in a row after a warm-up (which compiles), one run for webspam's and KDD2010-b's
shape, the device waited for; k = 1000. Data is made on the GPU and lies there unless the case says otherwise. `ratio`
says how many times less time we take than the peer; for a physical limit it is the share of it that we reach.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import NamedTuple

import torch
from harness import best_time, main, name_device, row

from sketchnet.data.csr import CsrBatch, as_csr
from sketchnet.projection import SRHT, Achlioptas, CountSketch, Gaussian, Li
from sketchnet.projection.on_device import device_slices, pieces, product_on

K = 1000
GPU_GB = 24  # what a case may take of the GPU's memory


def cases(quick: bool):
    name_device()
    n_part = 10 if quick else 1
    for case in (synthetic_shape, through_the_card, webspam_shape, kdd2010b_shape):
        yield from case(n_part)
        torch.cuda.empty_cache()


def timed(work, repeats: int = 3) -> float:
    """Seconds until the device is done."""

    def and_wait():
        work()
        torch.cuda.synchronize()

    return best_time(and_wait, repeats)


def copy_bandwidth() -> float:
    """Bytes read and written a second by a large copy on the GPU."""
    a, b = torch.empty((2, 2**30), device="cuda")
    return 8 * 2**30 / timed(lambda: a.copy_(b))


def upload_bandwidth() -> float:
    """Bytes a second from pinned memory of the host."""
    here, there = torch.empty(2**28, pin_memory=True), torch.empty(2**28, device="cuda")
    return 4 * 2**28 / timed(lambda: there.copy_(here, non_blocking=True))


class Rows(NamedTuple):
    """Sparse rows that lie on the GPU."""

    indptr: torch.Tensor
    indices: torch.Tensor
    values: torch.Tensor


def random_rows(n: int, d: int, non_zeros: int) -> Rows:
    """Rows with the same number of uniformly placed standard normal entries."""
    torch.manual_seed(0)
    indices = torch.randint(d, (n * non_zeros,), dtype=torch.int32, device="cuda")
    values = torch.randn(n * non_zeros, device="cuda")
    return Rows(torch.arange(n + 1, device="cuda") * non_zeros, indices, values)


def synthetic_shape(n_part: int):
    """The dissertation's synthetic data: 1.25 million rows, a million columns, density 1e-5."""
    n, d, non_zeros = 1_250_000 // n_part, 1_000_000, 10
    X, out = random_rows(n, d, non_zeros), torch.empty((n, K), device="cuda")
    title, offsets = f"{n:,} x {d:,}, {non_zeros} nnz a row", X.indptr.int()

    def ours(law):
        operator = law.sample(d, 0)
        return timed(lambda: product_on(operator, out.device)(*X, out))

    sketch, gaussian = ours(CountSketch(K)), ours(Gaussian(K))
    fill = timed(lambda: out.fill_(1.0))
    scatter = timed(scattered_by_torch(X, non_zeros, out))
    yield row(f"Count Sketch, {title}", sketch, fill, "physical limit: writing the output once (wanted: 0.67)", "s")
    yield row("  the same", sketch, scatter, "torch zero_ and index_add_, buckets ready", "s")
    with warnings.catch_warnings(action="ignore"):  # that sparse tensors are in beta state
        csr = torch.sparse_csr_tensor(offsets, X.indices, X.values, size=(n, d))
    P = torch.randn((d, K), device="cuda")
    product = timed(lambda: csr @ P)
    drawn = timed(lambda: csr @ torch.randn((d, K), device="cuda", out=P))
    yield row(f"Gaussian, {title}", gaussian, product, "cuSPARSE, matrix in memory (wanted: 0.67)", "s")
    yield row("  the same", gaussian, drawn, "torch.randn, then cuSPARSE (wanted: 1)", "s")
    signs = ours(Achlioptas(K))
    yield row("  the same", gaussian, signs, "our Achlioptas: the same words without the normals", "s")
    yield row("  the same", gaussian, fill, "physical limit: writing the output once", "s")
    yield row(f"Li, {title}", ours(Li(K)), fill, "physical limit: writing the output once", "s")
    yield row(f"SRHT, {title}", ours(SRHT(K)), fill, "physical limit: writing the output once", "s")


def scattered_by_torch(X: Rows, non_zeros: int, out: torch.Tensor):
    """Count Sketch with the place of each entry in the output given beforehand."""
    places = torch.arange(len(out), device="cuda").repeat_interleave(non_zeros) * K + X.indices % K
    return lambda: out.zero_().view(-1).index_add_(0, places, X.values)


def through_the_card(n_part: int):
    """The same shape, from the host and back, as `RandomProjection` does it; the output's pages are there already."""
    n, d, non_zeros = 1_250_000 // n_part, 1_000_000, 10
    X, out = random_rows(n, d, non_zeros), torch.ones((n, K)).numpy()
    X, landed = CsrBatch(*(array.cpu().numpy() for array in X), d), torch.empty((2**18, K), pin_memory=True)
    here = torch.empty_like(landed, device="cuda")
    limit = timed(lambda: landed.copy_(here, non_blocking=True)) * n / 2**18
    for law in (CountSketch(K), Gaussian(K)):
        operator = law.sample(d, 0)
        ours = timed(lambda: operator.apply(X, out=out, device="cuda"))  # noqa: B023 (used at once)
        title = f"{type(law).__name__}, {n:,} x {d:,}, from the host and back"
        yield row(title, ours, limit, "physical limit: taking the result to pinned memory", "s")


def webspam_shape(n_part: int):
    """As many non-zeros as webspam's trigrams have; the GPU's memory includes data and result."""
    bandwidth = copy_bandwidth()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    n, d, non_zeros = 350_000 // n_part, 16_600_000, 3720
    X, out = random_rows(n, d, non_zeros), torch.empty((n, K), device="cuda")
    limit = (8 * n * non_zeros + 4 * n * K) / bandwidth
    for law, seconds in ((CountSketch(K), 0.5), (SRHT(K), 5), (Gaussian(K), 10), (Achlioptas(K), None), (Li(K), None)):
        operator = law.sample(d, 0)
        ours = timed(lambda: product_on(operator, out.device)(*X, out), 1)  # noqa: B023 (used at once)
        title = f"{type(law).__name__}, {n:,} x {d:,}, {non_zeros:,} nnz a row"
        if seconds:
            yield row(title, ours, seconds / n_part, "wanted at most", "s", 1)
        yield row("  the same" if seconds else title, ours, limit, "physical limit: reading and writing once", "s")
    yield row(
        "  GPU memory, data and result included", torch.cuda.max_memory_allocated() / 1e9, GPU_GB, "limit", "GB", 1
    )


def kdd2010b_shape(n_part: int):
    """From the host through the GPU; results, in bfloat16, are overwritten there by the next but one."""
    upload = upload_bandwidth()
    n, d, non_zeros = 19_300_000 // n_part, 29_900_000, 29
    made = random_rows(n, d, non_zeros)
    X = CsrBatch(*(array.cpu().numpy() for array in made), d)
    del made
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    operator, gpu = Gaussian(K).sample(d, 0), torch.device("cuda", 0)

    def work():
        rows = as_csr(X, d)
        for _ in pieces(operator, rows, device_slices(rows, K, None, 2), gpu, torch.bfloat16):
            pass

    ours = timed(work, 1)
    limit = sum(array.nbytes for array in X.arrays) / upload
    name = "physical limit: bringing the data from pinned memory"
    yield row(f"Gaussian, {n:,} x {d:,}, {non_zeros} nnz a row, streamed", ours, limit, name, "s")
    draws = n * non_zeros * K / 1e9
    yield row("  normals, billions", ours, draws, "billions of normals drawn (ratio: a second)", "s")
    used = torch.cuda.max_memory_allocated() / 1e9
    yield row("  GPU memory", used, GPU_GB, "limit", "GB", 1)


if __name__ == "__main__":
    start = time.perf_counter()
    main(__doc__, cases)
    print(f"{time.perf_counter() - start:.0f} s in all", file=sys.stderr)
