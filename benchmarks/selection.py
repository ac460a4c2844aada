"""How fast are scores of columns and the truncated SVD, beside scikit-learn?

    python benchmarks/selection.py [--quick] [--json]

"Scores inside" are scikit-learn's own lines for the statistic, without its checks of the input and without p-values;
ours are `chi2_scores` and `f_scores`, checks included. They take turns with two yardsticks: as many threads as we
have that only read the entries, or only add each to a number of its column (in a table of all columns for each thread,
so it is no lower bound). Times are the medians of several rounds after a warm-up. Rows have 100 uniformly placed
positive entries, in ascending order as scipy makes them: counts (1 to 3), then real numbers; two classes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from harness import in_turn, main, peak_memory, row
from numba import njit
from scipy import sparse
from sklearn import feature_selection
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import as_float_array, safe_mask, safe_sqr
from sklearn.utils.extmath import safe_sparse_dot

from sketchnet.estimators import SparseSVD
from sketchnet.kernels.cpu.threads import n_threads
from sketchnet.selection import chi2, chi2_scores, f_classif, f_scores, information_gain


def random_rows(n: int, d: int, non_zeros: int, dtype, seed: int = 0) -> tuple[sparse.csr_array, np.ndarray]:
    """Rows of small positive numbers, and classes at random."""
    rng = np.random.default_rng(seed)
    ids = np.sort(rng.integers(0, d, (n, non_zeros), dtype=np.int32), axis=1)
    X = sparse.csr_array(
        (rng.integers(1, 4, n * non_zeros).astype(dtype), ids.ravel(), np.arange(n + 1, dtype=np.int32) * non_zeros),
        shape=(n, d),
    )
    X.sum_duplicates()
    return X, rng.integers(0, 2, n)


def medians(rounds: int, *works: Callable[[], object], clock=time.perf_counter) -> list[float]:
    return [float(np.median(times)) for times in in_turn(rounds, *works, clock=clock)]


@njit(nogil=True)
def bare_additions(ids, values, table) -> None:
    for t in range(len(ids)):
        table[np.uint64(ids[t])] += values[t]


@njit(nogil=True)
def bare_reading(ids, values) -> float:
    total = np.int64(0)
    for t in range(len(ids)):
        total += ids[t] ^ values[t]
    return total


def yardsticks(X) -> list[Callable[[], object]]:
    """Scattered additions alone, and reading the entries alone, in as many threads as our kernels use."""
    threads = n_threads()
    pool = ThreadPoolExecutor(threads)
    tables = np.zeros((threads, X.shape[1]))
    ids, values = np.array_split(X.indices, threads), np.array_split(X.data, threads)
    bits = [part.view(f"i{part.itemsize}") for part in values]
    return [
        lambda: list(pool.map(bare_additions, ids, values, tables)),
        lambda: list(pool.map(bare_reading, ids, bits)),
    ]


def scores_inside_chi2(X, y) -> np.ndarray:
    """The body of sklearn.feature_selection.chi2 between its checks and its p-values."""
    Y = LabelBinarizer(sparse_output=True).fit_transform(y)
    if Y.shape[1] == 1:
        Y = Y.toarray()
        Y = np.append(1 - Y, Y, axis=1)
    observed = safe_sparse_dot(Y.T, X)
    if sparse.issparse(observed):
        observed = observed.toarray()
    expected = np.dot(Y.mean(axis=0).reshape(1, -1).T, X.sum(axis=0).reshape(1, -1))
    squared = np.asarray(observed, dtype=np.float64)
    squared -= expected
    squared **= 2
    with np.errstate(invalid="ignore"):
        squared /= expected
    return squared.sum(axis=0)


def scores_inside_f_classif(X, y) -> np.ndarray:
    """The bodies of sklearn.feature_selection.f_classif and f_oneway, likewise."""
    groups = [as_float_array(X[safe_mask(X, y == k)]) for k in np.unique(y)]
    sizes = np.array([group.shape[0] for group in groups])
    n = sizes.sum()
    squares = sum(safe_sqr(group).sum(axis=0) for group in groups)
    sums = [np.asarray(group.sum(axis=0)) for group in groups]
    square_of_sums = sum(sums) ** 2
    between = sum(s**2 / size for s, size in zip(sums, sizes)) - square_of_sums / float(n)
    within = squares - square_of_sums / float(n) - between
    with np.errstate(invalid="ignore", divide="ignore"):
        return (between / (len(groups) - 1)) / (within / float(n - len(groups)))


def cases(quick: bool):
    n, rounds = (20_000, 3) if quick else (100_000, 15)
    for dtype in (np.float32, np.float64):
        X, y = random_rows(n, 1_000_000, 100, dtype)
        name = f"{n:,} x 1,000,000, 100 nnz a row, {np.dtype(dtype).name}"
        yield from scores(X, y, name, rounds)
        if dtype == np.float32:
            yield from gain(X, y, name)
        X.data *= np.random.default_rng(1).random(len(X.data), dtype)
        yield from scores(X, y, f"{name}, real", rounds)
    yield from svd(quick)


def scores(X, y, name: str, rounds: int):
    for what, ours, peer, whole, their_whole in (
        ("chi2", chi2_scores, scores_inside_chi2, chi2, feature_selection.chi2),
        ("f_classif", f_scores, scores_inside_f_classif, f_classif, feature_selection.f_classif),
    ):
        works = partial(ours, X, y), partial(peer, X, y), *yardsticks(X)
        seconds, theirs, adding, reading = medians(rounds, *works)
        yield row(f"{what} scores, {name}", seconds, theirs, f"the scores inside sklearn's {what}", "s", 5)
        used, theirs = medians(rounds, *works[:2], clock=time.process_time)
        yield row("  processor time of all threads", used, theirs, "the same, in one thread", "s")
        yield row("  the same", seconds, adding, "yardstick: one bare addition for each entry", "s")
        yield row("  the same", seconds, reading, "limit: reading the entries", "s")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # columns without entries, divisions by zero
            seconds, theirs = medians(2, partial(whole, X, y), partial(their_whole, X, y))
        yield row("  with p-values", seconds, theirs, f"sklearn {what}", "s")


def gain(X, y, name: str):
    few = X[:, :1000]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that values which are numbers look continuous
        peer = partial(feature_selection.mutual_info_classif, few, y, discrete_features=True)
        seconds, theirs = medians(1, partial(information_gain, few, y), peer)
    yield row("information gain, 1,000 of those columns", seconds, theirs, "sklearn mutual_info_classif", "s", 5)
    seconds, limit = medians(2, partial(information_gain, X, y), X.tocsc)
    yield row(f"information gain, {name}", seconds, limit, "scipy: regrouping by columns alone", "s")


def svd(quick: bool):
    n, d, k = (5_000, 100_000, 50) if quick else (20_000, 200_000, 100)
    X, _ = random_rows(n, d, 100, np.float32)
    ours, peer = SparseSVD(k), TruncatedSVD(k, random_state=0)
    seconds, theirs = medians(2, partial(ours.fit, X), partial(peer.fit, X))
    yield row(f"SVD, {k} components of {n:,} x {d:,}, 100 nnz a row", seconds, theirs, "sklearn TruncatedSVD fit", "s")
    mass = [float(np.square(model.singular_values_.astype(np.float64)).sum()) for model in (ours, peer)]
    yield row("  mass in the components (more is better)", mass[0], mass[1], "sklearn TruncatedSVD", "")
    memory = peak_memory(make_svd, SparseSVD, n, d, k)
    yield row("  peak memory", memory, peak_memory(make_svd, TruncatedSVD, n, d, k), "sklearn TruncatedSVD", "MiB")


def make_svd(kind, n: int, d: int, k: int):
    X, _ = random_rows(n, d, 100, np.float32)
    kind(5).fit(X[:100])  # compiles
    return lambda: kind(k).fit(X)


if __name__ == "__main__":
    main(__doc__, cases)
