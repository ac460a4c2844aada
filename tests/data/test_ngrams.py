import pickle
import re
from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.pipeline import make_pipeline

from sketchnet.data.ngrams import NgramHasher, word_characters
from sketchnet.errors import InputError
from sketchnet.random import words
from tests.statistics import assert_counts

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
ranges = st.tuples(st.integers(1, 4), st.integers(0, 4)).map(lambda r: (r[0], r[0] + r[1]))
SAMPLES = [
    "example.com/login?id=7&id=7",
    "",
    "a",
    "Привет, мир! Привет",
    "e\u0301 is not \u00e9",  # a combining mark is a code point of its own
    "👩\u200d👩\u200d👧 family 👩\u200d👩\u200d👧",
    "नमस्ते दुनिया",
    "two  spaces \t\n and\u00a0\u2003more",
    "MiXeD İ ẞ ΣΑΣ",
    "under_score x y 42 4 -- ab" * 3,
    "aaaa" * 100,
]


def pieces(text, analyzer):
    if analyzer == "byte":
        data = text if isinstance(text, bytes) else text.encode()
        return [bytes([b]) for b in data], b""
    if analyzer == "char":
        return [c.encode() for c in text], b""
    return [w.encode() for w in re.findall(r"(?u)\b\w\w+\b", text)], b" "


def ngrams(text, analyzer, low, high):
    units, glue = pieces(text, analyzer)
    return [glue.join(units[i : i + n]) for n in range(low, high + 1) for i in range(len(units) - n + 1)]


@cache
def key(seed):
    w = [int(x) for x in words(seed, 64, 0, 0)[0]]
    return (w[0] | w[1] << 32) | 1, w[2] | w[3] << 32


def column(ngram, n_columns, seed=0):
    """The documented hash, in plain Python."""
    multiplier, state = key(seed)
    for byte in ngram:
        state = (state ^ byte) * multiplier % 2**64
        state ^= state >> 32
    state = (state ^ state >> 33) * 0xFF51AFD7ED558CCD % 2**64
    state = (state ^ state >> 33) * 0xC4CEB9FE1A85EC53 % 2**64
    return (state ^ state >> 33) * n_columns // 2**64


def assert_row(X, r, expected: dict):
    span = slice(X.indptr[r], X.indptr[r + 1])
    assert X.indices[span].tolist() == sorted(expected)
    assert X.data[span].tolist() == [expected[c] for c in sorted(expected)]


@given(
    st.lists(texts, max_size=8),
    st.sampled_from(["byte", "char", "word"]),
    ranges,
    st.sampled_from([1, 2, 100, 2**24, 2**31 - 1, 2**31, 10**12 + 39, 2**63 - 1, None]),
    st.sampled_from([0, 7, 2**64 - 1]),
)
@example(SAMPLES, "byte", (1, 6), 2**24, 0)
@example(SAMPLES, "char", (1, 6), 2**24, 0)
@example(SAMPLES, "char", (3, 20), 1000, 0)
@example(SAMPLES, "word", (1, 3), None, 0)
@settings(max_examples=120, deadline=None)
def test_counts_and_columns_are_the_documented_ones(strings, analyzer, ngram_range, n_columns, seed):
    X = NgramHasher(analyzer, ngram_range, n_columns, seed=seed).transform(strings)
    width = 2**63 - 1 if n_columns is None else n_columns
    assert X.shape == (len(strings), width)
    assert X.dtype == np.float32
    assert X.indices.dtype == (np.int32 if width < 2**31 else np.int64)
    for r, text in enumerate(strings):
        assert_row(X, r, Counter(column(g, width, seed) for g in ngrams(text, analyzer, *ngram_range)))


def test_golden_columns():
    """These ids are in users' models: they may not change."""
    assert NgramHasher().column_of("a") == column(b"a", 2**24) == 10139665
    assert NgramHasher(n_columns=None, seed=5).column_of("пример") == 8113663232577557365


