"""Retrieval curves against a plain double loop and scikit-learn; ties, sets of labels, blocks, threads, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import average_precision_score

from sketchnet.errors import InputError
from sketchnet.evaluation import retrieval as module
from sketchnet.evaluation.relevance import relevance
from sketchnet.evaluation.retrieval import retrieval
from sketchnet.kernels.cpu import threads
from sketchnet.memory import PeakMemory

# Scaled to length one, these are exact in float32, and so are their similarities: 0, ±1/2, ±1. Many are equal.
EXACT = np.array([[3, 0, 0, 0], [0, 1e-30, 0, 0], [-7, 0, 0, 0], [1e30] * 4, [5, -5, 5, 5], [0] * 4], np.float32)


def cosines(codes):
    codes = np.asarray(codes, np.float64)
    norms = np.linalg.norm(codes, axis=1)
    unit = codes / np.where(norms > 0, norms, 1)[:, None]
    return unit @ unit.T


def plain(codes, relevant):
    """The definition, query by query and rank by rank: (precision, recall, mean average precision, queries)."""
    n, similarity, curves, scores = len(codes), cosines(codes).round(6), [], []
    for q in range(n):
        order = sorted((j for j in range(n) if j != q), key=lambda j: (-similarity[q, j], j))
        gained = [relevant(q, j) for j in order]
        total = sum(gained)
        if total == 0:
            continue
        sums = [sum(gained[:r]) for r in range(1, n)]
        curves.append([[s / r, s / total] for r, s in enumerate(sums, 1)])
        scores.append(sum(s / r * g for r, (s, g) in enumerate(zip(sums, gained), 1)) / total)
    if not scores:
        return None
    precision, recall = np.mean(curves, axis=0).T
    return precision, recall, np.mean(scores), len(scores)


def jaccard(sets):
    return lambda q, j: len(sets[q] & sets[j]) / len(sets[q] | sets[j]) if sets[q] | sets[j] else 0


def matrix(sets, n_labels):
    return sparse.csr_array([[label in labels for label in range(n_labels)] for labels in sets], dtype=np.float32)


def assert_same(found, expected):
    if expected is None:
        pytest.fail("there is no query, and yet a result")
    precision, recall, score, n_queries = expected
    np.testing.assert_allclose(found.precision, precision, rtol=1e-12)
    np.testing.assert_allclose(found.recall, recall, rtol=1e-12)
    assert found.area == pytest.approx(np.trapezoid(precision, recall), rel=1e-12, abs=1e-15)
    assert found.mean_average_precision == pytest.approx(score, rel=1e-12)
    assert found.n_queries == n_queries
    assert found.n_left_out == len(precision) + 1 - n_queries


def documents(n=80, k=6, n_classes=5, seed=0):
    """Codes that lean towards their class."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, n_classes, n)
    codes = rng.standard_normal((n_classes, k))[classes] + rng.standard_normal((n, k))
    return codes, classes


def same(classes):
    return lambda q, j: float(classes[q] == classes[j])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (7, 4), (80, 6), (60, 33)])
def test_classes_by_the_definition(n, k, dtype):
    codes, classes = documents(n, k, n_classes=min(5, n // 2))
    codes = codes.astype(dtype)
    if k > 1:
        assert np.diff(np.sort(cosines(codes), axis=1)).min() > 5e-7  # else the order would be up to rounding
    assert_same(retrieval(codes, classes), plain(codes, same(classes)))


def test_fractions_by_the_definition():
    codes, _ = documents(60)
    rng = np.random.default_rng(1)
    sets = [set(rng.integers(0, 7, rng.integers(0, 5)).tolist()) for _ in codes]
    sets[3], sets[4] = {7}, set()  # to which nothing is relevant
    found = retrieval(codes, matrix(sets, 9))
    assert_same(found, plain(codes, jaccard(sets)))
    assert found.n_left_out >= 2
    assert found.recall[-1] == 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.sets(st.integers(0, 3))), min_size=2, max_size=12))
def test_ties_stand_in_the_order_of_numbers(drawn):
    codes, classes, sets = EXACT[[d[0] for d in drawn]], [d[1] for d in drawn], [d[2] for d in drawn]
    for labels, relevant in ((classes, same(classes)), (matrix(sets, 4), jaccard(sets))):
        expected = plain(codes, relevant)
        if expected is None:
            with pytest.raises(InputError, match="no document is relevant to another"):
                retrieval(codes, labels)
        else:
            assert_same(retrieval(codes, labels), expected)


