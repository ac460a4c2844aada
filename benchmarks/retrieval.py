"""How long does it take to rank 20,000 documents for 20,000 queries, and how much memory?

    python benchmarks/retrieval.py [--quick] [--json]

Codes have 32 numbers. Peers: NumPy with a sort for each query, and what scikit-learn's average precision takes, query
by query. Peers are timed on a sample of the queries, after a warm-up, and the time is scaled to all: their cost of a
query is always the same. They sort on one core. Ours are the whole, on all cores.
"""

from __future__ import annotations

import time

import numpy as np
from harness import best_time, main, peak_memory, race, row
from scipy import sparse
from sklearn.metrics import average_precision_score
from sklearn.neighbors import NearestNeighbors

from sketchnet.metrics import nearest, retrieval


def cases(quick: bool):
    n, sample = (5000, 200) if quick else (20_000, 400)
    codes, classes, sets = documents(n)
    unit = codes / np.linalg.norm(codes, axis=1, keepdims=True)
    whole = f"{n:,} queries × {n:,} documents"
    for name, labels, relevance in (("classes", classes, of_classes), ("label sets", sets, of_sets)):
        seconds = best_time(lambda labels=labels: retrieval(codes, labels), 2)
        plain = scaled(lambda q, labels=labels, of=relevance: plain_query(unit, of(labels, q), q), n, sample)
        yield row(f"{whole}, {name}", seconds, plain, f"NumPy, argsort a query ({sample} queries, scaled)", "s", 2)
        if name == "classes":
            theirs = scaled(lambda q: scikit_learn_query(unit, classes, q), n, sample)
            peer = f"scikit-learn, its average precision alone ({sample} queries, scaled)"
            yield row("  the same", seconds, theirs, peer, "s", 2)
            yield row("  the same", seconds, 20 * (n / 20_000) ** 2, "limit: 20 s for 20,000", "s", 1)
        yield row("  peak memory", peak_memory(make, n, name), 954, "limit: 1 GB", "MiB", 1)
    queries = codes[:2000]
    brute = NearestNeighbors(n_neighbors=10, metric="cosine", algorithm="brute").fit(codes)
    seconds, peer = race(lambda: nearest(codes, queries, 10), lambda: brute.kneighbors(queries))
    yield row(f"the nearest 10 of {n:,} to 2,000 queries", seconds, peer, "scikit-learn NearestNeighbors", "s")


def documents(n: int):
    """Codes of 20 classes that overlap; sets have the class and three labels on average beside it."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 20, n)
    codes = rng.standard_normal((20, 32))[classes] + 2 * rng.standard_normal((n, 32))
    others = sparse.random_array((n, 80), density=3 / 80, rng=rng, dtype=np.float32).ceil()
    sets = sparse.hstack([sparse.csr_array(np.eye(20, dtype=np.float32)[classes]), others], format="csr")
    return codes.astype(np.float32), classes, sparse.csr_array(sets)


def make(n: int, name: str):
    codes, classes, sets = documents(n)
    labels = classes if name == "classes" else sets
    retrieval(codes[:300], labels[:300])  # compiles
    return lambda: retrieval(codes, labels)


def scaled(query, n: int, sample: int) -> float:
    """Seconds that n queries take if the first `sample` are like the others."""
    for q in range(10):
        query(q)
    start = time.perf_counter()
    for q in range(sample):
        query(q)
    return (time.perf_counter() - start) * n / sample


def of_classes(classes, q: int) -> np.ndarray:
    return (classes == classes[q]).astype(np.float64)


def of_sets(sets, q: int) -> np.ndarray:
    sizes = np.diff(sets.indptr)
    shared = np.zeros(sets.shape[1], np.float32)
    shared[sets.indices[sets.indptr[q] : sets.indptr[q + 1]]] = 1
    both = sets @ shared
    return both / (sizes + sizes[q] - both)


def plain_query(unit, relevance, q: int):
    """(precision, recall, average precision) of a query, as one would write it."""
    order = np.argsort(-(unit @ unit[q]), kind="stable")
    gained = relevance[order[order != q]]
    gains = np.cumsum(gained)
    precision, recall = gains / np.arange(1, len(unit)), gains / gains[-1]
    return precision, recall, (precision * gained).sum() / gains[-1]


def scikit_learn_query(unit, classes, q: int) -> float:
    others = np.arange(len(unit)) != q
    return average_precision_score((classes == classes[q])[others], (unit @ unit[q])[others])


if __name__ == "__main__":
    main(__doc__, cases)