@pytest.mark.parametrize("analyzer", ["byte", "char", "word"])
def test_column_of(analyzer):
    hasher = NgramHasher(analyzer, (1, 2), 12345, seed=3)
    X = hasher.transform(["new york", b"abc", "ёж"])
    for r, text in enumerate(["new york", "abc", "ёж"]):
        assert_row(X, r, Counter(hasher.column_of(g) for g in ngrams(text, analyzer, 1, 2)))


def as_sklearn_takes_them(strings):
    """For characters, it turns whitespace characters in a row into one space."""
    return [re.sub(r"\s\s+", " ", string) for string in strings]


def same_as_sklearn(strings, analyzer, ngram_range, lowercase):
    """Our columns of each of CountVectorizer's features, summed, must be our rows."""
    strings = as_sklearn_takes_them(strings)
    ours = NgramHasher(analyzer, ngram_range, None, lowercase=lowercase)
    peer = CountVectorizer(analyzer=analyzer, ngram_range=ngram_range, lowercase=lowercase)
    X, Y = ours.transform(strings), peer.fit_transform(strings)
    columns = np.array([ours.column_of(name) for name in peer.get_feature_names_out()])
    assert len(np.unique(columns)) == len(columns)
    for r in range(len(strings)):
        row = Y[[r]]
        assert_row(X, r, dict(zip(columns[row.indices].tolist(), row.data.tolist())))


@given(st.lists(texts, min_size=1, max_size=5), st.sampled_from(["char", "word"]), ranges, st.booleans())
@settings(max_examples=40, deadline=None)
def test_counts_are_those_of_scikit_learn(strings, analyzer, ngram_range, lowercase):
    # CountVectorizer does not fit on strings without any n-gram.
    same_as_sklearn(
        [*strings, *SAMPLES, "one two three four five six seven eight nine"], analyzer, ngram_range, lowercase
    )


@pytest.mark.parametrize(("analyzer", "ngram_range"), [("char", (1, 6)), ("word", (1, 2))])
def test_row_sums_and_norms_are_those_of_hashing_vectorizer(analyzer, ngram_range):
    for norm in (None, "l1", "l2"):
        peer = HashingVectorizer(
            analyzer=analyzer, ngram_range=ngram_range, n_features=2**24, norm=norm, alternate_sign=False
        ).transform(SAMPLES)
        strings = as_sklearn_takes_them(SAMPLES)
        ours = NgramHasher(analyzer, ngram_range, norm=norm, lowercase=True).transform(strings)
        for r in range(len(SAMPLES)):
            expected = np.sort(peer[[r]].data)
            assert np.allclose(np.sort(ours[[r]].data), expected, rtol=1e-6, atol=0)


def test_whitespace_is_kept():
    a, b = "x \t y", "x y"
    assert NgramHasher().transform([a]).nnz > NgramHasher().transform([b]).nnz


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_norms(counts, norm):
    plain = NgramHasher(counts=counts)
    X, Y = plain.transform(SAMPLES), clone(plain).set_params(norm=norm).transform(SAMPLES)
    for r in range(len(SAMPLES)):
        x, y = X[[r]].data.astype(np.float64), Y[[r]].data
        length = x.sum() if norm == "l1" else np.sqrt((x**2).sum())
        assert np.array_equal(y, (x / length).astype(np.float32))


def test_without_counts_values_are_one():
    X = NgramHasher(counts=False).transform(SAMPLES)
    assert set(X.data) == {1.0}
    assert np.array_equal(X.indices, NgramHasher().transform(SAMPLES).indices)


def random_strings(n, seed=0):
    rng = np.random.default_rng(seed)
    alphabet = np.array(list("abcdefghij /.é日😀"))
    return ["".join(rng.choice(alphabet, length)) for length in rng.integers(0, 120, n)]