def test_zero_codes_rank_by_number():
    found = retrieval(np.zeros((4, 3)), ["a", "b", "a", "b"])
    # In turn, the relevant one stands at rank 2, 3, 1, 2.
    np.testing.assert_allclose(found.precision, [1 / 4, (0.5 + 0.5 + 0.5) / 4, 1 / 3])
    np.testing.assert_allclose(found.recall, [1 / 4, 3 / 4, 1])
    assert found.mean_average_precision == pytest.approx((1 / 2 + 1 / 3 + 1 + 1 / 2) / 4)


def test_average_precision_is_scikit_learns():
    codes, classes = documents(150, 8)
    similarity = cosines(codes)
    others = ~np.eye(len(codes), dtype=bool)
    scores = [average_precision_score(classes[o] == classes[q], similarity[q, o]) for q, o in enumerate(others)]
    assert retrieval(codes, classes).mean_average_precision == pytest.approx(np.mean(scores), rel=1e-12)


def test_one_class_has_precision_one():
    codes, _ = documents(20)
    found = retrieval(codes, np.zeros(20))
    assert np.array_equal(found.precision, np.ones(19))
    np.testing.assert_allclose(found.recall, np.arange(1, 20) / 19)
    assert found.mean_average_precision == 1
    assert found.area == pytest.approx(18 / 19)  # the curve begins at rank 1


def test_perfect_codes():
    classes = np.repeat([0, 1], 10)
    found = retrieval(np.eye(2)[classes], classes)
    assert np.array_equal(found.precision[:9], np.ones(9))
    assert found.recall[8] == 1
    assert found.mean_average_precision == 1


@pytest.mark.parametrize("kind", ["classes", "sets"])
def test_neither_blocks_nor_threads_matter(kind, monkeypatch):
    rng = np.random.default_rng(3)
    codes, classes = documents(700, 10)  # three panels
    codes[::7] = 0
    labels = classes if kind == "classes" else sparse.random_array((700, 9), density=0.2, rng=rng).ceil()
    whole = retrieval(codes, labels)
    monkeypatch.setattr(threads, "_SMALL", 1)
    seen = []
    for number, at_once in (("1", 64), ("2", 70), ("3", 1), ("5", 699)):
        monkeypatch.setenv("SKETCHNET_THREADS", number)
        monkeypatch.setattr(module, "_rows_at_once", lambda *args, rows=at_once: seen.append(rows) or rows)
        found = retrieval(codes, labels)
        for name in ("precision", "recall", "area", "mean_average_precision"):
            assert np.array_equal(getattr(found, name), getattr(whole, name)), name
    assert seen == [64, 70, 1, 699]


@pytest.mark.parametrize("kind", ["classes", "sets"])
def test_memory_stays_within_the_budget(kind):
    n, k, budget = 4000, 16, 3 * 2**20
    codes, classes = documents(n, k, seed=5)
    labels = classes if kind == "classes" else sparse.csr_array(np.eye(5, dtype=np.int8)[classes])
    relevant = relevance(labels, n)
    rows = module.rows_at_once(n, k, relevant, budget)
    assert 1 <= rows < 80
    assert rows < module.rows_at_once(n, k, relevant, 2**30) <= 2**24 / (8 * n)  # more would leave the cache
    retrieval(codes[:300], labels[:300])  # compiles
    with PeakMemory() as used:
        found = retrieval(codes, labels, memory=budget)
    assert used.peak <= budget  # all similarities would take 61 MiB
    assert found.n_queries == n
    with pytest.raises(InputError, match="memory of 98 KiB is too little: 4000 documents with codes of 16 numbers"):
        retrieval(codes, labels, memory="100kB")


def test_labels_of_any_kind():
    codes, classes = documents(30)
    expected = retrieval(codes, classes)
    names = np.array(["u", "vv", "w", "x", "y"])[classes]
    for labels in (names, list(names), names.astype(object), [(c, "z") for c in classes], classes * 0.5):
        assert np.array_equal(retrieval(codes, labels).precision, expected.precision)
    # 1 and "1" are two classes, as in Python; in an array of NumPy's they would be one.
    assert retrieval(codes[:4], [1, "1", 1, "1"]).n_queries == 4
    with pytest.raises(InputError, match="no document is relevant"):
        retrieval(codes[:2], [1, "1"])


