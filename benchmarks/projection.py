"""How fast are the projections, and in how much memory, beside scikit-learn, scipy and BLAS?

    python benchmarks/projection.py [--quick] [--json]

Times are the fastest of three runs in a row after a warm-up, for us as for the peers; memory is anonymous resident
memory above the start, with the input made and kernels compiled, the output included unless the case says otherwise.
"""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial

import numpy as np
from harness import best_time, main, peak_memory, row
from scipy import sparse
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from sketchnet.kernels import backend
from sketchnet.projection import SCHEMES, SRHT, Achlioptas, CountSketch, Gaussian, Li, make_scheme

K = 1000


def random_rows(n: int, d: int, non_zeros: int, seed: int = 0) -> sparse.csr_array:
    """Rows with the same number of uniformly placed standard normal entries."""
    rng = np.random.default_rng(seed)
    indices = rng.integers(0, d, n * non_zeros, dtype=np.int32 if d < 2**31 else np.int64)
    values = rng.standard_normal(n * non_zeros, np.float32)
    indptr = np.arange(n + 1, dtype=indices.dtype) * non_zeros
    return sparse.csr_array((values, indices, indptr), shape=(n, d))


def cases(quick: bool):
    yield from sparse_schemes(100_000, 1 if quick else 3)
    yield from dense_schemes(10_000, 100_000, 1 if quick else 3)
    yield from srht_sparse_rows(quick)
    yield from srht_dense_rows(2000 if not quick else 500)
    yield from wide_data(20_000 if not quick else 2_000)
    yield import_time()


def sparse_schemes(n: int, runs: int):
    X = random_rows(n, 1_000_000, 100)
    sketch, li = CountSketch(K).sample(X.shape[1], 0), Li(K).sample(X.shape[1], 0)
    P = sparse.csr_array(
        (np.ones(X.shape[1], np.float32), np.arange(X.shape[1]) * 7919 % K, np.arange(X.shape[1] + 1)),
        shape=(X.shape[1], K),
    )
    ours = best_time(lambda: sketch.apply(X), runs)
    fill = best_time(lambda: np.full((n, K), 1, np.float32))
    product = best_time(lambda: (X @ P).toarray(), runs)
    peer = best_time(lambda: SparseRandomProjection(K, dense_output=True, random_state=0).fit_transform(X), runs)
    name = "sklearn SparseRandomProjection fit + transform"
    yield row(f"Count Sketch, {n:,} x 1,000,000, 100 nnz a row", ours, product, "scipy CSR @ CSR to dense", "s", 6)
    yield row("  the same", ours, peer, name, "s", 20)
    yield row("  the same", ours, fill, "physical limit: filling the output once", "s")
    yield row("Li, the same data", best_time(lambda: li.apply(X), runs), peer, name, "s", 8)


def dense_schemes(n: int, d: int, runs: int):
    X = random_rows(n, d, 100)
    name = "sklearn GaussianRandomProjection fit + transform"
    peer = best_time(lambda: GaussianRandomProjection(K, random_state=0).fit_transform(X), runs)
    peer_memory = peak_memory(make_sklearn_gaussian, n, d)
    for law in (Gaussian(K), Achlioptas(K)):
        title = f"{type(law).__name__}, {n:,} x {d:,}, 100 nnz a row"
        yield row(title, best_time(partial(law.sample(d, 0).apply, X), runs), peer, name, "s", 5)
        memory = peak_memory(make_ours, law, n, d, 100)
        yield row("  peak memory, output included", memory, peer_memory, name, "MiB", 8)


def srht_sparse_rows(quick: bool):
    n, size = 2000, 2**22
    X = random_rows(n, size, 115)
    operator = SRHT(K).sample(size, 0)
    dense = np.random.default_rng(0).standard_normal((2 if quick else 8, size), np.float32)
    ours = best_time(lambda: operator.apply(X)) / n
    peer = best_time(lambda: backend().fwht(dense)) / len(dense)
    name = "our fast Walsh-Hadamard transform"
    yield row("SRHT, a sparse row (115 nnz, d = 2^22)", 1e3 * ours, 1e3 * peer, name, "ms", 100)


def srht_dense_rows(n: int):
    X = np.random.default_rng(0).standard_normal((n, 2**14), np.float32)
    operator = SRHT(K).sample(2**14, 0)
    P = operator.block(slice(None))
    ours, peer = best_time(lambda: operator.apply(X), 5) / n, best_time(lambda: X @ P, 5) / n
    yield row("SRHT, a dense row (d = 2^14)", 1e3 * ours, 1e3 * peer, "BLAS product with the stored matrix", "ms", 4)


def wide_data(n: int):
    for name in SCHEMES:
        law = make_scheme(name, K, **({"density": SRHT.thesis_density(n, 30_000_000)} if name == "srht_sparse" else {}))
        ours = peak_memory(make_ours, law, n, 30_000_000, 30, True)
        yield row(f"{name}, {n:,} x 30,000,000, beyond in- and output", ours, 1024, "limit: 1 GiB", "MiB", 1)


def import_time():
    script = "import sys, sketchnet; sys.exit('torch' in sys.modules or 'numba' in sys.modules)"

    def run():
        subprocess.run([sys.executable, "-c", script], check=True)

    bare = best_time(lambda: subprocess.run([sys.executable, "-c", ""], check=True), 5)
    return row("import sketchnet (torch, numba not loaded)", max(best_time(run, 5) - bare, 1e-4), 0.3, "limit", "s", 1)


def make_ours(law, n, d, non_zeros, output_ready=False):
    """Projection in a fresh process; compile first on a few rows of the same width and dtypes."""
    X = random_rows(n, d, non_zeros)
    operator = law.sample(d, 0)
    operator.apply(X[:2])
    operator.apply(X[:50])
    out = np.ones((n, K), np.float32) if output_ready else None
    return lambda: operator.apply(X, out=out)


def make_sklearn_gaussian(n, d):
    X = random_rows(n, d, 100)
    return lambda: GaussianRandomProjection(K, random_state=0).fit_transform(X)


if __name__ == "__main__":
    start = time.perf_counter()
    main(__doc__, cases)
    print(f"{time.perf_counter() - start:.0f} s in all", file=sys.stderr)