@pytest.mark.parametrize("analyzer", ["byte", "char", "word"])
def test_threads_and_slices_change_nothing(analyzer, monkeypatch):
    strings = random_strings(1500)
    hasher = NgramHasher(analyzer, (1, 5), 10**6, norm="l2")
    results = []
    for threads in ("1", "2", "7"):
        monkeypatch.setenv("SKETCHNET_THREADS", threads)
        results.append(hasher.transform(strings))
    for X in results[1:]:
        for ours, first in zip((X.indptr, X.indices, X.data), (results[0].indptr, results[0].indices, results[0].data)):
            assert np.array_equal(ours, first)
    for span in (slice(0, 1), slice(700, 1100), slice(1499, 1500)):
        X = hasher.transform(strings[span])
        assert (X != results[0][span]).nnz == 0


@pytest.mark.parametrize(
    "text",
    ["ab" * 60_000, "a" * 200_000, "".join(chr(97 + i * i % 23) for i in range(100_000)), "word soup " * 20_000],
    ids=["two", "one", "many", "words"],
)
def test_long_rows(text):
    for analyzer in ("char", "word"):
        hasher = NgramHasher(analyzer, (1, 3), 1000)
        X = hasher.transform(["x", text, ""])
        counted = Counter()
        for ngram, n in Counter(ngrams(text, analyzer, 1, 3)).items():
            counted[column(ngram, 1000)] += n
        assert_row(X, 1, counted)


@pytest.mark.parametrize("values", [2**64, 5, 1])
def test_large_buckets_are_sorted(values):
    """Insertion would mend what the heap left unsorted, only slowly: so look at the heap alone."""
    from sketchnet.kernels.cpu.ngrams import _heap_sort

    for n in (0, 1, 2, 3, 100, 101):
        numbers = np.random.default_rng(n).integers(0, values - 1, n + 4, np.uint64, endpoint=True)
        expected = numbers.copy()
        expected[2 : n + 2].sort()
        _heap_sort(numbers, 2, n + 2)
        assert np.array_equal(numbers, expected)


def test_64_bit_ids_do_not_collide():
    numbers = [format(i, "05x") for i in range(300_000)]
    assert NgramHasher("word", (1, 1), None).transform([" ".join(numbers)]).nnz == len(numbers)
    letters = "".join(np.random.default_rng(0).choice(list("abcdefghij"), 100_000))
    distinct = set(ngrams(letters, "char", 1, 6))
    assert len(distinct) > 150_000
    assert NgramHasher(n_columns=None).transform([letters]).nnz == len(distinct)


@pytest.mark.parametrize("seed", [0, 1])
def test_buckets_are_balanced(seed):
    """Very regular n-grams: decimal numbers, of which only a digit or two differs."""
    X = NgramHasher("word", (1, 1), 2**16, seed=seed).transform([" ".join(f"{i:07d}" for i in range(1_000_000))])
    counts = np.zeros(2**16)
    counts[X.indices] = X.data
    assert_counts(counts, np.full(2**16, 2.0**-16))


def test_seeds_are_independent():
    strings = [" ".join(f"{i:06d}" for i in range(100_000))]
    a, b = (NgramHasher("word", (1, 1), None, seed=seed).transform(strings).indices for seed in (0, 1))
    assert len(np.intersect1d(a, b)) == 0


def test_word_characters_are_those_of_re():
    table = word_characters()
    for code in [*range(0x3000), 0xD800, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF]:
        assert table[code] == (re.match(r"\w", chr(code)) is not None)


def test_bytes():
    strings = ["naïve", "ascii", "日本"]
    for analyzer in ("byte", "char", "word"):
        hasher = NgramHasher(analyzer)
        expected = hasher.transform(strings)
        for given_ in (
            [s.encode() for s in strings],
            ["naïve", b"ascii", "日本".encode()],
            np.array(strings),
            tuple(strings),
        ):
            assert (hasher.transform(given_) != expected).nnz == 0
    X = NgramHasher("byte", (1, 2)).transform([b"\xff\x80\x00\xff", b""])
    assert_row(X, 0, Counter(column(g, 2**24) for g in ngrams(b"\xff\x80\x00\xff", "byte", 1, 2)))