def test_sets_may_be_stored_in_many_ways():
    codes, _ = documents(40)
    ones = sparse.random_array((40, 6), density=0.4, rng=np.random.default_rng(0), format="csr").ceil()
    expected = retrieval(codes, ones)
    indices, data = np.append(ones.indices, [ones.indices[-1], 0]), np.append(ones.data, [1, 0])
    indptr = ones.indptr.copy()
    indptr[-1] += 2  # a label of the last document once more, and a zero
    stored = sparse.csr_array((data, indices, indptr), shape=ones.shape)
    for labels in (stored, ones.tocoo(), ones.tocsc(), sparse.csr_matrix(ones.astype(bool))):
        assert np.array_equal(retrieval(codes, labels).precision, expected.precision)
    assert stored.nnz == ones.nnz + 2  # the caller's is left as it was


def test_progress():
    codes, classes = documents(80)
    seen = []
    retrieval(codes, np.where(np.arange(80) < 10, -np.arange(80), classes + 1), progress=lambda *at: seen.append(at))
    assert seen[0] == (0, 70)
    assert seen[-1] == (70, 70)


@pytest.mark.parametrize(
    ("codes", "labels", "message"),
    [
        (np.zeros((1, 3)), [0], "at least 2"),
        (np.zeros((0, 3)), [], "at least 2"),
        (np.zeros(3), [0, 0, 0], r"shape \(3,\)"),
        (np.zeros((3, 0)), [0, 0, 0], r"shape \(3, 0\)"),
        (np.full((2, 2), "x"), [0, 0], "type <U1"),
        (np.zeros((2, 2), complex), [0, 0], "type complex"),
        ([[1, 2], [3]], [0, 0], "not an array of numbers"),
        (sparse.csr_array(np.eye(3)), [0, 0, 0], "sparse"),
        (np.array([[1, 2], [1, np.nan]]), [0, 0], "row 1 of codes has a number that is not finite"),
        (np.array([[np.inf, 2], [1, 2]]), [0, 0], "row 0 of codes"),
        (np.eye(3), [0, 0], "2 labels for 3 documents"),
        (np.eye(3), np.zeros((3, 2)), "a sparse matrix"),
        (np.eye(3), [[0], [1], [2]], "unhashable"),
        (np.eye(3), 7, "not iterable"),
        (np.eye(3), np.array([0, 0, np.nan]), "label 2 is not a number"),
        (np.eye(3), [0, float("nan"), 0], "label 1 is not a number"),
        (np.eye(3), [0, 1, 2], "no document is relevant to another"),
        (np.eye(3), sparse.csr_array(np.eye(3)), "no document is relevant to another"),
        (np.eye(3), sparse.csr_array((3, 4)), "no document is relevant to another"),
        (np.eye(3), sparse.csr_array((2, 4)), r"labels have shape \(2, 4\), but there are 3"),
        (np.eye(3), sparse.csr_array(2 * np.eye(3)), "the value 2.0"),
        (np.eye(3), sparse.csr_array(np.nan * np.ones((3, 1))), "the value nan"),
    ],
)
def test_bad_input(codes, labels, message):
    with pytest.raises(InputError, match=message):
        retrieval(codes, labels)


def test_bad_settings(monkeypatch):
    codes, classes = documents(10)
    with pytest.raises(InputError, match="'tpu' is not possible"):
        retrieval(codes, classes, device="tpu")
    with pytest.raises(InputError, match="memory='much' is not a size"):
        retrieval(codes, classes, memory="much")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(InputError, match="torch finds no CUDA device"):
        retrieval(codes, classes, device="cuda")
    assert retrieval(codes, classes, device="auto").area == retrieval(codes, classes).area


@pytest.mark.parametrize("kind", ["classes", "sets"])
def test_the_form_for_devices_gives_the_same(kind, monkeypatch):
    """Here with torch on the processor; tests/gpu has the same on a GPU."""
    rng = np.random.default_rng(2)
    codes = np.vstack([documents(120, 4)[0], EXACT[rng.integers(0, 6, 65)]])  # with ties and zeros
    labels = rng.integers(0, 90, 185)
    if kind == "sets":
        labels = sparse.random_array((185, 30), density=0.03, rng=rng).ceil()
    expected, seen = retrieval(codes, labels), []
    monkeypatch.setattr(module, "cuda_device", lambda device, missing: "cpu")
    found = retrieval(codes, labels, memory=2**20, progress=lambda *at: seen.append(at))
    assert len(seen) > 2
    assert seen[-1] == (expected.n_queries, expected.n_queries)
    for name in ("precision", "recall", "area", "mean_average_precision"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)
    assert (found.n_queries, found.n_left_out) == (expected.n_queries, expected.n_left_out)
    assert found.n_left_out > 0
    with pytest.raises(InputError, match="too little for 185 documents"):
        retrieval(codes, labels, memory=1000)
