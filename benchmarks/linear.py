"""How fast is the exact linear model beside LIBLINEAR, at the same strength and a like objective?

    python benchmarks/linear.py [--quick] [--json]

LIBLINEAR by way of scikit-learn, with its usual tolerance, then ours, asked for the gap that LIBLINEAR's objective
turned out to have, or for 1e-6 where that is smaller: there LIBLINEAR may be nearer to the minimum;
both with one thread, by processor time, the fastest of three runs in turn. The squared hinge where
columns outnumber rows (the dual), the logistic loss elsewhere (the primal). Rows are made up: words with frequencies as
in texts, and clicks of ten categories; and the real sets a9a and frappe, where $SKETCHNET_DATA has them. "Other
decisions" are those of held-back rows that differ from the minimum's, in per cent.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path

import numpy as np
from harness import in_turn, main, row
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from sketchnet.data import CsrBatch
from sketchnet.experts.linear import LinearExpert, LinearProblem
from sketchnet.experts.rows import Sample, SeenColumns

COSTS = (0.1, 1.0, 10.0)


def cases(quick: bool):
    os.environ["SKETCHNET_THREADS"] = "1"
    warnings.simplefilter("ignore")  # LIBLINEAR's, of its limit on iterations
    for name, X, y in sets(quick):
        yield from compare(name, X, y)


def sets(quick: bool):
    n = 5_000 if quick else 20_000
    yield f"words, {n:,} x 1,000,000", *words(n)
    yield f"clicks, {10 * n:,} x 20,000", *clicks(10 * n)
    for name, base in (("a9a", 1), ("frappe", 0)):
        path = Path(os.environ.get("SKETCHNET_DATA", ".")) / name / f"{name}-train.svm"
        if path.exists():
            X, y = load_svmlight_file(str(path), zero_based=not base, dtype=np.float32)
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # which scikit-learn wants
            yield f"{name}, {X.shape[0]:,} x {X.shape[1]:,}", sparse.csr_array(X), y > 0
    for name, X, y in () if quick else texts():
        order = np.random.default_rng(0).permutation(len(y))
        yield f"{name}, {X.shape[0]:,} x {X.shape[1]:,}", sparse.csr_array(X[order]), y[order]


def texts():
    """Yield newsgroups and phishing addresses as texts are usually given to linear models."""
    folder = Path(os.environ.get("SKETCHNET_DATA", "."))
    if (folder / "tng/20news-bydate-train").exists():
        files = sorted((folder / "tng/20news-bydate-train").glob("*/*"))
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b", dtype=np.float32)
        X = words.fit_transform(file.read_text(encoding="latin-1") for file in files)
        yield "tng", X, np.array([file.parent.name == "rec.autos" for file in files])
    if (folder / "urls/urls.tsv").exists():
        lines = [line.split("\t") for line in (folder / "urls/urls.tsv").read_text(encoding="utf8").splitlines()[1:]]
        lines = [line for line in lines if line[0] == "train"]
        grams = HashingVectorizer(
            analyzer="char",
            ngram_range=(1, 6),
            n_features=2**24,
            alternate_sign=False,
            dtype=np.float32,
            lowercase=False,
        )
        yield "urls", grams.transform(line[3] for line in lines), np.array([line[1] == "1" for line in lines])


def words(n: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Rows of length one with 150 words; the n-th word is n times rarer than the first."""
    rng = np.random.default_rng(0)
    ids = np.minimum(np.exp(rng.random((n, 150)) * np.log(1e6)).astype(np.int32), 999_999)
    return labelled(ids, 1_000_000, 0.3)


def clicks(n: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Rows of ten ones, each of its own 2,000 columns."""
    rng = np.random.default_rng(0)
    ids = np.minimum(np.exp(rng.random((n, 10)) * np.log(2000)).astype(np.int32), 1999) + 2000 * np.arange(
        10, dtype=np.int32
    )
    return labelled(ids, 20_000, 1.0)


def labelled(ids: np.ndarray, d: int, noise: float) -> tuple[sparse.csr_array, np.ndarray]:
    rng = np.random.default_rng(1)
    offsets = np.arange(len(ids) + 1, dtype=np.int32) * ids.shape[1]
    X = sparse.csr_array((np.ones(ids.size, np.float32), ids.ravel(), offsets), shape=(len(ids), d))
    X.sum_duplicates()
    X.data[:] = 1 / np.sqrt(np.repeat(np.diff(X.indptr), np.diff(X.indptr)))
    scores = X @ rng.standard_normal(d)
    return X, scores + noise * scores.std() * rng.standard_normal(len(ids)) > 0


def compare(name: str, X: sparse.csr_array, y: np.ndarray):
    held, kept = slice(0, X.shape[0] // 10), slice(X.shape[0] // 10, X.shape[0])
    X, Z, y = X[kept], X[held], y[kept]
    batch = CsrBatch(X.indptr, X.indices, X.data, X.shape[1])
    columns = SeenColumns.count(batch)
    sample = Sample(columns.compact(batch), y.astype(int))
    wide = len(columns.ids) >= X.shape[0]
    for cost in COSTS:
        peer = (
            LinearSVC(C=cost, random_state=0) if wide else LogisticRegression(C=cost, solver="liblinear", max_iter=1000)
        )

        def ours(gap: float, cost: float = cost) -> np.ndarray:
            problem = LinearProblem(LinearExpert("binary", 1), sample)
            weights, _ = problem.solve(cost * problem.mean_norm, gap)
            full = np.zeros(X.shape[1] + 1)
            full[columns.ids], full[-1] = weights[:-2, 0], weights[-1, 0]
            return full

        best = ours(1e-7)
        least = objective(wide, X, y, cost, best)
        peer.fit(X, y)
        gap = max(objective(wide, X, y, cost, np.r_[peer.coef_[0], peer.intercept_]) / least - 1, 1e-6)
        times = in_turn(3, lambda: ours(gap), lambda: peer.fit(X, y), clock=time.process_time)  # noqa: B023
        found = ours(gap)
        reached = objective(wide, X, y, cost, found) / least - 1
        other = 100 * np.mean((Z @ found[:-1] + found[-1] > 0) != (Z @ best[:-1] + best[-1] > 0))
        peer_name = (
            f"LIBLINEAR, above the minimum by {gap:.0e} or less; ours {reached:.0e}, {other:.2g} % other decisions"
        )
        yield row(f"{name}, C = {cost:g}", min(times[0]), min(times[1]), peer_name, "s", 1)


def objective(hinge: bool, X, y: np.ndarray, cost: float, weights: np.ndarray) -> float:
    margins = np.where(y, 1, -1) * (X @ weights[:-1] + weights[-1])
    losses = np.maximum(1 - margins, 0) ** 2 if hinge else np.logaddexp(0, -margins)
    return weights @ weights / 2 + cost * losses.sum()


if __name__ == "__main__":
    main(__doc__.splitlines()[0], cases)