@pytest.mark.parametrize(
    ("strings", "message"),
    [
        (["a", None], "row 1 is a NoneType; allowed are str and bytes"),
        (["a", "b", 3.5], "row 2 is a float; allowed are str and bytes"),
        ([["a"]], "row 0 is a list"),
        (["ok", b"ab\xffc"], r"row 1 is not UTF-8 at byte 2 \(0xff\)"),
        (["ok", "é", "ab\ud800"], r"row 2 has a lone surrogate, U\+D800, at character 2"),
        ("one string", "one str was given; give a list"),
        (b"bytes", "one bytes was given; give a list"),
        (7, "a int was given; give a list"),
        (np.array([["a", "b"]]), "strings have 2 dimensions"),
    ],
)
def test_bad_strings(strings, message):
    with pytest.raises(InputError, match=message):
        NgramHasher().transform(strings)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"analyzer": "char_wb"}, "analyzer='char_wb' is not possible; allowed are byte, char, word"),
        ({"norm": "max"}, "norm='max' is not possible; allowed are None, l1, l2"),
        ({"ngram_range": (2, 1)}, r"ngram_range=\(2, 1\) is not possible"),
        ({"ngram_range": (0, 1)}, "ngram_range"),
        ({"ngram_range": 3}, "ngram_range=3 is not possible"),
        ({"ngram_range": (1, 2.5)}, "ngram_range"),
        ({"n_columns": 0}, r"n_columns=0 is not possible; it is an integer from 1 to 2\*\*63 - 1, or None"),
        ({"n_columns": 2**63}, "n_columns"),
        ({"n_columns": 10.0}, "n_columns"),
        ({"seed": -1}, "seed=-1 is not possible"),
        ({"analyzer": "byte", "lowercase": True}, "lowercase=True needs characters"),
    ],
)
def test_bad_parameters(params, message):
    for call in (lambda h: h.fit(["a"]), lambda h: h.transform(["a"])):
        with pytest.raises(InputError, match=message):
            call(NgramHasher(**params))


def test_batch():
    batch = NgramHasher().batch(SAMPLES, labels=range(len(SAMPLES)))
    X = NgramHasher().transform(SAMPLES)
    assert (batch.n_rows, batch.n_columns) == X.shape
    for ours, theirs in zip(batch.arrays, (X.indptr, X.indices, X.data)):
        assert np.array_equal(ours, theirs)
    assert batch.labels.tolist() == list(range(len(SAMPLES)))
    assert batch.indptr.dtype == np.int64
    with pytest.raises(InputError, match="there are 2 strings but 1 labels"):
        NgramHasher().batch(["a", "b"], labels=[1])


def test_no_strings():
    for analyzer in ("byte", "char", "word"):
        assert NgramHasher(analyzer).transform([]).shape == (0, 2**24)
        assert NgramHasher(analyzer, norm="l2").transform(["", ""]).nnz == 0


def test_scikit_learn_conventions():
    hasher = NgramHasher("word", (1, 2), 1000, norm="l2", seed=4)
    assert clone(hasher).get_params() == hasher.get_params()
    expected = hasher.transform(SAMPLES)
    copy = pickle.loads(pickle.dumps(hasher))
    assert (copy.transform(SAMPLES) != expected).nnz == 0
    assert (hasher.fit_transform(s for s in SAMPLES) != expected).nnz == 0
    assert make_pipeline(hasher, TruncatedSVD(2, random_state=0)).fit_transform(SAMPLES).shape == (len(SAMPLES), 2)
    tags = hasher.__sklearn_tags__()
    assert tags.input_tags.string
    assert not tags.requires_fit
    assert expected.has_sorted_indices
