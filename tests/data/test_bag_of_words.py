import json
import os
import pickle
import re
import stat
import subprocess
import sys
from collections import Counter
from math import log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sketchnet.data.bag_of_words import BagOfWords, _checksum
from sketchnet.errors import InputError, MissingExtraError, StorageError

DOCUMENTS = [
    "The runner runs; running is what runners do.",
    "A cat's cats chased 3 mice, x2y and mouse_trap mice!",
    "Don't run: they've chased the cats. CATS!",
    "Кошки и мыши, кошки",
    "",
]


def needs_stemmer():
    return pytest.importorskip("Stemmer", reason="the extra 'text' is not installed")


def plain_words(text, stop_words, low, high):
    tokens = [t for t in re.findall(r"[^\W\d_]+", text.lower()) if len(t) > 1 and t not in stop_words]
    return [" ".join(tokens[i : i + n]) for n in range(low, high + 1) for i in range(len(tokens) - n + 1)]


def plain_fit(documents, stop_words, low, high, n_words):
    totals, frequency = Counter(), Counter()
    for text in documents:
        found = plain_words(text, stop_words, low, high)
        totals.update(found)
        frequency.update(set(found))
    words = sorted(totals, key=lambda w: (-totals[w], w))[:n_words]
    return words, [frequency[w] for w in words]


@given(
    st.lists(st.text("abcAB é1_. ж", max_size=30), max_size=10),
    st.sampled_from([(), ("ab", "ca")]),
    st.sampled_from([(1, 1), (1, 3), (2, 2)]),
    st.sampled_from([1, 5, None]),
)
@settings(max_examples=150, deadline=None)
def test_words_and_counts_against_a_plain_counter(documents, stop_words, ngram_range, n_words):
    documents = [*documents, "bb cc bb", "cc aa"]
    bag = BagOfWords(n_words, stop_words=list(stop_words), stem=False, ngram_range=ngram_range).fit(documents)
    words, frequency = plain_fit(documents, stop_words, *ngram_range, n_words)
    assert bag.words_.tolist() == words == bag.get_feature_names_out().tolist()
    assert bag.document_frequency_.tolist() == frequency
    assert bag.vocabulary_ == {w: c for c, w in enumerate(words)}
    assert bag.n_documents_ == len(documents)
    X = bag.transform(documents)
    assert X.dtype == np.float32
    assert X.has_canonical_format
    for row, text in zip(X.toarray(), documents):
        counts = Counter(plain_words(text, stop_words, *ngram_range))
        assert row.tolist() == [counts[w] for w in words]


def test_stop_words_and_stems():
    needs_stemmer()
    bag = BagOfWords(None).fit(DOCUMENTS)
    assert {"runner", "run", "cat", "chase" if "chase" in bag.vocabulary_ else "chas", "mice", "кошки"} <= set(
        bag.words_
    )
    assert not {"the", "is", "do", "don", "ve", "they"} & set(bag.words_)
    assert not any(re.search(r"[\d_]", word) for word in bag.words_)
    X = bag.transform(["cat cats CATS", b"unknown words only"])
    assert X[0, bag.vocabulary_["cat"]] == 3
    assert X[[1]].nnz == 0


def test_stop_words_go_before_stemming():
    needs_stemmer()
    assert BagOfWords(stop_words=["Cats"]).fit(["cats cat dog"]).words_.tolist() == ["cat", "dog"]


def test_bigrams_reach_over_stop_words():
    bag = BagOfWords(None, stem=False, ngram_range=(2, 2)).fit(["state of the art"])
    assert bag.words_.tolist() == ["state art"]


def test_ties_are_broken_alphabetically():
    a = BagOfWords(2, stem=False).fit(["zebra yak xylophone", "yak"])
    b = BagOfWords(2, stem=False).fit(["yak", "xylophone zebra yak"])
    assert a.words_.tolist() == b.words_.tolist() == ["yak", "xylophone"]


def test_tfidf():
    train = ["cat cat cat dog", "dog bird", "dog fish", "dog cat"]
    bag = BagOfWords(stem=False, tfidf=True).fit(train)
    X = bag.transform(["cat cat dog", "fish"])
    expected = {"cat": (1 + log(1 + 2)) * log(4 / 2)}
    assert {bag.words_[c]: v for c, v in zip(X[[0]].indices, X[[0]].data)} == pytest.approx(expected)
    assert X[1, bag.vocabulary_["fish"]] == pytest.approx((1 + log(2)) * log(4))
    assert X.nnz == 2  # "dog" is in all training documents: its weight is nothing, and not stored


@pytest.mark.parametrize(
    "bag",
    [
        BagOfWords(3, stem=False),
        BagOfWords(None, stem=False, stop_words=None, ngram_range=(1, 2), tfidf=True),
        BagOfWords(np.int64(4), stem=False, stop_words={"cats", "mice"}, ngram_range=[1, 1]),
    ],
)
def test_save_and_load(bag, tmp_path):
    bag.fit(DOCUMENTS).save(tmp_path / "words.json")
    again = BagOfWords.load(tmp_path / "words.json")
    for name in ("vocabulary_", "n_documents_", "stop_words_"):
        assert getattr(again, name) == getattr(bag, name)
    assert np.array_equal(again.document_frequency_, bag.document_frequency_)
    assert (again.transform(DOCUMENTS) != bag.transform(DOCUMENTS)).nnz == 0
    assert (clone(again).fit(DOCUMENTS).transform(DOCUMENTS) != bag.transform(DOCUMENTS)).nnz == 0
    again.save(tmp_path / "words.json")  # replaces
    assert os.listdir(tmp_path) == ["words.json"]
    assert stat.S_IMODE(os.stat(tmp_path / "words.json").st_mode) & 0o400


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    bag = BagOfWords(stem=False).fit(DOCUMENTS)
    bag.save(tmp_path / "words.json")
    before = (tmp_path / "words.json").read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"no room on the disk for .*words\.json"):
        bag.save(tmp_path / "words.json")
    assert os.listdir(tmp_path) == ["words.json"]
    assert (tmp_path / "words.json").read_bytes() == before
    with pytest.raises(StorageError, match=r"cannot write .*words\.json: No such file"):
        bag.save(tmp_path / "no" / "words.json")


def saved(tmp_path) -> dict:
    BagOfWords(stem=False).fit(DOCUMENTS).save(tmp_path / "words.json")
    return json.loads((tmp_path / "words.json").read_text(encoding="utf-8"))


def test_every_truncation_and_many_flips_are_errors(tmp_path):
    saved(tmp_path)
    path = tmp_path / "words.json"
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [whole[:n] for n in rng.integers(0, len(whole), 100)]
    for place, bit in zip(rng.integers(0, len(whole), 300), rng.integers(0, 8, 300)):
        damaged.append(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(InputError):
            BagOfWords.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"words": ["a", 3]}, "is damaged: its words are not a list of strings"),
        ({"words": []}, "is damaged: its words"),
        ({"words": ["a", "a"], "document_frequency": [1, 1]}, "is damaged: its words are not distinct"),
        ({"document_frequency": [1]}, "do not all have a document frequency"),
        ({"n_documents": 1.5}, "its document frequencies"),
        ({"n_documents": 0}, "its document frequencies"),
        ({"params": {}}, "is damaged: 'ngram_range'"),
        ({"params": {"ngram_range": [1, 1], "colour": 1}}, "is damaged: .*colour"),
        ({"params": {"ngram_range": [3, 1]}}, "is damaged: ngram_range"),
        ({"stop_words": 5}, "is damaged: stop_words=5"),
    ],
)
def test_files_that_do_not_make_sense(change, message, tmp_path):
    file = saved(tmp_path)
    file["content"] |= change
    file["checksum"] = _checksum(file["content"])
    (tmp_path / "words.json").write_text(json.dumps(file), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        BagOfWords.load(tmp_path / "words.json")


def test_other_files(tmp_path):
    file = saved(tmp_path)
    cases = [
        (file | {"version": 2}, "has version 2; this sketchnet reads version 1"),
        (file | {"format": "x"}, "is not a saved bag of words"),
        ([], "is not a saved bag of words"),
        (file | {"content": None, "checksum": _checksum(None)}, "is damaged"),
    ]
    for content, message in cases:
        (tmp_path / "other.json").write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(InputError, match=message):
            BagOfWords.load(tmp_path / "other.json")
    (tmp_path / "other.json").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="other.json is damaged: "):
        BagOfWords.load(tmp_path / "other.json")
    with pytest.raises(InputError, match="there is no file"):
        BagOfWords.load(tmp_path / "none.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    for path in (tmp_path, tmp_path / "zero.json"):
        with pytest.raises(InputError, match="is no regular file"):
            BagOfWords.load(path)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_words": 0}, "n_words=0 is not possible"),
        ({"n_words": 2.0}, "n_words=2.0 is not possible"),
        ({"stop_words": "german"}, "stop_words='german' is not possible; allowed are 'english', None or a list"),
        ({"stop_words": [1]}, "stop_words"),
        ({"ngram_range": (0, 1)}, "ngram_range"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(InputError, match=message):
        BagOfWords(stem=False, **{"n_words": 10, **params}).fit(DOCUMENTS)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([], "there are no documents"),
        (["", "the 42"], "no words were found"),
        (["a", None], "row 1 is a NoneType"),
        ([b"\xe9"], r"row 0 is not UTF-8 at byte 0 \(0xe9\)"),
        ("one document", "one str was given"),
    ],
)
def test_bad_documents(documents, message):
    with pytest.raises(InputError, match=message):
        BagOfWords(stem=False).fit(documents)


def test_a_missing_stemmer_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    message = r"^BagOfWords with stemming needs the package Stemmer: pip install 'sketchnet\[text\]'$"
    with pytest.raises(MissingExtraError, match=message):
        BagOfWords().fit(DOCUMENTS)
    BagOfWords(stem=False).fit(DOCUMENTS)


def test_scikit_learn_conventions():
    bag = BagOfWords(4, stem=False)
    with pytest.raises(NotFittedError):
        bag.transform(DOCUMENTS)
    X = bag.fit_transform(text for text in DOCUMENTS)
    assert X.shape == (5, 4)
    assert (pickle.loads(pickle.dumps(bag)).transform(DOCUMENTS) != X).nnz == 0
    assert not hasattr(clone(bag), "words_")
    assert bag.__sklearn_tags__().input_tags.string


def test_newsgroups():
    """The dissertation's density of 20-newsgroups with 2000 words is 0.034; its tokeniser is not stated."""
    needs_stemmer()
    folder = Path(os.environ.get("SKETCHNET_DATA", "/nowhere")) / "tng" / "20news-bydate-train"
    if not folder.is_dir():
        pytest.skip("there is no $SKETCHNET_DATA/tng/20news-bydate-train")
    files = sorted(folder.glob("*/*"))
    assert len(files) == 11314
    X = BagOfWords(2000).fit_transform([file.read_text("latin-1") for file in files])
    assert X.nnz / (X.shape[0] * X.shape[1]) == pytest.approx(0.034, abs=0.003)


def test_importing_needs_neither_numba_nor_the_stemmer():
    code = "import sys, sketchnet.data.bag_of_words as b; print('numba' in sys.modules, 'Stemmer' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
